"""The admin API's operations on a partner's client secrets and API keys, which share one life cycle."""

from typing import Any

import msgspec

from waypost.admin.provisioning import AdminContext, partner_of
from waypost.base.encryption import hash_secret
from waypost.domain.errors import ApiError, ErrorCode, resource_not_found
from waypost.store.accounts import credentials as stored
from waypost.store.accounts.credentials import CredentialKind, PartnerCredential


class NewSecret(msgspec.Struct, forbid_unknown_fields=True):
    """A client secret to create; without an expiry time it does not expire."""

    expires_on_ms: int | None = None


class SecretRevocation(msgspec.Struct):
    """The options of revoking a client secret.

    Attributes:
        keep_tokens: True if the partner tokens that it has issued stay valid until they expire.
    """

    keep_tokens: bool = False


class NewKey(msgspec.Struct, forbid_unknown_fields=True):
    """An API key to create."""

    name: str = "key"


class KeyToRevoke(msgspec.Struct, forbid_unknown_fields=True):
    """An API key in plain text, to revoke."""

    api_key: str


async def list_secrets(context: AdminContext, partner_id: int) -> Any:
    """Return the ids and dates of a partner's client secrets, never the secrets."""
    now_ms = context.clock.now_ms()
    return {
        "client_secrets": [
            {
                "id": secret.id,
                "created_on_ms": secret.created_on_ms,
                "expires_on_ms": secret.expires_on_ms,
                "expired": secret.is_expired(now_ms),
            }
            for secret in await _list(context, CredentialKind.CLIENT_SECRET, partner_id)
        ]
    }


async def add_secret(context: AdminContext, new_secret: NewSecret, partner_id: int) -> Any:
    """Create a client secret; it is shown only once."""
    secret = await _add(context, CredentialKind.CLIENT_SECRET, partner_id, expires_on_ms=new_secret.expires_on_ms)
    return {"client_secret": secret}


async def revoke_secret(context: AdminContext, options: SecretRevocation, partner_id: int, secret_id: str) -> Any:
    """Revoke a client secret at once, with the partner tokens it has issued."""
    ended = await _revoke(context, CredentialKind.CLIENT_SECRET, partner_id, secret_id, options.keep_tokens)
    return {"revoked": secret_id, "tokens_ended": ended}


async def list_keys(context: AdminContext, partner_id: int) -> Any:
    """Return the ids and names of a partner's API keys, never the keys."""
    keys = await _list(context, CredentialKind.API_KEY, partner_id)
    return {"api_keys": [{"id": key.id, "name": key.name, "created_on_ms": key.created_on_ms} for key in keys]}


async def add_key(context: AdminContext, new_key: NewKey, partner_id: int) -> Any:
    """Create an API key; it is shown only once."""
    return {"api_key": await _add(context, CredentialKind.API_KEY, partner_id, new_key.name)}


async def revoke_key(context: AdminContext, partner_id: int, key_id: str) -> Any:
    """Revoke an API key by its id, at once."""
    await _revoke(context, CredentialKind.API_KEY, partner_id, key_id)
    return {"revoked": key_id}


async def revoke_key_by_text(context: AdminContext, key: KeyToRevoke) -> Any:
    """Revoke an API key by its text, at once; its partner need not be known."""
    ended = await context.database.write(stored.revoke_api_key, hash_secret(key.api_key))
    context.directory.invalidate()
    if ended is None:
        raise resource_not_found("API key", "api_key")
    return {"revoked": True}


async def _list(context: AdminContext, kind: CredentialKind, partner_id: int) -> list[PartnerCredential]:
    await partner_of(context, partner_id)
    return await context.database.read(stored.list_credentials, kind, partner_id)


async def _add(
    context: AdminContext, kind: CredentialKind, partner_id: int, name: str = "", expires_on_ms: int | None = None
) -> str:
    await partner_of(context, partner_id)
    now_ms = context.clock.now_ms()
    if expires_on_ms is not None and expires_on_ms <= now_ms:
        text = "expires_on_ms must lie in the future, or be null."
        raise ApiError(ErrorCode.FIELD_BROKEN, text, field="expires_on_ms", accepted="a time in the future, or null")
    secret = context.ids.secret()
    await context.database.write(
        stored.add_credential, kind, partner_id, hash_secret(secret), now_ms, name, expires_on_ms
    )
    return secret


async def _revoke(
    context: AdminContext, kind: CredentialKind, partner_id: int, credential_id: str, keep_tokens: bool = False
) -> int:
    ended = await context.database.write(stored.revoke_credential, kind, partner_id, credential_id, keep_tokens)
    context.directory.invalidate()
    if ended is None:
        raise ApiError(ErrorCode.NOT_FOUND, f"The partner has no such {kind}.")
    return ended
