"""Settings: read from the environment, checked, each with a description."""

import pytest
from pydantic import ValidationError

from waypost.config import Settings


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_has_a_description(name: str) -> None:
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
        ("admin_token", "x"),
        ("admin_token", "x" * 31),
        ("metrics_token", "x" * 31),
        ("simulator_token", "x" * 31),
        ("secret_key", "x" * 31),
        ("admin_port", "0"),
        ("operator_timeout_s", "0"),
    ],
)
def test_invalid_setting_is_rejected(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"WAYPOST_{name.upper()}", value)

    with pytest.raises(ValidationError, match=name):
        Settings()


@pytest.mark.parametrize("name", ["admin_token", "metrics_token", "simulator_token", "secret_key"])
def test_token_or_key_of_32_characters_is_accepted(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"WAYPOST_{name.upper()}", "x" * 32)

    assert getattr(Settings(), name) == "x" * 32


def test_token_that_is_too_short_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYPOST_ADMIN_TOKEN", "hunter2")

    with pytest.raises(ValidationError, match="admin_token must have at least 32") as error:
        Settings()
    assert "hunter2" not in error.value.errors()[0]["msg"]
