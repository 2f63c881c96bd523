"""Secrets at rest: hashed, sealed, or derived."""

import pytest

from waypost.base.encryption import SecretBox, WrongInstanceKey, hash_secret, secrets_equal

SEALS = SecretBox("an instance key of forty characters, one")
OTHER = SecretBox("an instance key of forty characters, two")


def test_sealed_secret_is_opened_by_its_key_for_its_owner() -> None:
    sealed = SEALS.seal("hush ä", owner="app")

    assert SEALS.open(sealed, owner="app") == "hush ä"
    assert b"hush" not in sealed


def test_same_secret_is_sealed_differently_each_time() -> None:
    assert SEALS.seal("hush", owner="app") != SEALS.seal("hush", owner="app")


@pytest.mark.parametrize("wrong", ["key", "owner", "bytes", "cut"])
def test_sealed_secret_is_opened_by_nothing_else(wrong: str) -> None:
    sealed = SEALS.seal("hush", owner="app")
    damaged = {"bytes": sealed[:-1] + bytes([sealed[-1] ^ 1]), "cut": sealed[:-1]}

    with pytest.raises(WrongInstanceKey):
        (OTHER if wrong == "key" else SEALS).open(
            damaged.get(wrong, sealed), owner="another" if wrong == "owner" else "app"
        )


def test_app_token_is_the_same_until_its_serial_is_raised() -> None:
    token = SEALS.app_token("app", 1)

    assert token == SEALS.app_token("app", 1)
    assert token.startswith("sk_")
    assert len(bytes.fromhex(token.removeprefix("sk_"))) == 16
    others = {SEALS.app_token("app", 2), SEALS.app_token("app2", 1), OTHER.app_token("app", 1)}
    assert token not in others
    assert len(others) == 3


def test_hash_hides_a_secret_and_is_always_the_same() -> None:
    assert hash_secret("secret") == hash_secret("secret")
    assert hash_secret("secret") != hash_secret("Secret")
    assert "secret" not in hash_secret("secret")


def test_texts_are_compared_whole() -> None:
    assert secrets_equal("ä", "ä")
    assert not secrets_equal("a", "aa")
