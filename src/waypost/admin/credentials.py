"""The admin API's operations on client secrets, API keys and universal tokens, which share one life cycle."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from waypost.admin.operation import AdminOperations
from waypost.admin.provisioning import AdminContext, partner_of
from waypost.base.clock import DAY_MS
from waypost.base.encryption import UNIVERSAL_TOKEN_PREFIX, hash_secret
from waypost.domain.app import KeyStatus
from waypost.domain.errors import ApiError, ErrorCode, invalid_field, resource_not_found
from waypost.domain.partner import PartnerCredential
from waypost.store.accounts import credentials as stored
from waypost.store.accounts.credentials import CredentialKind
from waypost.wire.responses import response

MIN_UNIVERSAL_TOKEN_LIFE_MS: Final = DAY_MS  # Source: ledger C4
MAX_UNIVERSAL_TOKEN_LIFE_MS: Final = 60 * DAY_MS
MAX_TOKEN_NAME_CHARS: Final = 100

operation = AdminOperations()


class NewSecret(msgspec.Struct, forbid_unknown_fields=True):
    """A client secret to create; without an expiry time it does not expire."""

    expires_on_ms: Annotated[int | None, Meta(description="Without it, the secret does not expire.")] = None


class SecretRevocation(msgspec.Struct):
    """The options of revoking a client secret."""

    keep_tokens: Annotated[
        bool, Meta(description="Keep the partner tokens that it has issued, which live up to a day.")
    ] = False


class NewKey(msgspec.Struct, forbid_unknown_fields=True):
    """An API key to create."""

    name: Annotated[str, Meta(description="Its name in lists.")] = "key"


class NewToken(msgspec.Struct, forbid_unknown_fields=True):
    """A universal token to create, which expires 24 hours to 60 days from now."""

    expires_on_ms: Annotated[int, Meta(description="24 hours to 60 days from now.")]
    name: Annotated[str, Meta(description="Its name in lists.")] = "token"


class KeyToRevoke(msgspec.Struct, forbid_unknown_fields=True):
    """An API key in plain text, to revoke."""

    api_key: Annotated[str, Meta(description="The key in plain text.")]


class ListedSecret(msgspec.Struct):
    """The dates of a client secret."""

    id: str
    created_on_ms: int
    expires_on_ms: int | None
    expired: bool


class ListedApiKey(msgspec.Struct):
    """The name of an API key."""

    id: str
    name: str
    created_on_ms: int


class ListedUniversalToken(msgspec.Struct):
    """The name and dates of a universal token."""

    id: str
    name: str
    created_on_ms: int
    expires_on_ms: int | None
    expired: bool
    revoked_on_ms: int | None


@operation("GET", "/admin/partners/{partner_id}/client-secrets", response(client_secrets=list[ListedSecret]))
async def list_secrets(context: AdminContext, partner_id: int) -> dict[str, Any]:
    """Return the ids and dates of a partner's client secrets, never the secrets."""
    now_ms = context.clock.now_ms()
    secrets = [
        ListedSecret(each.id, each.created_on_ms, each.expires_on_ms, each.status(now_ms) is KeyStatus.EXPIRED)
        for each in await _list(context, CredentialKind.CLIENT_SECRET, partner_id)
    ]
    return {"client_secrets": secrets}


@operation("POST", "/admin/partners/{partner_id}/client-secrets", response(client_secret=str))
async def add_secret(context: AdminContext, new_secret: NewSecret, partner_id: int) -> dict[str, Any]:
    """Create a client secret; it is shown only once."""
    secret = await _add(context, CredentialKind.CLIENT_SECRET, partner_id, expires_on_ms=new_secret.expires_on_ms)
    return {"client_secret": secret}


@operation("DELETE", "/admin/partners/{partner_id}/client-secrets/{secret_id}", response(revoked=str, tokens_ended=int))
async def revoke_secret(
    context: AdminContext, options: SecretRevocation, partner_id: int, secret_id: str
) -> dict[str, Any]:
    """Revoke a client secret at once, with the partner tokens it has issued."""
    ended = await _revoke(context, CredentialKind.CLIENT_SECRET, partner_id, secret_id, options.keep_tokens)
    return {"revoked": secret_id, "tokens_ended": ended}


@operation("GET", "/admin/partners/{partner_id}/api-keys", response(api_keys=list[ListedApiKey]))
async def list_keys(context: AdminContext, partner_id: int) -> dict[str, Any]:
    """Return the ids and names of a partner's API keys, never the keys."""
    keys = await _list(context, CredentialKind.API_KEY, partner_id)
    return {"api_keys": [ListedApiKey(key.id, key.name, key.created_on_ms) for key in keys]}


@operation("POST", "/admin/partners/{partner_id}/api-keys", response(api_key=str))
async def add_key(context: AdminContext, new_key: NewKey, partner_id: int) -> dict[str, Any]:
    """Create an API key; it is shown only once."""
    return {"api_key": await _add(context, CredentialKind.API_KEY, partner_id, new_key.name)}


@operation("DELETE", "/admin/partners/{partner_id}/api-keys/{key_id}", response(revoked=str))
async def revoke_key(context: AdminContext, partner_id: int, key_id: str) -> dict[str, Any]:
    """Revoke an API key by its id, at once."""
    await _revoke(context, CredentialKind.API_KEY, partner_id, key_id)
    return {"revoked": key_id}


@operation("POST", "/admin/api-keys/revoke", response(revoked=bool))
async def revoke_key_by_text(context: AdminContext, key: KeyToRevoke) -> dict[str, Any]:
    """Revoke an API key by its text, at once; its partner need not be known."""
    ended = await context.database.write(stored.revoke_api_key, hash_secret(key.api_key))
    context.directory.invalidate()
    if ended is None:
        raise resource_not_found("API key", "api_key")
    return {"revoked": True}


@operation(
    "GET", "/admin/partners/{partner_id}/universal-tokens", response(universal_tokens=list[ListedUniversalToken])
)
async def list_tokens(context: AdminContext, partner_id: int) -> dict[str, Any]:
    """Return the ids, names and dates of a partner's universal tokens, never the tokens."""
    now_ms = context.clock.now_ms()
    tokens = [
        ListedUniversalToken(
            id=token.id,
            name=token.name,
            created_on_ms=token.created_on_ms,
            expires_on_ms=token.expires_on_ms,
            expired=token.status(now_ms) is KeyStatus.EXPIRED,
            revoked_on_ms=token.revoked_on_ms,
        )
        for token in await _list(context, CredentialKind.UNIVERSAL_TOKEN, partner_id)
    ]
    return {"universal_tokens": tokens}


@operation("POST", "/admin/partners/{partner_id}/universal-tokens", response(id=str, universal_token=str))
async def add_token(context: AdminContext, new_token: NewToken, partner_id: int) -> dict[str, Any]:
    """Create a universal token, valid for every app of the partner on both hosts; it is shown only once.

    Raises:
        ApiError: there is no such partner, the name or the expiry time is invalid, or three are active.
    """
    await partner_of(context, partner_id)
    now_ms = context.clock.now_ms()
    if not MIN_UNIVERSAL_TOKEN_LIFE_MS <= new_token.expires_on_ms - now_ms <= MAX_UNIVERSAL_TOKEN_LIFE_MS:
        raise invalid_field("expires_on_ms", "a time from 24 hours to 60 days from now")
    if not 1 <= len(new_token.name) <= MAX_TOKEN_NAME_CHARS:
        raise invalid_field("name", f"1 to {MAX_TOKEN_NAME_CHARS} characters")
    token = UNIVERSAL_TOKEN_PREFIX + context.ids.secret()
    try:
        token_id = await context.database.write(
            stored.add_universal_token, partner_id, hash_secret(token), now_ms, new_token.name, new_token.expires_on_ms
        )
    except stored.TooManyTokens as error:
        text = f"At most {stored.MAX_UNIVERSAL_TOKENS} universal tokens may be active; revoke one first."
        raise ApiError(ErrorCode.ALREADY_EXISTS, text) from error
    return {"id": token_id, "universal_token": token}


@operation("DELETE", "/admin/partners/{partner_id}/universal-tokens/{token_id}", response(revoked=str))
async def revoke_token(context: AdminContext, partner_id: int, token_id: str) -> dict[str, Any]:
    """Revoke a universal token at once; it stays listed for some time."""
    now_ms = context.clock.now_ms()
    is_revoked = await context.database.write(stored.revoke_universal_token, partner_id, token_id, now_ms)
    context.directory.invalidate()
    if not is_revoked:
        raise _no_such(CredentialKind.UNIVERSAL_TOKEN)
    return {"revoked": token_id}


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
        raise _no_such(kind)
    return ended


def _no_such(kind: CredentialKind) -> ApiError:
    return ApiError(ErrorCode.NOT_FOUND, f"The partner has no such {kind}.")
