"""URLs of settings are shown without what may be a credential."""

from typing import Final

import pytest

from waypost.cli.shown_settings import setting_rows
from waypost.config import Settings, convert_settings

SECRET: Final = "s3cr3t"
URLS: Final = {
    "otel_endpoint": f"https://user:{SECRET}@otel.example:4318/v1/traces?api-key={SECRET}#{SECRET}",
    "public_url": f"https://user:{SECRET}@waypost.example",
    "simulator_url": f"http://{SECRET}@127.0.0.1:8081?{SECRET}",
    "media_endpoint": f"https://{SECRET}:{SECRET}@s3.example/?{SECRET}",
    "database_url": f"postgresql://user:{SECRET}@db.example/waypost?password={SECRET}",
}


@pytest.mark.parametrize("name", URLS)
def test_url_is_shown_with_its_place_and_without_credentials(name: str) -> None:
    rows = {row["setting"]: row["value"] for row in setting_rows(convert_settings({name: URLS[name]}), {})}

    assert SECRET not in str(rows)
    assert any(host in rows[name] for host in ("example", "127.0.0.1:8081"))


def test_url_without_credentials_is_shown_as_it_is() -> None:
    rows = {
        row["setting"]: row["value"] for row in setting_rows(Settings(otel_endpoint="http://a.example:4318/v1"), {})
    }

    assert rows["otel_endpoint"] == "http://a.example:4318/v1"
