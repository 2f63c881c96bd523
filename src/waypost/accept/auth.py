"""Credentials: partner token, app token, API key. Whoever has none learns nothing."""

from waypost.accept.requests import Request
from waypost.accept.services import Services
from waypost.base.seals import hash_of
from waypost.domain.app import App
from waypost.domain.refusals import Reason, Refused


async def partner_of_api_key(services: Services, request: Request) -> int:
    """The partner whose API key the header `apikey` holds.

    Source: spec, "Authentication"; facts 1.1.

    Raises:
        Refused: missing or unknown.
    """
    key = request.header(b"apikey")
    partner_id = await services.directory.partner_of_api_key(hash_of(key)) if key else None
    if partner_id is None:
        raise Refused(
            Reason.AUTHENTICATION_FAILED, "The header apikey must hold the API key of your account."
        )
    return partner_id


async def partner_of_token(services: Services, request: Request) -> int:
    """The partner whose partner token the request holds.

    Raises:
        Refused: missing, unknown, or run out.
    """
    for token in tokens_of(request):
        partner_id = await services.directory.partner_of_token(hash_of(token))
        if partner_id is not None:
            return partner_id
    raise Refused(
        Reason.AUTHENTICATION_FAILED,
        "The header Authorization or token must hold a partner token from login, at most 24 hours old.",
    )


async def app_of_partner_token(services: Services, request: Request) -> App:
    """The app in the path, which must be one of the partner's who holds the partner token.

    Raises:
        Refused: a wrong token, or an app that is not the partner's; no other than one that does not exist.
    """
    partner_id = await partner_of_token(services, request)
    app = await services.directory.app(request.path["app_id"])
    if app is None or app.partner_id != partner_id:
        raise Refused(Reason.NOT_FOR_THIS_APP, "The path must name one of your apps.")
    return app


async def app_of_app_token(services: Services, request: Request, *, query: bool = False) -> App:
    """The app in the path, whose app token the request must hold.

    Args:
        services: for look-ups.
        request: the request.
        query: take the token from the query too, an old habit of the template list (facts 1.1).

    Raises:
        Refused: no valid app token, or one of another app. An app that is another partner's or does
            not exist is answered alike.
    """
    app = await services.directory.app(request.path["app_id"])
    known = False
    for token in tokens_of(request, query=query):
        token_hash = hash_of(token)
        if app is not None and _is_token_of(services, app, token_hash):
            return app
        known = known or await services.directory.partner_of_app_token(token_hash) is not None
    if known:
        raise Refused(
            Reason.NOT_FOR_THIS_APP, "The app token is valid, but not for the app in the path."
        )
    raise Refused(
        Reason.AUTHENTICATION_FAILED,
        "The header Authorization or token must hold the app token of the app in the path, as it is.",
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
