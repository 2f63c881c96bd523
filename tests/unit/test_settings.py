"""Settings: from the environment, checked, each with a meaning."""

import pytest
from pydantic import ValidationError

from waypost.config import Settings


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_says_what_it_means(name: str) -> None:
    assert Settings.model_fields[name].description


def test_setting_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYPOST_PORT", "9999")
    monkeypatch.setenv("WAYPOST_ALLOWED_NETWORKS", "10.0.0.0/8, ::1/128")

    settings = Settings()

    assert settings.port == 9999
    assert settings.allowed_networks == ("10.0.0.0/8", "::1/128")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", "65536"),
        ("port", "many"),
        ("secret_key", "short"),
        ("per_second", "0"),
        ("per_second", "1001"),
        ("allowed_networks", "10.0.0.0/99"),
        ("log_level", "loud"),
        ("operator_timeout_s", "0"),
    ],
)
def test_setting_that_is_wrong_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"WAYPOST_{name.upper()}", value)

    with pytest.raises(ValidationError, match=name):
        Settings()
