"""Checks before every endpoint: the session, the form's origin and token, the app in the path; and error pages."""

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
    """Return a Starlette endpoint that checks the request and then calls the row's endpoint."""

    async def endpoint(request: Request) -> Response:
        visit = PageRequest(request, chosen_app_id=request.cookies.get(rendering.APP, ""))
        try:
            response = await _admit(row, desk, visit) or await row.endpoint(desk, visit)
            await record_action(row, desk, visit, response)
        except Exception as error:  # noqa: BLE001  every error becomes a page
            response = await _sorry(desk, visit, error, row)
            await record_rejection(row, desk, visit, response, error)
            if isinstance(error, NotAllowed):
                response.headers["Allow"] = error.allowed
        finally:
            await visit.close()
        return _dressed(response, desk, visit)

    return endpoint


def not_allowed(
    path: str, allowed_at: Callable[[Request], Collection[str]], desk: PageTools
) -> Callable[[Request], Awaitable[Response]]:
    """Return a Starlette endpoint that reports a wrong method on an error page.

    Args:
        path: path pattern of the route table.
        allowed_at: function that returns the methods allowed for a request's path.
        desk: the page tools.
    """

    async def raise_error(desk: PageTools, visit: PageRequest) -> Response:
        del desk
        raise NotAllowed(visit.request.method, allowed_at(visit.request))

    guarded_endpoint = guarded(PageRow(Kind.PAGE, path, raise_error, "report a wrong method", Who.ANYBODY), desk)

    async def endpoint(request: Request) -> Response:
        request.scope["path_params"] = {}  # so that the response does not depend on whose app is in the path
        return await guarded_endpoint(request)

    return endpoint


def cookie_name(desk: PageTools) -> str:
    """Return the session cookie's name: over HTTPS one that no other host of the site can set."""
    return "__Host-waypost" if desk.parts.is_secure else "waypost_session"


def put_session(desk: PageTools, response: Response, token: str) -> None:
    """Set the session cookie."""
    response.set_cookie(
        cookie_name(desk), token, max_age=LIFE_MS // 1000, path="/",
        httponly=True, samesite="lax", secure=desk.parts.is_secure,
    )  # fmt: skip


def check_host(desk: PageTools, visit: PageRequest) -> None:
    """Reject a request to a demo under a host name that is not this machine's (DNS rebinding).

    Another site's host name may resolve to this machine. A browser then treats our pages as that site's own,
    and a demo can be entered without a password.

    Raises:
        InvalidPageRequest: the host name is not allowed.
    """
    if desk.parts.demo_partner_id is None:
        return
    host = hostname_of("//" + visit.request.headers.get("host", ""))
    if host in desk.parts.hosts or is_loopback(host):
        return
    raise NotMeant(
        f"The host name {host[:100]!r} is not allowed for this demo.",
        "Use 127.0.0.1 or localhost, or add the name to WAYPOST_ADMIN_HOSTS.",
    )


async def _admit(row: PageRow, desk: PageTools, visit: PageRequest) -> Response | None:
    """Return None if the endpoint may be called, or else a redirect or an error response.

    Raises:
        AdministratorRequired: only the administrator may call it.
        InvalidPageRequest: the form was not sent by one of our pages.
        NotFound: the app is not the partner's.
    """
    check_host(desk, visit)
    _check_address(visit)
    parts, request = desk.parts, visit.request
    visit.session = await parts.sessions.find(request.cookies.get(cookie_name(desk), ""))
    visit.notices = rendering.notices_of(request.cookies)
    if visit.session is None and row.who is Who.PARTNER:
        if row.kind is Kind.PAGE:
            target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"/sign-in?next={quote(target, safe='')}", 303)
        if row.kind is Kind.ACT and not visit.is_quiet:
            return RedirectResponse(f"/sign-in?next={quote(_page_before(visit), safe='')}", 303)
        return JSONResponse({"message": "Your session has ended.", "remedy": "Reload the page and sign in."}, 401)
    if row.kind is Kind.ACT:
        await _check_ours(desk, visit)
    if visit.session is not None:
        visit.apps = await parts.database.read(apps_of, visit.partner.id)
    if row.is_shared and not desk.administrates(visit):
        raise NotAdministrator
    if "app_id" in visit.path:
        visit.named_app = next((app for app in visit.apps if app.id == visit.path["app_id"]), None)
        if visit.named_app is None:
            raise NotThere("App not found.")
    return None


def _page_before(visit: PageRequest) -> str:
    """Return the console page that a form was on, from the Referer header; the home page without one."""
    referer = visit.request.headers.get("referer", "")
    if netloc_of(referer) != visit.request.headers.get("host", "").lower():
        return "/"
    page = urlsplit(referer)
    return page.path + (f"?{page.query}" if page.query else "")


def _check_address(visit: PageRequest) -> None:
    """Reject U+0000 in the path or query, because the store cannot hold it.

    Raises:
        NotFound: the character is there.
    """
    request = visit.request
    if "\0" in request.scope["path"] or any("\0" in value for value in request.query_params.values()):
        raise NotThere


async def _check_ours(desk: PageTools, visit: PageRequest) -> None:
    """Reject an action that was not sent by a page of this console in this session's browser.

    Raises:
        InvalidPageRequest: another site sent it, or the session's token is missing or wrong.
    """
    headers = visit.request.headers
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None and site not in _OWN_SITES:
        raise NotMeant("The request came from another site.", "Open the console and try again there.")
    own = (headers.get("host", "").lower(), netloc_of(desk.parts.public_url))
    if origin is not None and (netloc_of(origin) or "nowhere") not in own:
        raise NotMeant("The request came from another site.", "Open the console and try again there.")
    if visit.session is None:  # signing in: there is no session yet to bind a token to
        return
    token = headers.get(CSRF_HEADER) or await visit.field(CSRF)
    if not same(token, visit.session.csrf):
        raise NotMeant("The form's session token is missing or out of date.")


async def _sorry(desk: PageTools, visit: PageRequest, error: Exception, row: PageRow) -> Response:
    """Return the error page, or JSON for a script, for an exception."""
    match error:
        case NotThere():
            status, text, hint = 404, error.what, "It may have been deleted, or the link may be wrong."
        case NotAllowed():
            status, text, hint = 405, error.what, error.remedy
        case NotAdministrator():
            status, text, hint = 403, error.what, error.remedy
        case NotMeant():
            status, text, hint = 403 if row.kind is Kind.ACT else 400, error.what, error.remedy
        case ApiError():
            spec = ERRORS[error.code]
            status, text = spec.status, spec.text or error.explanation
            hint = error.explanation if spec.text else ""
        case ApiResponseError():
            status, text = error.status, error.problem
            hint = error.explanation or (f"Accepted: {error.expected}." if error.expected else "")
        case NotReached():
            status, text, hint = 503, "The simulator is not responding.", "Try again in a moment."
        case StoreAway():
            _log.warning(str(error), path=visit.request.url.path)
            status, text = 503, "The database is unavailable."
            hint = "Nothing was saved. Try again in a moment."
        case _:
            _log.exception("defect", path=visit.request.url.path)
            status, text = 500, "Something went wrong on our side."
            hint = "Nothing was saved. The service log has the details."
    if visit.is_quiet or row.kind in (Kind.PART, Kind.LIVE):
        return JSONResponse({"message": text, "remedy": hint}, status)
    try:
        if visit.session is None:  # the layout with navigation needs a session
            page = "error_signed_out.html"
            return desk.parts.pages.answer(page, visit, status, text=text, hint=hint)
        return await desk.page(visit, "error.html", status, text=text, hint=hint)
    except Exception:  # noqa: BLE001
        _log.exception("defect", path=visit.request.url.path)
        return Response(f"{text} {hint}", status, media_type="text/plain; charset=utf-8")


def _dressed(response: Response, desk: PageTools, visit: PageRequest) -> Response:
    """Return the response with the headers of every response, and remember the app in the path."""
    headers = MutableHeaders(raw=response.raw_headers)
    for name, value in rendering.HEADERS.items():
        headers.setdefault(name, value)
    if visit.named_app is not None and visit.named_app.id != visit.chosen_app_id:
        response.set_cookie(
            rendering.APP, visit.named_app.id, max_age=31_536_000, path="/",
            httponly=True, samesite="lax", secure=desk.parts.is_secure,
        )  # fmt: skip
    return response
