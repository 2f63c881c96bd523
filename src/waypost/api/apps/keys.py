"""Endpoints for an app's credentials in addition to its app token: additional keys, and minted tokens, which expire."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from waypost.api.auth.authorisation import authorise_app
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.idempotency import commit
from waypost.api.services import Services
from waypost.base.encryption import TOKEN_PREFIX, hash_secret
from waypost.domain.app import (
    MAX_ADDITIONAL_KEYS,
    MAX_MINTED_TOKEN_LIFE_MS,
    MAX_MINTED_TOKENS,
    MIN_MINTED_TOKEN_LIFE_MS,
    App,
    AppKey,
    KeyStatus,
)
from waypost.domain.coercion import read_integer
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
from waypost.wire.apps import key_object
from waypost.wire.forms import Form
from waypost.wire.login import token_objects

MAX_KEY_NAME_CHARS = 100
KEY_ENDING_CHARS = 4
"""How much of a key is stored as text, so that lists show which it is."""


async def create_key(services: Services, request: Request) -> ApiResponse:
    """Create an additional key, which is valid where the app token is and does not expire; shown only once.

    Errors in this order: 401, 403 another partner's app, 429, 400 an invalid name, 400 too many keys, 409 a
    duplicate name.

    Source: ledger 1.1; facts 1.4; decision 0024.
    """
    app = await authorise_app(services, request)
    name = checked_name(request.form_or_json().text("name") or "")
    now_ms = services.clock.now_ms()

    def make_response(key: AppKey, secret: str) -> ApiResponse:
        item = key_object(key, now_ms) | {"token": secret}
        return ApiResponse({"status": "success", "key": item, "apiKey": item | {"apiKey": secret}})

    return await _add(services, request, app, name, expires_on_ms=None, make_response=make_response)


async def list_keys(services: Services, request: Request) -> ApiResponse:
    """Return the app's additional keys without their secrets. Source: ledger 1.1; facts 1.4."""
    app = await authorise_app(services, request)
    keys = await _stored_keys(services, app, minted=False)
    now_ms = services.clock.now_ms()
    return _keys_response([key for key in keys if key.status(now_ms) is KeyStatus.ACTIVE], now_ms)


async def revoke_key(services: Services, request: Request) -> ApiResponse:
    """Revoke an additional key, named by the key itself, and return the others; the last one stays.

    Errors in this order: 401, 403 another partner's app, 429, 400 no key, 400 not one of the app's, 403 the last.

    Source: ledger 1.1.
    """
    app = await authorise_app(services, request)
    key = request.form_or_json().required("key", "one of the app's additional keys")
    now_ms = services.clock.now_ms()
    try:
        others = await services.database.write(revoke_additional_key, app.id, hash_secret(key), now_ms)
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
    services.directory.invalidate()
    return _keys_response(others, now_ms)


def _keys_response(keys: list[AppKey], now_ms: int) -> ApiResponse:
    items = [key_object(key, now_ms) for key in keys]
    return ApiResponse({"status": "success", "keys": items, "apiKeys": items})


async def delete_key(services: Services, request: Request) -> ApiResponse:
    """Revoke an additional key at once. Source: facts 1.4."""
    app = await authorise_app(services, request)
    key = await _revoke(services, app, request.path["key_id"], minted=False)
    if key is None or key.revoked_on_ms is not None:
        raise ApiError(ErrorCode.FIELD_BROKEN, "The path must end with the id of one of the app's keys.")
    return ApiResponse({"status": "success"})


async def mint_token(services: Services, request: Request) -> ApiResponse:
    """Create an app token that expires, after 24 hours unless `expiry` is sooner; shown only once.

    A universal token is required: a partner token from login, an app token and a key get 401. The console, which has
    no universal token, calls with a partner token of its own.

    Errors in this order: 401, 400 another partner's app, 429, 400 a missing or invalid field, 409 a duplicate name,
    409 three are active.

    Source: ledger 1.11; facts 1.5.
    """
    app = await authorise_app(services, request)
    form = request.form_or_json()
    name = checked_name(form.required("name", "a name, unique among the app's active tokens"))
    now_ms, text = services.clock.now_ms(), form.text("expiry")
    expiry = read_integer(text, "expiry") if text else now_ms + MAX_MINTED_TOKEN_LIFE_MS
    life_ms = expiry - now_ms
    if not MIN_MINTED_TOKEN_LIFE_MS <= life_ms <= MAX_MINTED_TOKEN_LIFE_MS:
        raise invalid_field("expiry", "milliseconds since the epoch, from 1 hour to 24 hours from now")

    def make_response(key: AppKey, secret: str) -> ApiResponse:
        return ApiResponse({"status": "success", "token": secret, "id": key.id})

    return await _add(services, request, app, name, expires_on_ms=expiry, make_response=make_response)


async def list_tokens(services: Services, request: Request) -> ApiResponse:
    """Return the app's minted tokens without their secrets, newest first, optionally of one status or name.

    Source: ledger 1.11.
    """
    app = await authorise_app(services, request)
    partner = await services.database.read(partner_by_id, app.partner_id)
    tokens = await _stored_keys(services, app, minted=True)
    return ApiResponse({"status": "success", "tokens": listed_tokens(services, request, reversed(tokens), partner)})


async def revoke_token(services: Services, request: Request) -> ApiResponse:
    """Revoke a minted token at once, named by its id, its name or itself; 410 if it has already expired.

    Source: ledger 1.11; facts 1.5.
    """
    app = await authorise_app(services, request)
    name, text = chosen_token(request.form_or_json())
    key_id, now_ms = text, services.clock.now_ms()
    if name == "token":
        token = await services.database.read(app_key_by_hash, hash_secret(text))
        key_id = "" if token is None else token.id
    elif name == "name":
        tokens = await _stored_keys(services, app, minted=True)
        active = (token.id for token in tokens if token.name == text and token.status(now_ms) is KeyStatus.ACTIVE)
        key_id = next(active, "")
    key = await _revoke(services, app, key_id, minted=True)
    if key is None:
        raise invalid_field(name, f"the {name} of one of the app's tokens")
    if key.status(now_ms) is KeyStatus.EXPIRED:
        raise ApiError(ErrorCode.TOKEN_HAS_EXPIRED, "The token has expired already.")
    return ApiResponse({"status": "success", "scope": scope_of(name)})


async def revoke_all_tokens(services: Services, request: Request) -> ApiResponse:
    """Revoke every active minted token of the app at once. Source: ledger 1.11."""
    app = await authorise_app(services, request)
    revoked = await services.database.write(revoke_minted_tokens, app.id, services.clock.now_ms())
    services.directory.invalidate()
    return ApiResponse({"status": "success", "appTokensRevoked": str(revoked)})


def listed_tokens(
    services: Services, request: Request, tokens: Iterable[AppKey | PartnerCredential], partner: Partner | None
) -> list[dict[str, Any]]:
    """Return the tokens of the status and the name in the query.

    Raises:
        ApiError: there is no such status.
    """
    status = (request.query("status") or "").strip().upper()
    if status and status not in list(KeyStatus):
        raise invalid_field("status", f"one of {', '.join(KeyStatus)}")
    email, name_part = "" if partner is None else partner.email, request.query("name") or ""
    return token_objects(tokens, email, services.clock.now_ms(), status=status, name_part=name_part)


def chosen_token(form: Form) -> tuple[str, str]:
    """Return the field by which a request names a token, and its value. Source: ledger 1.11.

    Raises:
        ApiError: there is not exactly one.
    """
    sent = [(name, text) for name in ("id", "name", "token") if (text := form.text(name))]
    if len(sent) != 1:
        raise ApiError(ErrorCode.FIELD_BROKEN, "supply exactly one of id, token, name")
    return sent[0]


def scope_of(field: str) -> str:
    """Return the name by which a response says how a token was chosen. Source: ledger 1.11."""
    return "jti" if field == "token" else field


async def _add(
    services: Services,
    request: Request,
    app: App,
    name: str,
    *,
    expires_on_ms: int | None,
    make_response: Callable[[AppKey, str], ApiResponse],
) -> ApiResponse:
    now_ms = services.clock.now_ms()
    secret = TOKEN_PREFIX + services.ids.secret()
    key = AppKey(
        services.ids.new(), app.partner_id, app.id, name, now_ms, expires_on_ms, ending=secret[-KEY_ENDING_CHARS:]
    )
    limit = MAX_ADDITIONAL_KEYS if expires_on_ms is None else MAX_MINTED_TOKENS
    try:
        return await commit(
            services,
            request,
            partial(add_app_key, key=key, key_hash=hash_secret(secret), max_keys=limit, now_ms=now_ms),
            make_response=lambda stored: make_response(stored, secret),
        )
    except DuplicateKeyName as error:
        raise ApiError(
            ErrorCode.TOKEN_NAME_IN_USE, f"name {name} is taken by an active one; choose another."
        ) from error
    except TooManyKeys as error:
        code = ErrorCode.TOO_MANY_KEYS if expires_on_ms is None else ErrorCode.TOO_MANY_TOKENS
        raise ApiError(code, f"At most {limit} may be active per app; revoke one first.") from error


async def _stored_keys(services: Services, app: App, *, minted: bool) -> list[AppKey]:
    return await services.database.read(partial(list_app_keys, app_id=app.id, minted=minted))


async def _revoke(services: Services, app: App, key_id: str, *, minted: bool) -> AppKey | None:
    now_ms = services.clock.now_ms()
    key = await services.database.write(
        partial(revoke_app_key, app_id=app.id, key_id=key_id, now_ms=now_ms, minted=minted)
    )
    services.directory.invalidate()
    return key


def checked_name(name: str) -> str:
    """Return the name of a key or token.

    Raises:
        ApiError: it is too long.
    """
    if len(name) > MAX_KEY_NAME_CHARS:
        raise invalid_field("name", f"at most {MAX_KEY_NAME_CHARS} characters")
    return name
