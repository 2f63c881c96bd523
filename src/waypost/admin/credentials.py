"""The admin API's operations on a partner's client secrets and API keys: one life cycle for both kinds."""

from typing import Any

import msgspec

from waypost.admin.context import Office, partner_of
from waypost.base.encryption import hash_of
from waypost.domain.errors import Reason, Refused, unknown
from waypost.store.accounts import credentials as stored
from waypost.store.accounts.credentials import CredentialKind, PartnerCredential


class NewSecret(msgspec.Struct, forbid_unknown_fields=True):
    """A client secret to make; without an expiry it has none."""

    expires_on_ms: int | None = None


class SecretRevocation(msgspec.Struct):
    """How a client secret is revoked.

    Attributes:
        keep_tokens: whether the partner tokens that it has issued live out their day.
    """

    keep_tokens: bool = False


class NewKey(msgspec.Struct, forbid_unknown_fields=True):
    """An API key to make."""

    name: str = "key"


class KeyToRevoke(msgspec.Struct, forbid_unknown_fields=True):
    """An API key, as its partner holds it."""

    api_key: str


async def list_secrets(office: Office, partner_id: int) -> Any:
    """Return a partner's client secrets by their ids, never the secrets."""
    now_ms = office.clock.now_ms()
    return {
        "client_secrets": [
            {
                "id": one.id,
                "created_on_ms": one.created_on_ms,
                "expires_on_ms": one.expires_on_ms,
                "expired": one.is_expired(now_ms),
            }
            for one in await _list(office, CredentialKind.CLIENT_SECRET, partner_id)
        ]
    }


async def add_secret(office: Office, given: NewSecret, partner_id: int) -> Any:
    """Make a client secret; it is shown this once."""
    made = await _add(office, CredentialKind.CLIENT_SECRET, partner_id, expires_on_ms=given.expires_on_ms)
    return {"client_secret": made}


async def revoke_secret(office: Office, given: SecretRevocation, partner_id: int, secret_id: str) -> Any:
    """Revoke a client secret at once, and the partner tokens it has issued."""
    ended = await _revoke(office, CredentialKind.CLIENT_SECRET, partner_id, secret_id, given.keep_tokens)
    return {"revoked": secret_id, "tokens_ended": ended}


async def list_keys(office: Office, partner_id: int) -> Any:
    """Return a partner's API keys by their ids, never the keys."""
    keys = await _list(office, CredentialKind.API_KEY, partner_id)
    return {"api_keys": [{"id": one.id, "name": one.name, "created_on_ms": one.created_on_ms} for one in keys]}


async def add_key(office: Office, given: NewKey, partner_id: int) -> Any:
    """Make an API key; it is shown this once."""
    return {"api_key": await _add(office, CredentialKind.API_KEY, partner_id, given.name)}


async def revoke_key(office: Office, partner_id: int, key_id: str) -> Any:
    """Revoke at once an API key of which only the id is known."""
    await _revoke(office, CredentialKind.API_KEY, partner_id, key_id)
    return {"revoked": key_id}


async def revoke_held_key(office: Office, given: KeyToRevoke) -> Any:
    """Revoke at once an API key of which its partner is not known."""
    ended = await office.database.write(stored.revoke_api_key, hash_of(given.api_key))
    office.directory.forget()
    if ended is None:
        raise unknown("API key", "api_key")
    return {"revoked": True}


async def _list(office: Office, kind: CredentialKind, partner_id: int) -> list[PartnerCredential]:
    await partner_of(office, partner_id)
    return await office.database.read(stored.credentials_of, kind, partner_id)


async def _add(
    office: Office, kind: CredentialKind, partner_id: int, name: str = "", expires_on_ms: int | None = None
) -> str:
    await partner_of(office, partner_id)
    now_ms = office.clock.now_ms()
    if expires_on_ms is not None and expires_on_ms <= now_ms:
        text = "expires_on_ms must lie in the future, or be null."
        raise Refused(Reason.FIELD_BROKEN, text, field="expires_on_ms", accepted="a time in the future, or null")
    made = office.ids.secret()
    await office.database.write(stored.add_credential, kind, partner_id, hash_of(made), now_ms, name, expires_on_ms)
    return made


async def _revoke(
    office: Office, kind: CredentialKind, partner_id: int, credential_id: str, keep_tokens: bool = False
) -> int:
    ended = await office.database.write(stored.revoke_credential, kind, partner_id, credential_id, keep_tokens)
    office.directory.forget()
    if ended is None:
        raise Refused(Reason.NOT_FOUND, f"The partner has no such {kind}.")
    return ended
