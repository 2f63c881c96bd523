"""Credentials: partner token, app token, API key. Whoever has none learns nothing."""

from dataclasses import dataclass

from waypost.api.auth.credentials import Credential
from waypost.api.http.requests import Request
from waypost.api.services import Services
from waypost.base.encryption import TOKEN_PREFIX, hash_of
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.apps.apps import app_by_name
from waypost.wire.login import is_partner_token


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """Who sent the header `apikey`.

    Attributes:
        app_token_hash: of an app's own token, which opens that app alone; None: an account's key, which
            opens every app of its partner.
    """

    partner_id: int
    app_token_hash: str | None = None


async def holder_of_api_key(services: Services, request: Request) -> KeyHolder:
    """The holder of the API key in the header `apikey`; an app's token serves there too.

    Source: spec, "Authentication"; facts 1.1.

    Raises:
        Refused: missing or unknown.
    """
    key = request.header(b"apikey")
    if key:
        key_hash = hash_of(key)
        if not key.startswith(TOKEN_PREFIX):  # misses are not remembered, so the likelier goes first
            partner_id = await services.directory.partner_of_api_key(key_hash)
            if partner_id is not None:
                return KeyHolder(partner_id)
        partner_id = await services.directory.partner_of_app_token(key_hash)
        if partner_id is not None:
            return KeyHolder(partner_id, key_hash)
    raise ApiError(ErrorCode.AUTHENTICATION_FAILED, "The header apikey must hold the API key of your account.")


async def opens(services: Services, holder: KeyHolder, app: App) -> bool:
    """Whether a key opens an app: its partner's, and where the key is an app's token, that app's."""
    if app.partner_id != holder.partner_id:
        return False
    token_hash = holder.app_token_hash
    if token_hash is None or _is_token_of(services, app, token_hash):
        return True
    key = await services.directory.app_key(token_hash)
    return key is not None and key.app_id == app.id


async def partner_of_token(services: Services, request: Request) -> int:
    """The partner whose partner token the request holds.

    Raises:
        Refused: missing, unknown, or run out.
    """
    for token in tokens_of(request):
        if not is_partner_token(services.seals, token):
            continue
        partner_id = await services.directory.partner_of_token(hash_of(token))
        if partner_id is not None:
            return partner_id
    raise ApiError(
        ErrorCode.AUTHENTICATION_FAILED,
        "The header Authorization or token must hold a partner token from login, at most 24 hours old.",
    )


async def admitted_app(services: Services, request: Request) -> App:
    """The app in the path, opened by the credential that the route takes, one request of its rate spent.

    Raises:
        Refused: 401 a wrong credential or another's app, 429 too many.
    """
    match request.credential:
        case Credential.PARTNER_TOKEN:
            app = await app_of_partner_token(services, request)
        case Credential.API_KEY:
            app = await app_of_api_key(services, request)
        case _:
            app = await app_of_app_token(services, request)
    await request.spend(services.limiter, app.id)
    return app


async def admitted_app_by_name(services: Services, request: Request) -> App:
    """The app whose name the path ends in, opened by an API key, one request of its rate spent.

    Its id serves too: public clients put either there.

    Raises:
        Refused: 401 a wrong key, 400 an app that is not the partner's, 429 too many.
    """
    holder = await holder_of_api_key(services, request)
    name = request.path["app_name"]
    app = await services.database.read(app_by_name, holder.partner_id, name)
    if app is None:
        app = await services.directory.app(name)
    if app is None or not await opens(services, holder, app):
        raise ApiError(ErrorCode.INVALID_APP_DETAILS, "The path must end in the name of one of your apps.")
    await request.spend(services.limiter, app.id)
    return app


async def app_of_api_key(services: Services, request: Request) -> App:
    """The app in the path, which must be one of the partner's whose API key the request holds.

    Raises:
        Refused: a wrong key, or an app that is not the partner's.
    """
    holder = await holder_of_api_key(services, request)
    app = await services.directory.app(request.path["app_id"])
    if app is None or not await opens(services, holder, app):
        raise ApiError(ErrorCode.NOT_FOR_THIS_APP, "The path must name one of your apps.")
    return app


async def app_of_partner_token(
    services: Services, request: Request, *, otherwise: ErrorCode = ErrorCode.NOT_FOR_THIS_APP
) -> App:
    """The app in the path, which must be one of the partner's who holds the partner token.

    Args:
        services: for look-ups.
        request: the request.
        otherwise: how a call says that the app is not the partner's, where it has words of its own.

    Raises:
        Refused: a wrong token, or an app that is not the partner's; no other than one that does not exist.
    """
    partner_id = await partner_of_token(services, request)
    app = await services.directory.app(request.path["app_id"])
    if app is None or app.partner_id != partner_id:
        raise ApiError(otherwise, "The path must name one of your apps.")
    return app


async def admitted_partner(services: Services, request: Request) -> int:
    """The partner whose partner token the request holds, one request of the route's rate spent.

    Raises:
        Refused: 401 a wrong token, 429 too many.
    """
    partner_id = await partner_of_token(services, request)
    await request.spend(services.limiter, str(partner_id))
    return partner_id


async def app_of_app_token(services: Services, request: Request, *, query: bool = False) -> App:
    """The app in the path, opened by its app token (the first, a second key, or a minted one) or its partner's token.

    Args:
        services: for look-ups.
        request: the request.
        query: take the token from the query too, an old habit of the template list (facts 1.1).

    Raises:
        Refused: no valid token, or one for other apps. An app that is another partner's or does not
            exist is answered alike.

    Source: spec, "Authentication", 1: "The partner token from login is used as the authorization value
        on other partner endpoints"; decision 0068.
    """
    app = await services.directory.app(request.path["app_id"])
    known = False
    for token in tokens_of(request, query=query):
        if is_partner_token(services.seals, token):
            partner_id = await services.directory.partner_of_token(hash_of(token))
            if app is not None and app.partner_id == partner_id:
                return app
            known = known or partner_id is not None
            continue
        token_hash = hash_of(token)
        if app is not None and _is_token_of(services, app, token_hash):
            return app
        key = await services.directory.app_key(token_hash)
        if app is not None and key is not None and key.app_id == app.id:
            return app
        known = known or await services.directory.partner_of_app_token(token_hash) is not None
    if known:
        raise ApiError(ErrorCode.NOT_FOR_THIS_APP, "The token is valid, but not for the app in the path.")
    raise ApiError(
        ErrorCode.AUTHENTICATION_FAILED,
        "The header Authorization or token must hold the app token of the app in the path, as it is, "
        "or a partner token of the app's partner, at most 24 hours old.",
    )


def tokens_of(request: Request, *, query: bool = False) -> list[str]:
    """The tokens a request holds: `token`, then `Authorization` without an optional `Bearer`.

    Source: facts 1.1: samples mix both names, and one big client sends both.
    """
    found: list[str] = []
    for text in (request.header(b"token"), request.header(b"authorization")):
        if text:
            word, _, rest = text.partition(" ")
            found.append(rest.strip() if word.lower() == "bearer" and rest else text)
    if query and not found:
        token = request.query("token")
        if token:
            found.append(token)
    return found


def _is_token_of(services: Services, app: App, token_hash: str) -> bool:
    return hash_of(services.seals.app_token(app.id, app.token_serial)) == token_hash
