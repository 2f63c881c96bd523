"""Credentials, and authorisation by them: which partner and which app a request is for."""

from enum import StrEnum
from typing import Final, NamedTuple

from waypost.api.requests import UNCOUNTED, Request
from waypost.api.services import Services
from waypost.base.encryption import TOKEN_PREFIX, UNIVERSAL_TOKEN_PREFIX, hash_secret
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.apps.apps import app_by_name
from waypost.wire.tokens import is_partner_token


class Credential(StrEnum):
    """The kind of credential that a route requires. Source: facts 1.1."""

    NONE = "none"
    PARTNER_TOKEN = "partner token"  # noqa: S105  a kind of credential, not one
    UNIVERSAL_TOKEN = "universal token"  # noqa: S105  likewise
    APP_TOKEN = "app token"  # noqa: S105  likewise
    API_KEY = "API key"


_OWN_APP_ERRORS: Final = {  # of another app's token of the same partner, by the error for other apps. Source: ledger 0
    ErrorCode.APP_ID_UNKNOWN: ErrorCode.NO_PERMISSION,
    ErrorCode.APP_NOT_FOUND: ErrorCode.NOT_FOR_THIS_APP,
}


class KeyHolder(NamedTuple):
    """The holder of the key in the header `apikey`."""

    partner_id: int
    # of an app's own token, which is valid for that app only; None: an account's key, which is valid for every app of
    # its partner
    app_token_hash: str | None = None


async def holder_of_api_key(services: Services, request: Request) -> KeyHolder:
    """Return the holder of the API key in the header `apikey`; an app's token is accepted there too.

    Source: spec, "Authentication"; facts 1.1.

    Raises:
        ApiError: the key is missing or unknown.
    """
    key = request.header(b"apikey")
    if key and key.startswith(UNIVERSAL_TOKEN_PREFIX):
        partner_id = await partner_of_wide_token(services, request, key)
        if partner_id is not None:
            request.note_caller(partner_id)
            return KeyHolder(partner_id)
    elif key:
        key_hash = hash_secret(key)
        if not key.startswith(TOKEN_PREFIX):  # misses are not cached, so the likelier kind goes first
            partner_id = await services.directory.partner_of_api_key(key_hash)
            if partner_id is not None:
                request.note_caller(partner_id)
                return KeyHolder(partner_id)
        partner_id = await services.directory.partner_of_app_token(key_hash)
        if partner_id is not None:
            request.note_caller(partner_id)
            return KeyHolder(partner_id, key_hash)
    raise ApiError(request.wrong_credential, "The header apikey must hold the API key of your account.")


async def holder_may_use(services: Services, holder: KeyHolder, app: App) -> bool:
    """True if a key is valid for an app: the key of its partner or, for an app's token, of that app."""
    if app.partner_id != holder.partner_id:
        return False
    token_hash = holder.app_token_hash
    if token_hash is None or is_token_of(services, app, token_hash):
        return True
    key = await services.directory.app_key(token_hash)
    return key is not None and key.app_id == app.id


async def partner_of_token(services: Services, request: Request) -> int:
    """Return the id of the partner whose partner token or universal token the request holds.

    Raises:
        ApiError: the token is missing, unknown or expired, or a partner token where a universal token is required.
    """
    is_universal = request.credential == Credential.UNIVERSAL_TOKEN and UNCOUNTED not in request.scope
    for token in tokens_of(request):
        if not is_partner_wide(services, token) or (is_universal and not token.startswith(UNIVERSAL_TOKEN_PREFIX)):
            continue
        partner_id = await partner_of_wide_token(services, request, token)
        if partner_id is not None:
            request.note_caller(partner_id)
            return partner_id
    accepted = "a partner token from login, at most 24 hours old"
    if is_universal:
        accepted = "a universal token, as `POST /partner/{partner_id}/auth/token` returns it, and not one from login"
    raise ApiError(request.wrong_credential, f"The header Authorization or token must hold {accepted}.")


async def authorise_app(services: Services, request: Request, *, allow_query: bool = False) -> App:
    """Return the app in the path, by its id or its name, authorised by the route's credential, and spend one request.

    Args:
        services: for look-ups.
        request: the request.
        allow_query: as of `app_of_app_token`.

    Raises:
        ApiError: 401 a wrong credential or another partner's app, 429 too many.
    """
    if "app_name" in request.path:
        app = await _app_by_name(services, request)
    else:
        app = await app_in_path(services, request, allow_query=allow_query)
    request.note_caller(app.partner_id, app.id)
    await request.spend(services.limiter, app.id, app)
    return app


async def app_in_path(services: Services, request: Request, *, allow_query: bool = False) -> App:
    """Return the app in the path, authorised by the route's credential.

    Raises:
        ApiError: a wrong credential, or another partner's app.
    """
    match request.credential:
        case Credential.PARTNER_TOKEN | Credential.UNIVERSAL_TOKEN:
            return await app_of_partner_token(services, request)
        case Credential.API_KEY:
            return await app_of_api_key(services, request)
        case _:
            return await app_of_app_token(services, request, allow_query=allow_query)


async def _app_by_name(services: Services, request: Request) -> App:
    """Return the app named at the end of the path, authorised by API key; public clients send its id too."""
    holder = await holder_of_api_key(services, request)
    name = request.path["app_name"]
    app = await services.database.read(app_by_name, holder.partner_id, name)
    if app is None:
        app = await services.directory.app(name)
    if app is None or not await holder_may_use(services, holder, app):
        raise ApiError(ErrorCode.INVALID_APP_DETAILS, "The path must end in the name of one of your apps.")
    return app


async def app_of_api_key(services: Services, request: Request) -> App:
    """Return the app in the path, which must belong to the partner of the request's API key.

    Raises:
        ApiError: a wrong key, or an app that is not the partner's.
    """
    holder = await holder_of_api_key(services, request)
    app = await services.directory.app(request.path["app_id"])
    if app is None or not await holder_may_use(services, holder, app):
        raise ApiError(request.other_app, "The path must name one of your apps.")
    return app


async def app_of_partner_token(services: Services, request: Request) -> App:
    """Return the app in the path, which must belong to the partner of the request's partner token.

    Raises:
        ApiError: a wrong token, or an app that is not the partner's; the same as for an unknown app.
    """
    partner_id = await partner_of_token(services, request)
    app = await services.directory.app(request.path["app_id"])
    if app is None or app.partner_id != partner_id:
        raise ApiError(request.other_app, "The path must name one of your apps.")
    return app


async def authorise_partner(services: Services, request: Request) -> int:
    """Return the partner id of the request's partner token or API key, and spend one request of the route's rate.

    Raises:
        ApiError: 401 a wrong credential, 429 too many.
    """
    if request.credential == Credential.API_KEY:
        partner_id = (await holder_of_api_key(services, request)).partner_id
    else:
        partner_id = await partner_of_token(services, request)
    await request.spend(services.limiter, str(partner_id))
    return partner_id


async def find_partner(services: Services, request: Request) -> int | None:
    """Return the partner of the first valid token of the request, a partner token or an app token; None without one."""
    for token in tokens_of(request):
        if is_partner_wide(services, token):
            partner_id = await partner_of_wide_token(services, request, token)
        else:
            partner_id = await services.directory.partner_of_app_token(hash_secret(token))
        if partner_id is not None:
            return partner_id
    return None


async def app_of_app_token(services: Services, request: Request, *, allow_query: bool = False) -> App:
    """Return the app in the path, authorised by an app token (first, additional or minted) or its partner's token.

    Args:
        services: for look-ups.
        request: the request.
        allow_query: accept the token in the query too, as older clients of the template list do (facts 1.1).

    Raises:
        ApiError: no valid token, or one for other apps; the same for another partner's app as for an
            unknown one.

    Source: spec, "Authentication", 1: "The partner token from login is used as the authorization value
        on other partner endpoints"; decision 0068.
    """
    app = await services.directory.app(request.path["app_id"])
    partners: set[int] = set()
    for token in tokens_of(request, allow_query=allow_query):
        if is_partner_wide(services, token):
            partner_id = await partner_of_wide_token(services, request, token)
            if app is not None and app.partner_id == partner_id:
                return app
            partners |= set() if partner_id is None else {partner_id}
            continue
        token_hash = hash_secret(token)
        if app is not None and is_token_of(services, app, token_hash):
            return app
        key = await services.directory.app_key(token_hash)
        if app is not None and key is not None and key.app_id == app.id:
            return app
        partner_id = await services.directory.partner_of_app_token(token_hash)
        partners |= set() if partner_id is None else {partner_id}
    if partners:
        request.note_caller(min(partners))
        is_own = app is not None and app.partner_id in partners
        code = _OWN_APP_ERRORS.get(request.other_app, request.other_app) if is_own else request.other_app
        raise ApiError(
            code,
            "The token is valid, but not for the app in the path.",
            field="app_id",
            accepted="the id of the app to which the token belongs",
        )
    raise ApiError(
        request.wrong_credential,
        "The header Authorization or token must hold the app token of the app in the path, as it is, "
        "or a partner token of the app's partner, at most 24 hours old.",
    )


def is_partner_wide(services: Services, token: str) -> bool:
    """True if a text has the form of a token for every app of a partner; the store knows if it is still valid."""
    return token.startswith(UNIVERSAL_TOKEN_PREFIX) or is_partner_token(services.secret_box, token)


async def partner_of_wide_token(services: Services, request: Request, token: str) -> int | None:
    """Return the partner of a partner token or a universal token, or None.

    A universal token is not valid on the deprecated paths. Source: ledger 1.1, "Universal token".
    """
    token_hash = hash_secret(token)
    if not token.startswith(UNIVERSAL_TOKEN_PREFIX):
        return await services.directory.partner_of_token(token_hash)
    return None if " /sm/" in request.route else await services.directory.partner_of_universal_token(token_hash)


def tokens_of(request: Request, *, allow_query: bool = False) -> list[str]:
    """Return the request's tokens: `token`, then `Authorization` without an optional `Bearer`.

    Source: facts 1.1: samples use both names, and one big client sends both.
    """
    tokens: list[str] = []
    for text in (request.header(b"token"), request.header(b"authorization")):
        if text:
            scheme, _, rest = text.partition(" ")
            tokens.append(rest.strip() if scheme.lower() == "bearer" and rest else text)
    if allow_query and not tokens:
        token = request.query("token")
        if token:
            tokens.append(token)
    return tokens


def is_token_of(services: Services, app: App, token_hash: str) -> bool:
    """True if a hash is that of the app token, current or of before a replacement of the instance key."""
    tokens = services.secret_box.app_tokens(app.id, app.token_serial)
    return any(hash_secret(token) == token_hash for token in tokens)
