"""An app's credentials in addition to its app token: additional keys, and minted tokens, which expire."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Annotated, Any, Final, Literal

from msgspec import Struct
from msgspec.structs import astuple, replace

from waypost.api.authorisation import Credential
from waypost.api.fields import Field
from waypost.api.idempotency import commit
from waypost.api.operation import APP, AppCall, Operations
from waypost.api.requests import ApiResponse
from waypost.api.route import IdempotencyMode
from waypost.api.services import Services
from waypost.base.encryption import TOKEN_PREFIX, hash_secret
from waypost.domain.app import (
    MAX_ADDITIONAL_KEYS,
    MAX_MINTED_TOKEN_LIFE_MS,
    MAX_MINTED_TOKENS,
    MIN_MINTED_TOKEN_LIFE_MS,
    AppKey,
    KeyStatus,
)
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.domain.partner import Partner, PartnerCredential
from waypost.store.accounts.partners import partner_by_id
from waypost.store.apps.keys import (
    DuplicateKeyName,
    LastKey,
    TooManyKeys,
    add_app_key,
    app_key_by_hash,
    list_app_keys,
    revoke_additional_key,
    revoke_app_key,
    revoke_minted_tokens,
)
from waypost.wire.responses import Success, success

MAX_KEY_NAME_CHARS: Final = 100
_KEY_DIGITS: Final = 32
KEY_ENDING_CHARS = 4
"""How much of a key is stored as text, so that lists show which it is."""


operation = Operations("ledger 1.11", Credential.PARTNER_TOKEN, at_operator=False)
_key_operation = partial(
    operation, source="ledger 1.1; facts 1.4; decision 0024", rate="app_token", other_app=ErrorCode.APP_NOT_LINKED
)
_token_operation = partial(operation, rate="app_token", other_app=ErrorCode.PARTNER_NOT_AUTHORIZED)


def _read_status(text: str, field: str) -> str:
    status = text.strip().upper()
    if status and status not in list(KeyStatus):
        raise invalid_field(field, f"one of {', '.join(KeyStatus)}")
    return status


class NewAdditionalKey(Struct):
    """An additional key to create."""

    name: Annotated[
        str, Field("A name for the key; `key` or `key 2` when absent.", "warehouse", max_chars=MAX_KEY_NAME_CHARS)
    ] = ""


class KeyItself(Struct):
    """A key."""

    key: Annotated[
        str,
        Field(
            "The key to revoke, as it was shown at its creation.",
            "sk_0123456789abcdef0123456789abcdef",
            "one of the app's additional keys",
        ),
    ]


class NewExpiringToken(Struct):
    """A token to create, which expires."""

    name: Annotated[
        str,
        Field(
            "A name for the token, unique among the app's active ones.",
            "night-job",
            "a name, unique among the app's active tokens",
            max_chars=MAX_KEY_NAME_CHARS,
        ),
    ]
    expiry: Annotated[
        int | None,
        Field(
            "The expiry time in milliseconds since the epoch: 1 to 24 hours from now; 24 hours when absent.",
            "1790000000000",
        ),
    ] = None


class TokenFilter(Struct):
    """Tokens with a status, and a part of a name."""

    status: Annotated[
        str,
        Field(
            "Only tokens with this status: ACTIVE, EXPIRED or REVOKED.",
            "ACTIVE",
            read=_read_status,
            errors=(ErrorCode.FIELD_BROKEN,),
        ),
    ] = ""
    name: Annotated[str, Field("Only tokens with this in their name.", "night")] = ""


TokenName = Annotated[str, Field("The name of an active token, instead of its id.", "night-job")]
TokenItself = Annotated[str, Field("The token itself, instead of its id.")]


class ChosenToken(Struct):
    """One of the app's tokens."""

    id: Annotated[
        str,
        Field(
            "The id of one of the app's tokens; exactly one of `id`, `name` and `token` is sent.",
            "01990000-0000-7000-8000-000000000002",
        ),
    ] = ""
    name: TokenName = ""
    token: TokenItself = ""


class ListedKey(Struct, rename="camel"):
    """An additional key: of the key itself only the ending.

    The documented members come first; the others are read by clients of the older shape.

    Source: ledger 1.1; facts 1.4.
    """

    token: str
    created_on: int
    modified_on: int
    id: str
    name: str
    active: bool
    expires_on: int


class CreatedKey(ListedKey):
    """A created key with its secret."""

    api_key: str


class ListedToken(Struct, rename="camel"):
    """A token without its secret. Source: ledger 1.11."""

    id: str
    name: str
    created_by_email: str
    created_on: int
    expired_on: int
    revoked_on: int | None
    status: Literal[KeyStatus.ACTIVE, KeyStatus.EXPIRED, KeyStatus.REVOKED]


@_key_operation(
    "POST",
    f"{APP}/apikey",
    success(key=ListedKey, apiKey=CreatedKey),
    rate="create_key",
    errors=(ErrorCode.TOKEN_NAME_IN_USE, ErrorCode.TOO_MANY_KEYS),
    idempotency=IdempotencyMode.ONE_TRANSACTION,
)
async def create_app_key(call: AppCall, fields: NewAdditionalKey) -> ApiResponse:
    """Create an additional key, which is valid where the app token is and does not expire; shown only once.

    Errors in this order: 401, 403 another partner's app, 429, 400 an invalid name, 400 too many keys, 409 a
    duplicate name.
    """
    now_ms = call.services.clock.now_ms()

    def make_response(key: AppKey, secret: str) -> ApiResponse:
        item = replace(_listed_key(key, now_ms), token=secret)
        created = CreatedKey(*astuple(item), api_key=secret)
        return ApiResponse({"status": "success", "key": item, "apiKey": created})

    return await _add(call, fields.name, expires_on_ms=None, make_response=make_response)


@_key_operation("GET", f"{APP}/apikey", success(keys=list[ListedKey], apiKeys=list[ListedKey]))
async def list_keys(call: AppCall) -> dict[str, Any]:
    """Return the app's additional keys without their secrets."""
    keys = await _stored_keys(call, minted=False)
    now_ms = call.services.clock.now_ms()
    return _list_of_keys([key for key in keys if key.status(now_ms) is KeyStatus.ACTIVE], now_ms)


@_key_operation(
    "POST",
    f"{APP}/apikey/revoke",
    success(keys=list[ListedKey], apiKeys=list[ListedKey]),
    source="ledger 1.1",
    errors=(ErrorCode.LAST_KEY, ErrorCode.KEY_UNKNOWN),
)
async def revoke_key(call: AppCall, fields: KeyItself) -> dict[str, Any]:
    """Revoke an additional key, named by the key itself, and return the others; the last one stays.

    Errors in this order: 401, 403 another partner's app, 429, 400 no key, 400 not one of the app's, 403 the last.
    """
    app, now_ms = call.app, call.services.clock.now_ms()
    try:
        others = await call.services.database.write(revoke_additional_key, app.id, hash_secret(fields.key), now_ms)
    except LastKey as error:
        raise ApiError(
            ErrorCode.LAST_KEY,
            "Create another key first, or delete this one by its id with DELETE.",
            text=f"Cannot revoke secondary API key; the app must have at least one secondary API key. appId: {app.id}",
        ) from error
    if others is None:
        raise ApiError(
            ErrorCode.KEY_UNKNOWN,
            "key must be one of the app's additional keys, as it was shown at its creation.",
            field="key",
            text=f"Failed to get api keys for appId {app.id}",
        )
    call.services.directory.invalidate()
    return _list_of_keys(others, now_ms)


def _listed_key(key: AppKey, now_ms: int) -> ListedKey:
    token, is_active = TOKEN_PREFIX + key.ending.rjust(_KEY_DIGITS, "*"), key.status(now_ms) is KeyStatus.ACTIVE
    return ListedKey(token, key.created_on_ms, key.created_on_ms, key.id, key.name, is_active, 0)


def _list_of_keys(keys: list[AppKey], now_ms: int) -> dict[str, Any]:
    items = [_listed_key(key, now_ms) for key in keys]
    return {"status": "success", "keys": items, "apiKeys": items}


@_key_operation(
    "DELETE", f"{APP}/apikey/{{key_id}}", Success, source="facts 1.4; decision 0024", errors=(ErrorCode.FIELD_BROKEN,)
)
async def revoke_app_key_by_its_id(call: AppCall) -> None:
    """Revoke an additional key at once."""
    key = await _revoke(call, call.request.path["key_id"], minted=False)
    if key is None or key.revoked_on_ms is not None:
        raise ApiError(ErrorCode.FIELD_BROKEN, "The path must end with the id of one of the app's keys.")


@_token_operation(
    "POST",
    f"{APP}/token",
    success(token=str, id=str),
    credential=Credential.UNIVERSAL_TOKEN,
    errors=(ErrorCode.FIELD_BROKEN, ErrorCode.TOKEN_NAME_IN_USE, ErrorCode.TOO_MANY_TOKENS),
    idempotency=IdempotencyMode.ONE_TRANSACTION,
)
async def create_app_token_that_expires(call: AppCall, fields: NewExpiringToken) -> ApiResponse:
    """Create an app token that expires, after 24 hours unless `expiry` is sooner; shown only once.

    A universal token is required: a partner token from login, an app token and a key get 401. The console, which has
    no universal token, calls with a partner token of its own.

    Errors in this order: 401, 400 another partner's app, 429, 400 a missing or invalid field, 409 a duplicate name,
    409 three are active.

    Source: ledger 1.11; facts 1.5.
    """
    now_ms = call.services.clock.now_ms()
    expiry = now_ms + MAX_MINTED_TOKEN_LIFE_MS if fields.expiry is None else fields.expiry
    if not MIN_MINTED_TOKEN_LIFE_MS <= expiry - now_ms <= MAX_MINTED_TOKEN_LIFE_MS:
        raise invalid_field("expiry", "milliseconds since the epoch, from 1 hour to 24 hours from now")

    def make_response(key: AppKey, secret: str) -> ApiResponse:
        return ApiResponse({"status": "success", "token": secret, "id": key.id})

    return await _add(call, fields.name, expires_on_ms=expiry, make_response=make_response)


@_token_operation(
    "GET", f"{APP}/tokens", success(tokens=list[ListedToken]), credential=Credential.APP_TOKEN, rate="app_tokens"
)
async def list_app_tokens(call: AppCall, query: TokenFilter) -> dict[str, Any]:
    """Return the app's minted tokens without their secrets, newest first, optionally of one status or name."""
    partner = await call.services.database.read(partner_by_id, call.app.partner_id)
    tokens = await _stored_keys(call, minted=True)
    return {"status": "success", "tokens": listed_tokens(call.services, query, reversed(tokens), partner)}


@_token_operation(
    "POST",
    f"{APP}/token/revoke",
    success(scope=Literal["id", "name", "jti"]),
    errors=(ErrorCode.FIELD_BROKEN, ErrorCode.TOKEN_HAS_EXPIRED),
)
async def revoke_app_token(call: AppCall, fields: ChosenToken) -> dict[str, Any]:
    """Revoke a minted token at once, named by its id, its name or itself; 410 if it has already expired.

    Source: ledger 1.11; facts 1.5.
    """
    name, text = chosen_token(fields)
    key_id, now_ms = text, call.services.clock.now_ms()
    if name == "token":
        token = await call.services.database.read(app_key_by_hash, hash_secret(text))
        key_id = "" if token is None else token.id
    elif name == "name":
        tokens = await _stored_keys(call, minted=True)
        active = (token.id for token in tokens if token.name == text and token.status(now_ms) is KeyStatus.ACTIVE)
        key_id = next(active, "")
    key = await _revoke(call, key_id, minted=True)
    if key is None:
        raise invalid_field(name, f"the {name} of one of the app's tokens")
    if key.status(now_ms) is KeyStatus.EXPIRED:
        raise ApiError(ErrorCode.TOKEN_HAS_EXPIRED, "The token has expired already.")
    return {"status": "success", "scope": scope_of(name)}


@_token_operation("POST", f"{APP}/token/revoke-all", success(appTokensRevoked=str))
async def revoke_all_app_tokens_that_expire(call: AppCall) -> dict[str, Any]:
    """Revoke every active minted token of the app at once."""
    services = call.services
    revoked = await services.database.write(revoke_minted_tokens, call.app.id, services.clock.now_ms())
    services.directory.invalidate()
    return {"status": "success", "appTokensRevoked": str(revoked)}


def listed_tokens(
    services: Services, query: TokenFilter, tokens: Iterable[AppKey | PartnerCredential], partner: Partner | None
) -> list[ListedToken]:
    """Return the tokens of the status and the name in a query."""
    email = "" if partner is None else partner.email
    now_ms = services.clock.now_ms()
    statuses = [(token, token.status(now_ms)) for token in tokens if query.name in token.name]
    return [
        ListedToken(
            token.id, token.name, email, token.created_on_ms, token.expires_on_ms or 0, token.revoked_on_ms, status
        )
        for token, status in statuses
        if query.status in ("", status)
    ]


def chosen_token(fields: Struct) -> tuple[str, str]:
    """Return the field by which a request names a token, and its value. Source: ledger 1.11.

    Raises:
        ApiError: there is not exactly one.
    """
    sent = [(name, text) for name in ("id", "name", "token") if (text := getattr(fields, name))]
    if len(sent) != 1:
        raise ApiError(ErrorCode.FIELD_BROKEN, "supply exactly one of id, token, name")
    return sent[0]


def scope_of(field: str) -> str:
    """Return the name by which a response says how a token was chosen. Source: ledger 1.11."""
    return "jti" if field == "token" else field


async def _add(
    call: AppCall, name: str, *, expires_on_ms: int | None, make_response: Callable[[AppKey, str], ApiResponse]
) -> ApiResponse:
    services, request, app = call
    now_ms = services.clock.now_ms()
    secret = TOKEN_PREFIX + services.ids.secret()
    key = AppKey(
        services.ids.new(), app.partner_id, app.id, name, now_ms, expires_on_ms, ending=secret[-KEY_ENDING_CHARS:]
    )
    limit, kind = (MAX_ADDITIONAL_KEYS, "key") if expires_on_ms is None else (MAX_MINTED_TOKENS, "token")
    try:
        return await commit(
            services,
            request,
            partial(add_app_key, key=key, key_hash=hash_secret(secret), max_keys=limit, now_ms=now_ms),
            make_response=lambda stored: make_response(stored, secret),
        )
    except DuplicateKeyName as error:
        raise ApiError(
            ErrorCode.TOKEN_NAME_IN_USE, f"name {name} is taken by an active {kind}; choose another."
        ) from error
    except TooManyKeys as error:
        code = ErrorCode.TOO_MANY_KEYS if expires_on_ms is None else ErrorCode.TOO_MANY_TOKENS
        raise ApiError(code, f"At most {limit} {kind}s may be active per app; revoke one first.") from error


async def _stored_keys(call: AppCall, *, minted: bool) -> list[AppKey]:
    return await call.services.database.read(partial(list_app_keys, app_id=call.app.id, minted=minted))


async def _revoke(call: AppCall, key_id: str, *, minted: bool) -> AppKey | None:
    services, now_ms = call.services, call.services.clock.now_ms()
    key = await services.database.write(
        partial(revoke_app_key, app_id=call.app.id, key_id=key_id, now_ms=now_ms, minted=minted)
    )
    services.directory.invalidate()
    return key
