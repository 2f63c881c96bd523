"""Audit log entries of actions in the console, and of searches in hidden texts."""

from collections.abc import Awaitable, Callable, Collection
from typing import Final
from urllib.parse import quote, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from waypost.base.encryption import secrets_equal
from waypost.base.http.connection_scope import mark_authenticated, mark_rejected
from waypost.base.http.hosts import hostname_of, is_loopback, netloc_of
from waypost.base.telemetry.logs import log
from waypost.client.api_client import ApiResponseError, ApiUnreachable
from waypost.console import rendering
from waypost.console.page_tools import PageTools
from waypost.console.rendering import RejectedRedirect
from waypost.console.route import Audience, PageRoute, RouteKind
from waypost.console.web.page_request import (
    AdministratorRequired,
    InvalidPageRequest,
    MethodNotAllowed,
    NotFound,
    PageRequest,
)
from waypost.domain.errors import ApiError
from waypost.store.apps.apps import list_apps
from waypost.store.contract import StoreUnavailable
from waypost.wire.errors import ERRORS

_REJECTED: Final = 409


async def _record(
    row: PageRoute, tools: PageTools, page_request: PageRequest, response: Response, error: Exception | None = None
) -> None:
    """Write the audit entry of an action or a search and return when it is on disk; do nothing for other pages.

    In a demonstration, what all partners share is not recorded: its user is its administrator, and a reset deletes
    the log with the store.
    """
    session, searches = page_request.session, page_request.searches_hidden_text
    is_unrecorded = row.is_shared and tools.services.demo_partner_id is not None
    if session is None or is_unrecorded or not (row.is_audited or searches):
        return
    status = _REJECTED if isinstance(response, RejectedRedirect) else response.status_code
    if error is not None:
        detail = type(error).__name__
    elif status >= 400:
        detail = "rejected"
    else:
        detail = "searched in hidden texts" if searches else ""
    await tools.services.audit.record(
        actor=session.partner.email, remote_address=tools.services.client_address(page_request.request.scope),
        action=f"{row.method} {row.path}", status=status, partner_id=session.partner.id,
        subject=page_request.path_params, detail=detail,
    )  # fmt: skip


CSRF_FIELD: Final = "csrf"
CSRF_HEADER: Final = "x-waypost-csrf"
_OWN_SITES: Final = ("same-origin", "none")
_log = log("console")


def guard_endpoint(row: PageRoute, tools: PageTools) -> Callable[[Request], Awaitable[Response]]:
    """Return a Starlette endpoint that checks the request and then calls the row's endpoint."""

    async def endpoint(request: Request) -> Response:
        page_request = PageRequest(request, chosen_app_id=request.cookies.get(rendering.APP_COOKIE, ""))
        try:
            response = await _admit(row, tools, page_request) or await row.endpoint(tools, page_request)
            await _record(row, tools, page_request, response)
        except ClientDisconnect:
            raise
        except Exception as error:  # noqa: BLE001  every error becomes a page
            mark_rejected(request.scope)
            response = await _error_response(tools, page_request, error, row)
            try:
                await _record(row, tools, page_request, response, error)
            except Exception:  # noqa: BLE001  the response is an error already
                _log.exception("audit entry could not be written", action=row.path)
            if isinstance(error, MethodNotAllowed):
                response.headers["Allow"] = error.allowed
        finally:
            await page_request.close()
        return _add_headers(response, tools, page_request)

    return endpoint


def method_not_allowed(
    path: str, allowed_at: Callable[[Request], Collection[str]], tools: PageTools
) -> Callable[[Request], Awaitable[Response]]:
    """Return a Starlette endpoint that reports a wrong method on an error page.

    Args:
        allowed_at: returns the methods allowed for a request's path.
    """

    async def raise_error(_tools: PageTools, page_request: PageRequest) -> Response:
        raise MethodNotAllowed(page_request.request.method, allowed_at(page_request.request))

    row = PageRoute(RouteKind.PAGE, path, raise_error, "report a wrong method", Audience.PUBLIC)
    guarded_endpoint = guard_endpoint(row, tools)

    async def endpoint(request: Request) -> Response:
        request.scope["path_params"] = {}  # so that the response does not depend on whose app is in the path
        return await guarded_endpoint(request)

    return endpoint


def cookie_name(tools: PageTools) -> str:
    """Return the session cookie's name: over HTTPS one that no other host of the site can set."""
    return "__Host-waypost" if tools.services.is_secure else "waypost_session"


def check_host(tools: PageTools, page_request: PageRequest) -> None:
    """Reject a request to a demo under a host name that is not this machine's (DNS rebinding).

    Another site's host name may resolve to this machine. A browser then treats our pages as that site's own,
    and a demo can be entered without a password.
    """
    if tools.services.demo_partner_id is None:
        return
    host = hostname_of("//" + page_request.request.headers.get("host", ""))
    if host in tools.services.hosts or is_loopback(host):
        return
    raise InvalidPageRequest(
        f"The host name {host[:100]!r} is not allowed for this demo.",
        "Use 127.0.0.1 or localhost, or add the name to WAYPOST_ADMIN_HOSTS.",
    )


async def _admit(row: PageRoute, tools: PageTools, page_request: PageRequest) -> Response | None:
    """Return None if the endpoint may be called, or else a redirect or an error response."""
    check_host(tools, page_request)
    parts, request = tools.services, page_request.request
    if "\0" in request.scope["path"] or any("\0" in value for value in request.query_params.values()):
        raise NotFound  # the store cannot hold it
    page_request.session = await parts.sessions.find(request.cookies.get(cookie_name(tools), ""))
    if page_request.session is not None:
        mark_authenticated(request.scope)
    page_request.notices = rendering.read_notices(request.cookies)
    if page_request.session is None and row.audience is Audience.PARTNER:
        if row.kind is RouteKind.PAGE:
            return _redirect_to_sign_in(tools, page_request, own_address(page_request))
        if row.kind is RouteKind.ACT and not page_request.is_quiet:
            return _redirect_to_sign_in(tools, page_request, _referring_page(page_request))
        return JSONResponse({"message": "Your session has ended.", "hint": "Reload the page and sign in."}, 401)
    if row.kind is RouteKind.ACT:
        await _check_origin(tools, page_request)
    if page_request.session is not None:
        page_request.apps = await parts.database.read(list_apps, page_request.partner.id)
    if row.is_shared and not tools.is_administrator(page_request):
        raise AdministratorRequired
    if "app_id" in page_request.path_params:
        app_id = page_request.path_params["app_id"]
        page_request.named_app = next((app for app in page_request.apps if app.id == app_id), None)
        if page_request.named_app is None:
            raise NotFound("App not found.")
    return None


def own_address(page_request: PageRequest) -> str:
    """Return path and query of the request, as a link of this site."""
    url = page_request.request.url
    return "/" + url.path.lstrip("/") + (f"?{url.query}" if url.query else "")


def _redirect_to_sign_in(tools: PageTools, page_request: PageRequest, next_page: str) -> Response:
    """Return the redirect to the sign-in form, which says that a session has ended if the browser had one."""
    ended = "ended=1&" if page_request.request.cookies.get(cookie_name(tools)) else ""
    return RedirectResponse(f"/sign-in?{ended}next={quote(next_page, safe='')}", 303)


def _referring_page(page_request: PageRequest) -> str:
    """Return the console page that a form was on, from the Referer header; the home page without one."""
    referer = page_request.request.headers.get("referer", "")
    if netloc_of(referer) != page_request.request.headers.get("host", "").lower():
        return "/"
    page = urlsplit(referer)
    return page.path + (f"?{page.query}" if page.query else "")


async def _check_origin(tools: PageTools, page_request: PageRequest) -> None:
    """Reject an action that was not sent by a page of this console in this session's browser."""
    headers = page_request.request.headers
    origin, own = headers.get("origin"), (headers.get("host", "").lower(), netloc_of(tools.services.public_url))
    is_ours = origin is None or (netloc_of(origin) or "nowhere") in own
    if headers.get("sec-fetch-site", "none") not in _OWN_SITES or not is_ours:
        raise InvalidPageRequest("The request came from another site.", "Open the console and try again there.")
    if page_request.session is None:  # signing in: there is no session yet to bind a token to
        return
    token = headers.get(CSRF_HEADER) or await page_request.field(CSRF_FIELD)
    if not secrets_equal(token, page_request.session.csrf):
        raise InvalidPageRequest("The form's session token is missing or out of date.")


async def _error_response(tools: PageTools, page_request: PageRequest, error: Exception, row: PageRoute) -> Response:
    before = _referring_page(page_request)
    next_steps = [("Try again", own_address(page_request) if page_request.request.method == "GET" else before)]
    match error:
        case NotFound():
            status, text, hint = 404, error.text, "It may have been deleted, or the link may be wrong."
            next_steps = [("API reference", "/docs")]
        case MethodNotAllowed():
            status, text, hint, next_steps = 405, error.text, error.hint, [("Go back", before)]
        case AdministratorRequired():
            status, text, hint = 403, error.text, error.hint
            next_steps = [("Enter the admin token", "/settings/administrator")]
        case InvalidPageRequest():
            status, text, hint = 403 if row.kind is RouteKind.ACT else 400, error.text, error.hint
            next_steps = [("Go back", before)]
        case ApiError():
            spec = ERRORS[error.code]
            status, text = spec.status, spec.text or error.explanation
            hint = error.explanation if spec.text else ""
        case ApiResponseError():
            status, text = error.status, error.problem
            hint = error.explanation or (f"Accepted: {error.expected}." if error.expected else "")
        case ApiUnreachable():
            status, text, hint = 503, "The simulator is not responding.", "Try again in a moment."
        case StoreUnavailable():
            _log.warning(str(error), path=page_request.request.url.path)
            status, text = 503, "The database is unavailable."
            hint = "Nothing was saved. Try again in a moment."
        case _:
            _log.exception("defect", path=page_request.request.url.path)
            status, text = 500, "Something went wrong on our side."
            hint = (
                "Nothing was saved. Try again; if it fails again, report time and address: the service's log has "
                "the details."
            )
    if page_request.is_quiet or row.kind in (RouteKind.PART, RouteKind.LIVE):
        return JSONResponse({"message": text, "hint": hint}, status)
    shown = {"is_defect": status >= 500, "text": text, "hint": hint, "next_steps": next_steps}
    try:
        if page_request.session is None:  # the layout with navigation needs a session
            return tools.services.pages.respond("error_signed_out.html", page_request, status, **shown)
        return await tools.page(page_request, "error.html", status, **shown)
    except Exception:  # noqa: BLE001
        _log.exception("defect", path=page_request.request.url.path)
        return Response(f"{text} {hint}", status, media_type="text/plain; charset=utf-8")


def _add_headers(response: Response, tools: PageTools, page_request: PageRequest) -> Response:
    """Return the response with the headers of every response, and remember the app in the path."""
    headers = MutableHeaders(raw=response.raw_headers)
    for name, value in rendering.HEADERS.items():
        headers.setdefault(name, value)
    if page_request.named_app is not None and page_request.named_app.id != page_request.chosen_app_id:
        tools.set_cookie(response, rendering.APP_COOKIE, page_request.named_app.id)
    return response


async def report_unknown_path(_tools: PageTools, _page_request: PageRequest) -> Response:
    """Report an unknown path as a page that does not exist."""
    raise NotFound
