"""Endpoints for an app's credentials beside its app token: additional keys, and minted tokens, which expire."""

from collections.abc import Callable
from functools import partial

from waypost.api.auth.authorisation import admitted_app
from waypost.api.http.requests import Answer, Request
from waypost.api.idempotency import commit
from waypost.api.services import Services
from waypost.base.encryption import TOKEN_PREFIX, hash_of
from waypost.domain.app import LONGEST_LIFE_MS, MOST_MINTED, MOST_SECOND_KEYS, SHORTEST_LIFE_MS, App, AppKey, KeyStatus
from waypost.domain.coercion import read_integer
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.store.apps.keys import NameTaken, TooManyKeys, add_app_key, app_keys_of, revoke_app_key
from waypost.wire.apps import key_object, token_object

LONGEST_NAME = 100


async def create_key(services: Services, request: Request) -> Answer:
    """Create an additional key, which is valid where the app token is and does not expire; shown only once.

    Errors in this order: 401, 429, 400 an invalid name, 409 too many keys.

    Source: facts 1.4; decision 0024.
    """
    app = await admitted_app(services, request)
    name = _name(request.form_or_json().text("name") or "key")
    now_ms = services.clock.now_ms()

    def make_response(key: AppKey, secret: str) -> Answer:
        item = key_object(key, now_ms) | {"apiKey": secret}
        return Answer({"status": "success", "apiKey": item})

    return await _add(services, request, app, name, expires_on_ms=None, answer=make_response)


async def list_keys(services: Services, request: Request) -> Answer:
    """Return the app's additional keys without their secrets. Source: facts 1.4."""
    app = await admitted_app(services, request)
    now_ms = services.clock.now_ms()
    keys = await _held(services, app, minted=False)
    active = [key for key in keys if key.status(now_ms) is KeyStatus.ACTIVE]
    return Answer({"status": "success", "apiKeys": [key_object(key, now_ms) for key in active]})


async def delete_key(services: Services, request: Request) -> Answer:
    """Revoke an additional key at once. Source: facts 1.4."""
    app = await admitted_app(services, request)
    key = await _revoke(services, app, request.path["key_id"], minted=False)
    if key is None or key.revoked_on_ms is not None:
        raise ApiError(ErrorCode.FIELD_BROKEN, "The path must end with the id of one of the app's keys.")
    return Answer({"status": "success"})


async def mint_token(services: Services, request: Request) -> Answer:
    """Create an app token that expires; shown only once.

    Errors in this order: 401, 429, 400 a missing or invalid field, 409 a duplicate name, 409 three
    are active.

    Source: facts 1.5.
    """
    app = await admitted_app(services, request)
    form = request.form_or_json()
    name = _name(form.required("name", "a name, unique among the app's active tokens"))
    expiry = read_integer(form.required("expiry", "milliseconds since the epoch"), "expiry")
    life_ms = expiry - services.clock.now_ms()
    if not SHORTEST_LIFE_MS <= life_ms <= LONGEST_LIFE_MS:
        raise invalid_field("expiry", "milliseconds since the epoch, from 1 hour to 24 hours from now")

    def make_response(key: AppKey, secret: str) -> Answer:
        return Answer({"status": "success", "token": secret, "id": key.id})

    return await _add(services, request, app, name, expires_on_ms=expiry, answer=make_response)


async def list_tokens(services: Services, request: Request) -> Answer:
    """Return the app's minted tokens without their secrets, optionally of one status. Source: facts 1.5."""
    app = await admitted_app(services, request)
    status = (request.query("status") or "").strip().upper()
    if status and status not in list(KeyStatus):
        raise invalid_field("status", f"one of {', '.join(KeyStatus)}")
    now_ms = services.clock.now_ms()
    tokens = [token_object(key, now_ms) for key in await _held(services, app, minted=True)]
    chosen = [token for token in tokens if not status or token["status"] == status]
    return Answer({"status": "success", "tokens": chosen})


async def revoke_token(services: Services, request: Request) -> Answer:
    """Revoke a minted token at once; 410 if it has already expired.

    Source: facts 1.5.
    """
    app = await admitted_app(services, request)
    token_id = request.form_or_json().required("id", "the id of one of the app's tokens")
    key = await _revoke(services, app, token_id, minted=True)
    if key is None:
        raise invalid_field("id", "the id of one of the app's tokens")
    if key.status(services.clock.now_ms()) is KeyStatus.EXPIRED:
        raise ApiError(ErrorCode.TOKEN_HAS_EXPIRED, "The token has expired already.")
    return Answer({"status": "success"})


async def _add(
    services: Services,
    request: Request,
    app: App,
    name: str,
    *,
    expires_on_ms: int | None,
    answer: Callable[[AppKey, str], Answer],
) -> Answer:
    now_ms = services.clock.now_ms()
    key = AppKey(services.ids.new(), app.partner_id, app.id, name, now_ms, expires_on_ms)
    secret = TOKEN_PREFIX + services.ids.secret()
    limit = MOST_SECOND_KEYS if expires_on_ms is None else MOST_MINTED
    try:
        return await commit(
            services,
            request,
            partial(add_app_key, key=key, key_hash=hash_of(secret), most=limit, now_ms=now_ms),
            answer=lambda _: answer(key, secret),
        )
    except NameTaken as error:
        raise ApiError(ErrorCode.TOKEN_NAME_TAKEN, f"name {name} is taken by an active one; choose another.") from error
    except TooManyKeys as error:
        raise ApiError(
            ErrorCode.TOO_MANY_TOKENS, f"At most {limit} may be active per app; revoke one first."
        ) from error


async def _held(services: Services, app: App, *, minted: bool) -> list[AppKey]:
    return await services.database.read(partial(app_keys_of, app_id=app.id, minted=minted))


async def _revoke(services: Services, app: App, key_id: str, *, minted: bool) -> AppKey | None:
    now_ms = services.clock.now_ms()
    key = await services.database.write(
        partial(revoke_app_key, app_id=app.id, key_id=key_id, now_ms=now_ms, minted=minted)
    )
    services.directory.forget()
    return key


def _name(name: str) -> str:
    if len(name) > LONGEST_NAME:
        raise invalid_field("name", f"at most {LONGEST_NAME} characters")
    return name
