"""Secrets at rest: secrets that are only compared are hashed, secrets that we use ourselves are encrypted."""

import hashlib
import hmac
import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

TOKEN_PREFIX: Final = "sk_"  # noqa: S105  prefix of every app token. Source: facts 1.4


class WrongInstanceKey(Exception):
    """An encrypted value was made with another instance key, or has been changed."""


def hash_secret(secret: str) -> str:
    """Return the stored form of a secret with 256 random bits: SHA-256 in hex.

    Without salt and stretching: such a secret cannot be guessed. Never for passwords.
    """
    return hashlib.sha256(secret.encode()).hexdigest()


def secrets_equal(left: str, right: str) -> bool:
    """Compare two secrets in constant time."""
    return hmac.compare_digest(left.encode(), right.encode())


class SecretBox:
    """Encrypts and decrypts with the instance key (AES-256-GCM), and derives app tokens and signing keys from it.

    Args:
        instance_key: the setting `secret_key`; any text, best 64 hex digits.
    """

    def __init__(self, instance_key: str) -> None:
        self._key = hashlib.sha256(b"waypost instance key\0" + instance_key.encode()).digest()
        self._box = AESGCM(self._key)

    def seal(self, secret: str, *, owner: str) -> bytes:
        """Encrypt a secret for an owner, who must be the same when it is opened."""
        nonce = os.urandom(12)
        return nonce + self._box.encrypt(nonce, secret.encode(), owner.encode())

    def open(self, sealed: bytes, *, owner: str) -> str:
        """Return the decrypted secret.

        Raises:
            WrongInstanceKey: encrypted with another key or for another owner, or damaged.
        """
        try:
            return self._box.decrypt(sealed[:12], sealed[12:], owner.encode()).decode()
        except InvalidTag as error:
            raise WrongInstanceKey(owner) from error

    def app_token(self, app_id: str, serial: int) -> str:
        """Return the app token: `sk_` and 32 hex digits, the same on every call.

        Source: facts 1.4; decision 0082.
        """
        message = f"app token\0{app_id}\0{serial}".encode()
        return TOKEN_PREFIX + hmac.new(self._key, message, hashlib.sha256).hexdigest()[:32]

    def media_key(self, media_id: str) -> str:
        """Return the unguessable part of an upload's URL: 32 hex digits, the same on every call."""
        message = f"media key\0{media_id}".encode()
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()[:32]

    def partner_token_key(self) -> bytes:
        """Return the signing key of partner tokens: 32 bytes, the same on every call.

        Source: decision 0063.
        """
        return hmac.digest(self._key, b"partner token", "sha256")

    def callback_key(self, subscription_id: int | str, serial: int) -> bytes:
        """Return the signing key of a subscription's callbacks: 32 bytes, the same on every call.

        Source: decision 0043.
        """
        message = f"callback key\0{subscription_id}\0{serial}".encode()
        return hmac.digest(self._key, message, "sha256")
