"""The admin API's operations on a partner's client secrets and API keys: one life cycle for both kinds."""

from typing import Any

import msgspec

from waypost.admin.provisioning import AdminContext, partner_of
from waypost.base.encryption import hash_of
from waypost.domain.errors import ApiError, ErrorCode, not_found
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


async def list_secrets(context: AdminContext, partner_id: int) -> Any:
    """Return a partner's client secrets by their ids, never the secrets."""
    now_ms = context.clock.now_ms()
    return {
        "client_secrets": [
            {
                "id": one.id,
                "created_on_ms": one.created_on_ms,
                "expires_on_ms": one.expires_on_ms,
                "expired": one.is_expired(now_ms),
            }
            for one in await _list(context, CredentialKind.CLIENT_SECRET, partner_id)
        ]
    }


async def add_secret(context: AdminContext, given: NewSecret, partner_id: int) -> Any:
    """Make a client secret; it is shown this once."""
    made = await _add(context, CredentialKind.CLIENT_SECRET, partner_id, expires_on_ms=given.expires_on_ms)
    return {"client_secret": made}


async def revoke_secret(context: AdminContext, given: SecretRevocation, partner_id: int, secret_id: str) -> Any:
    """Revoke a client secret at once, and the partner tokens it has issued."""
    ended = await _revoke(context, CredentialKind.CLIENT_SECRET, partner_id, secret_id, given.keep_tokens)
    return {"revoked": secret_id, "tokens_ended": ended}


async def list_keys(context: AdminContext, partner_id: int) -> Any:
    """Return a partner's API keys by their ids, never the keys."""
    keys = await _list(context, CredentialKind.API_KEY, partner_id)
    return {"api_keys": [{"id": one.id, "name": one.name, "created_on_ms": one.created_on_ms} for one in keys]}


async def add_key(context: AdminContext, given: NewKey, partner_id: int) -> Any:
    """Make an API key; it is shown this once."""
    return {"api_key": await _add(context, CredentialKind.API_KEY, partner_id, given.name)}


async def revoke_key(context: AdminContext, partner_id: int, key_id: str) -> Any:
    """Revoke at once an API key of which only the id is known."""
    await _revoke(context, CredentialKind.API_KEY, partner_id, key_id)
    return {"revoked": key_id}


async def revoke_held_key(context: AdminContext, given: KeyToRevoke) -> Any:
    """Revoke at once an API key of which its partner is not known."""
    ended = await context.database.write(stored.revoke_api_key, hash_of(given.api_key))
    context.directory.forget()
    if ended is None:
        raise not_found("API key", "api_key")
    return {"revoked": True}


async def _list(context: AdminContext, kind: CredentialKind, partner_id: int) -> list[PartnerCredential]:
    await partner_of(context, partner_id)
    return await context.database.read(stored.credentials_of, kind, partner_id)


async def _add(
    context: AdminContext, kind: CredentialKind, partner_id: int, name: str = "", expires_on_ms: int | None = None
) -> str:
    await partner_of(context, partner_id)
    now_ms = context.clock.now_ms()
    if expires_on_ms is not None and expires_on_ms <= now_ms:
        text = "expires_on_ms must lie in the future, or be null."
        raise ApiError(ErrorCode.FIELD_BROKEN, text, field="expires_on_ms", accepted="a time in the future, or null")
    made = context.ids.secret()
    await context.database.write(stored.add_credential, kind, partner_id, hash_of(made), now_ms, name, expires_on_ms)
    return made


async def _revoke(
    context: AdminContext, kind: CredentialKind, partner_id: int, credential_id: str, keep_tokens: bool = False
) -> int:
    ended = await context.database.write(stored.revoke_credential, kind, partner_id, credential_id, keep_tokens)
    context.directory.forget()
    if ended is None:
        raise ApiError(ErrorCode.NOT_FOUND, f"The partner has no such {kind}.")
    return ended
