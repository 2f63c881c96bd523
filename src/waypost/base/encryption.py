"""Secrets at rest: secrets that are only compared are hashed, secrets that we use ourselves are encrypted."""

import hashlib
import hmac
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

UNIVERSAL_TOKEN_PREFIX: Final = "ut_"  # noqa: S105  a prefix, no token
"""The beginning of a universal token, by which it is known before it is looked up."""
TOKEN_PREFIX: Final = "sk_"  # noqa: S105  prefix of every app token. Source: facts 1.4
_ROOT_OWNER: Final = b"waypost derivation root"


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


def derive_app_token(root: bytes, app_id: str, serial: int) -> str:
    """Return the app token that belongs to a root. Source: facts 1.4; decision 0082."""
    message = f"app token\0{app_id}\0{serial}".encode()
    return TOKEN_PREFIX + hmac.new(root, message, hashlib.sha256).hexdigest()[:32]


class InstanceKey:
    """An instance key: it encrypts and decrypts (AES-256-GCM), and is the first root that keys are derived from.

    Args:
        text: any text, best 64 hex digits.

    Attributes:
        root: 32 bytes; what its app tokens and signing keys are derived from, unless a store has another root.
        fingerprint: identifies it without revealing it: 16 hex digits.
    """

    def __init__(self, text: str) -> None:
        self.root = hashlib.sha256(b"waypost instance key\0" + text.encode()).digest()
        self.fingerprint = hmac.new(self.root, b"fingerprint", hashlib.sha256).hexdigest()[:16]
        self._box = AESGCM(self.root)

    def seal(self, value: bytes, owner: bytes) -> bytes:
        """Encrypt a value for an owner."""
        nonce = os.urandom(12)
        return nonce + self._box.encrypt(nonce, value, owner)

    def open(self, sealed: bytes, owner: bytes) -> bytes | None:
        """Return the decrypted value; None if it was encrypted with another key or for another owner."""
        try:
            return self._box.decrypt(sealed[:12], sealed[12:], owner)
        except InvalidTag:
            return None


@dataclass(frozen=True, slots=True)
class KeyState:
    """The instance key that a store uses, and the roots that its tokens and signing keys are derived from."""

    fingerprint: str  # of the key in use
    root: bytes  # the root, encrypted with that key
    # the root before, encrypted too, whose tokens and keys are still accepted; None: no other
    old_root: bytes | None = None
    old_root_until_ms: int = 0  # until when
    rewriting: bool = False  # true while values encrypted with an older key may be left


class SecretBox:
    """Encrypts and decrypts with the instance key, and derives app tokens and signing keys from a root.

    Before `use` it works as a new store does: its root is the first key's own.

    Args:
        instance_key: the setting `secret_key`.
        old_instance_key: the setting `old_secret_key`: values encrypted with it can be read, and are rewritten by
            a rotation.
    """

    def __init__(self, instance_key: str, old_instance_key: str | None = None) -> None:
        others = () if old_instance_key is None else (InstanceKey(old_instance_key),)
        first = InstanceKey(instance_key)
        self.keys: Sequence[InstanceKey] = (first, *others)
        self.in_use = first
        self.roots: tuple[bytes, ...] = (first.root,)
        """The roots that are accepted: that of new tokens and keys first."""

    def use(self, state: KeyState, now_ms: int) -> None:
        """Use the key and the roots of a store.

        Raises:
            WrongInstanceKey: the store uses a key that is not among the settings.
        """
        key = next((key for key in self.keys if key.fingerprint == state.fingerprint), None)
        root = None if key is None else key.open(state.root, _ROOT_OWNER)
        if key is None or root is None:
            raise WrongInstanceKey(state.fingerprint)
        old_root = None
        if state.old_root is not None and now_ms < state.old_root_until_ms:
            old_root = key.open(state.old_root, _ROOT_OWNER)
        self.in_use = key
        self.roots = (root,) if old_root is None else (root, old_root)

    def first_state(self, key: InstanceKey) -> KeyState:
        """Return the state of a store that has used only this key so far."""
        return KeyState(key.fingerprint, key.seal(key.root, _ROOT_OWNER))

    def rotated_state(self, key: InstanceKey, *, keeps_root: bool, old_root_until_ms: int) -> KeyState:
        """Return the state that replaces the key in use.

        Args:
            keeps_root: true if app tokens and signing keys stay as they are.
            old_root_until_ms: otherwise, until when those of before are accepted.
        """
        root = key.seal(self.roots[0] if keeps_root else key.root, _ROOT_OWNER)
        old_root = None if keeps_root else key.seal(self.roots[0], _ROOT_OWNER)
        return KeyState(key.fingerprint, root, old_root, 0 if keeps_root else old_root_until_ms, rewriting=True)

    def seal(self, secret: str, *, owner: str) -> bytes:
        """Encrypt a secret for an owner, who must be the same when it is opened."""
        return self.in_use.seal(secret.encode(), owner.encode())

    def open(self, sealed: bytes, *, owner: str) -> str:
        """Return the decrypted secret.

        Raises:
            WrongInstanceKey: encrypted with another key or for another owner, or damaged.
        """
        for key in (self.in_use, *self.keys):
            value = key.open(sealed, owner.encode())
            if value is not None:
                return value.decode()
        raise WrongInstanceKey(owner)

    def reseal(self, sealed: bytes, *, owner: str) -> bytes | None:
        """Return a value encrypted with the key in use; None if it is already. Raises WrongInstanceKey: as `open`."""
        if self.in_use.open(sealed, owner.encode()) is not None:
            return None
        return self.seal(self.open(sealed, owner=owner), owner=owner)

    def app_token(self, app_id: str, serial: int) -> str:
        """Return the app token: `sk_` and 32 hex digits, the same on every call.

        Source: facts 1.4; decision 0082.
        """
        return self.app_tokens(app_id, serial)[0]

    def app_tokens(self, app_id: str, serial: int) -> list[str]:
        """Return the app tokens that are accepted: the app's own, and the one before a rotation of the key."""
        return [derive_app_token(root, app_id, serial) for root in self.roots]

    def media_keys(self, media_id: str) -> list[str]:
        """Return the unguessable parts of an upload's URL that are accepted, 32 hex digits each, the current first."""
        message = f"media key\0{media_id}".encode()
        return [hmac.new(root, message, hashlib.sha256).hexdigest()[:32] for root in self.roots]

    def onboarding_codes(self, app_id: str, created_on_ms: int) -> list[str]:
        """Return the codes of a link to an app's onboarding page that are accepted, the current first."""
        return self._page_codes(app_id, f"onboarding\0{app_id}\0{created_on_ms}")

    def contact_codes(self, app_id: str, email: str, sent_ms: int) -> list[str]:
        """Return the codes of a link that confirms the e-mail address of an app's contact, the current first."""
        return self._page_codes(app_id, f"contact\0{app_id}\0{email}\0{sent_ms}")

    def _page_codes(self, app_id: str, text: str) -> list[str]:
        message = text.encode()
        digests = [hmac.new(root, message, hashlib.sha256).hexdigest()[:32] for root in self.roots]
        return [f"{app_id}-{digest}" for digest in digests]

    def number_pin(self, number_id: str) -> str:
        """Return the PIN, 6 digits, that a number is registered with; another instance key gives another one."""
        digest = hmac.digest(self.roots[0], f"pin\0{number_id}".encode(), "sha256")
        return f"{int.from_bytes(digest[:8]) % 1_000_000:06}"

    def partner_token_keys(self) -> list[bytes]:
        """Return the keys that partner tokens may be signed with, 32 bytes each, the current first.

        Source: decision 0063.
        """
        return [hmac.digest(root, b"partner token", "sha256") for root in self.roots]

    def linking_token_keys(self) -> list[bytes]:
        """Return the keys that linking tokens may be signed with, 32 bytes each, the current first."""
        return [hmac.digest(root, b"linking token", "sha256") for root in self.roots]

    def callback_keys(self, subscription_id: int | str, serial: int) -> list[bytes]:
        """Return the keys that sign a subscription's callbacks, 32 bytes each, the current first.

        Source: decision 0043.
        """
        message = f"callback key\0{subscription_id}\0{serial}".encode()
        return [hmac.digest(root, message, "sha256") for root in self.roots]

    def pseudonym(self, text: str) -> str:
        """Return 16 hex digits that stand for a text, and cannot be found from it without the key."""
        return hmac.new(self.roots[0], f"pseudonym\0{text}".encode(), hashlib.sha256).hexdigest()[:16]

    def partner_token_key(self) -> bytes:
        """Return the key that signs new partner tokens."""
        return self.partner_token_keys()[0]

    def callback_key(self, subscription_id: int | str, serial: int) -> bytes:
        """Return the current one of a subscription's keys with this serial."""
        return self.callback_keys(subscription_id, serial)[0]
