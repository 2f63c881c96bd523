"""Before an endpoint is asked: who it is, whether a page of ours sent it, and whose app the path names."""

from collections.abc import Awaitable, Callable, Collection
from typing import Final
from urllib.parse import quote, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from waypost.base.encryption import same
from waypost.base.http.hosts import hostname_of, is_loopback, netloc_of
from waypost.base.telemetry.logs import log
from waypost.client.api_client import ApiResponseError, NotReached
from waypost.console import rendering
from waypost.console.audit_entries import record_action, record_rejection
from waypost.console.page_tools import PageTools
from waypost.console.route import Kind, PageRow, Who
from waypost.console.web.not_found import NotAdministrator, NotAllowed, NotMeant, NotThere
from waypost.console.web.page_request import PageRequest
from waypost.console.web.sessions import LIFE_MS
from waypost.domain.errors import ApiError
from waypost.store.apps.apps import apps_of
from waypost.store.contract import StoreAway
from waypost.wire.errors import ERRORS

CSRF: Final = "csrf"
CSRF_HEADER: Final = "x-waypost-csrf"
_OWN_SITES: Final = ("same-origin", "none")
_log = log("console")


def guarded(row: PageRow, desk: PageTools) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint of starlette's that asks the row's."""

    async def answer(request: Request) -> Response:
        visit = PageRequest(request, chosen_app_id=request.cookies.get(rendering.APP, ""))
        try:
            response = await _admit(row, desk, visit) or await row.endpoint(desk, visit)
            await record_action(row, desk, visit, response)
        except Exception as error:  # noqa: BLE001  a page answers whatever happens
            response = await _sorry(desk, visit, error, row)
            await record_rejection(row, desk, visit, response, error)
            if isinstance(error, NotAllowed):
                response.headers["Allow"] = error.allowed
        finally:
            await visit.close()
        return _dressed(response, desk, visit)

    return answer


def not_allowed(
    path: str, allowed_at: Callable[[Request], Collection[str]], desk: PageTools
) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint of starlette's for the methods that an address does not take: it says so, on a page.

    Args:
        path: as a row of the table has it.
        allowed_at: gives the methods that the address of a request takes.
        desk: what there is.
    """

    async def refuse(desk: PageTools, visit: PageRequest) -> Response:
        del desk
        raise NotAllowed(visit.request.method, allowed_at(visit.request))

    answer = guarded(PageRow(Kind.PAGE, path, refuse, "say what it takes", Who.ANYBODY), desk)

    async def answer_alike(request: Request) -> Response:
        request.scope["path_params"] = {}  # whoever's app is named: it is the same for all of them
        return await answer(request)

    return answer_alike


def cookie_name(desk: PageTools) -> str:
    """The name of the session's cookie: by https one that no other name of the site can set."""
    return "__Host-waypost" if desk.parts.is_secure else "waypost_session"


def put_session(desk: PageTools, response: Response, token: str) -> None:
    """Have the browser keep a session."""
    response.set_cookie(
        cookie_name(desk), token, max_age=LIFE_MS // 1000, path="/",
        httponly=True, samesite="lax", secure=desk.parts.is_secure,
    )  # fmt: skip


def check_host(desk: PageTools, visit: PageRequest) -> None:
    """Refuse what reaches a demonstration under a name that is not this machine's.

    A page of another site can have its own name point here; what it then asks for is of its own site,
    as far as a browser can tell, and a demonstration opens without a password.

    Raises:
        NotMeant: it is such a name.
    """
    if desk.parts.demo_partner_id is None:
        return
    host = hostname_of("//" + visit.request.headers.get("host", ""))
    if host in desk.parts.hosts or is_loopback(host):
        return
    raise NotMeant(
        f"The demonstration does not answer to the name {host[:100]!r}.",
        "Use 127.0.0.1 or localhost, or add the name to WAYPOST_ADMIN_HOSTS.",
    )


async def _admit(row: PageRow, desk: PageTools, visit: PageRequest) -> Response | None:
    """None: the endpoint may be asked.

    Raises:
        NotAdministrator: it is the administrator's.
        NotMeant: no page of ours sent this.
        NotThere: the app is not the partner's.
    """
    check_host(desk, visit)
    _check_address(visit)
    parts, request = desk.parts, visit.request
    visit.session = await parts.sessions.find(request.cookies.get(cookie_name(desk), ""))
    visit.notices = rendering.notices_of(request.cookies)
    if visit.session is None and row.who is Who.PARTNER:
        if row.kind is Kind.PAGE:
            asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"/sign-in?next={quote(asked, safe='')}", 303)
        if row.kind is Kind.ACT and not visit.is_quiet:
            return RedirectResponse(f"/sign-in?next={quote(_page_before(visit), safe='')}", 303)
        return JSONResponse(
            {"message": "You are not signed in any more.", "remedy": "Reload the page and sign in."}, 401
        )
    if row.kind is Kind.ACT:
        await _check_ours(desk, visit)
    if visit.session is not None:
        visit.apps = await parts.database.read(apps_of, visit.partner.id)
    if row.is_shared and not desk.administrates(visit):
        raise NotAdministrator
    if "app_id" in visit.path:
        visit.named_app = next((one for one in visit.apps if one.id == visit.path["app_id"]), None)
        if visit.named_app is None:
            raise NotThere("You have no such app.")
    return None


def _page_before(visit: PageRequest) -> str:
    """The page of ours that a form was on; the first page where no browser says."""
    referer = visit.request.headers.get("referer", "")
    if netloc_of(referer) != visit.request.headers.get("host", "").lower():
        return "/"
    page = urlsplit(referer)
    return page.path + (f"?{page.query}" if page.query else "")


def _check_address(visit: PageRequest) -> None:
    """Refuse an address with a character that no store keeps.

    Raises:
        NotThere: nothing of ours is called so.
    """
    request = visit.request
    if "\0" in request.scope["path"] or any("\0" in one for one in request.query_params.values()):
        raise NotThere


async def _check_ours(desk: PageTools, visit: PageRequest) -> None:
    """Refuse an act that was not sent by a page of this console's, in this person's browser.

    Raises:
        NotMeant: another site's, or without the session's token.
    """
    headers = visit.request.headers
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None and site not in _OWN_SITES:
        raise NotMeant("Another site sent this.", "Open the console itself and try there.")
    own = (headers.get("host", "").lower(), netloc_of(desk.parts.public_url))
    if origin is not None and (netloc_of(origin) or "nowhere") not in own:
        raise NotMeant("Another site sent this.", "Open the console itself and try there.")
    if visit.session is None:  # signing in: there is nothing yet that a token could be bound to
        return
    given = headers.get(CSRF_HEADER) or await visit.field(CSRF)
    if not same(given, visit.session.csrf):
        raise NotMeant("The form does not carry the token of your session, or an old one.")


async def _sorry(desk: PageTools, visit: PageRequest, error: Exception, row: PageRow) -> Response:
    """What is shown in place of what was asked for."""
    match error:
        case NotThere():
            status, said, remedy = 404, error.what, "Look for it in the lists."
        case NotAllowed():
            status, said, remedy = 405, error.what, error.remedy
        case NotAdministrator():
            status, said, remedy = 403, error.what, error.remedy
        case NotMeant():
            status, said, remedy = 403 if row.kind is Kind.ACT else 400, error.what, error.remedy
        case ApiError():
            told = ERRORS[error.code]
            status, said = told.status, told.text or error.explanation
            remedy = error.explanation if told.text else ""
        case ApiResponseError():
            status, said = error.status, error.problem
            remedy = error.explanation or (f"It takes {error.expected}." if error.expected else "")
        case NotReached():
            status, said, remedy = 503, "The simulator does not answer.", "Try again in a moment."
        case StoreAway():
            _log.warning(str(error), path=visit.request.url.path)
            status, said = 503, "The store cannot be reached."
            remedy = "Nothing of what you sent was kept. Try again in a moment."
        case _:
            _log.exception("defect", path=visit.request.url.path)
            status, said = 500, "Something is wrong with this page, not with what you did."
            remedy = "The log of the service says what. Nothing of what you sent was kept."
    if visit.is_quiet or row.kind in (Kind.PART, Kind.LIVE):
        return JSONResponse({"message": said, "remedy": remedy}, status)
    try:
        if visit.session is None:  # what stands around pages is for those who are signed in
            page = "sorry_outside.html"
            return desk.parts.pages.answer(page, visit, status, said=said, remedy=remedy)
        return await desk.page(visit, "sorry.html", status, said=said, remedy=remedy)
    except Exception:  # noqa: BLE001
        _log.exception("defect", path=visit.request.url.path)
        return Response(f"{said} {remedy}", status, media_type="text/plain; charset=utf-8")


def _dressed(response: Response, desk: PageTools, visit: PageRequest) -> Response:
    """The answer with the headers that every answer has."""
    headers = MutableHeaders(raw=response.raw_headers)
    for name, value in rendering.HEADERS.items():
        headers.setdefault(name, value)
    if visit.named_app is not None and visit.named_app.id != visit.chosen_app_id:
        response.set_cookie(
            rendering.APP, visit.named_app.id, max_age=31_536_000, path="/",
            httponly=True, samesite="lax", secure=desk.parts.is_secure,
        )  # fmt: skip
    return response
