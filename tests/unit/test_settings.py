"""Settings: each with a description, checked, and secrets never in an error."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.config import SECRETS, SETTINGS, InvalidSettingValue, Settings, convert_settings


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_has_a_description(name: str) -> None:
    assert SETTINGS[name].metadata["meaning"]


def test_every_credential_is_a_secret() -> None:
    by_name = {name for name in SETTINGS if name.endswith(("_token", "_key", "_password", "_secret"))}

    assert by_name | {"database_url"} == set(SECRETS)


def test_a_name_that_is_no_setting_is_rejected() -> None:
    with pytest.raises(TypeError, match="prot"):
        Settings(prot=1)  # pyright: ignore[reportCallIssue]  # the test is about it


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
def test_invalid_setting_is_rejected(name: str, value: str) -> None:
    with pytest.raises(InvalidSettingValue, match=name):
        convert_settings({name: value})


@pytest.mark.parametrize("name", ["admin_token", "metrics_token", "simulator_token", "secret_key"])
def test_token_or_key_of_32_characters_is_accepted(name: str) -> None:
    assert getattr(convert_settings({name: "0123456789abcdefghijklmnopqrstuv"}), name)


WEAK_SECRETS = ("0" * 32, "ab" * 32, "abc" * 20, "1" * 20 + "2" * 20, "password" * 8)


@pytest.mark.parametrize("value", WEAK_SECRETS)
@pytest.mark.parametrize("name", ["admin_token", "metrics_token", "simulator_token", "secret_key"])
def test_secret_of_too_few_characters_is_rejected_and_not_shown(name: str, value: str) -> None:
    with pytest.raises(InvalidSettingValue, match=f"{name} must have at least 8 different characters") as error:
        convert_settings({name: value})

    assert value not in str(error.value)


@pytest.mark.parametrize("value", WEAK_SECRETS)
def test_weak_key_can_be_replaced(value: str) -> None:
    assert Settings(secret_key="0a1b2c3d" * 8, old_secret_key=value).old_secret_key == value


@given(st.binary(min_size=16, max_size=32))
def test_random_secret_is_accepted(drawn: bytes) -> None:
    value = hashlib.sha256(drawn).hexdigest()

    assert Settings(secret_key=value, admin_token=value[:32]).secret_key == value


def test_token_that_is_too_short_is_not_shown() -> None:
    with pytest.raises(InvalidSettingValue, match="admin_token must have at least 32") as error:
        Settings(admin_token="hunter2")
    assert "hunter2" not in str(error.value)
