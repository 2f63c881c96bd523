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
from waypost.console.page_request import PageRequest
from waypost.console.page_tools import PageTools
from waypost.console.rendering import RejectedRedirect
from waypost.console.route import Audience, PageRoute, RouteKind
from waypost.console.web.errors import AdministratorRequired, InvalidPageRequest, MethodNotAllowed, NotFound
from waypost.domain.errors import ApiError
from waypost.store.apps.apps import list_apps
from waypost.store.contract import StoreUnavailable
from waypost.wire.errors import ERRORS

_REJECTED: Final = 409


async def _record(row: PageRoute, request: PageRequest, response: Response, error: Exception | None = None) -> None:
    """Write the audit entry of an action or a search and return when it is on disk; do nothing for other pages.

    In a demonstration, what all partners share is not recorded: its user is its administrator, and a reset deletes
    the log with the store.
    """
    session, searches = request.session, request.searches_hidden_text
    is_unrecorded = row.is_shared and request.services.demo_partner_id is not None
    if session is None or is_unrecorded or not (row.is_audited or searches):
        return
    status = _REJECTED if isinstance(response, RejectedRedirect) else response.status_code
    if error is not None:
        detail = type(error).__name__
    elif status >= 400:
        detail = "rejected"
    else:
        detail = "searched in hidden texts" if searches else ""
    await request.services.audit.record(
        actor=session.partner.email, remote_address=request.services.client_address(request.http.scope),
        action=f"{row.method} {row.path}", status=status, partner_id=session.partner.id,
        subject=request.path_params, detail=detail,
    )  # fmt: skip


CSRF_FIELD: Final = "csrf"
CSRF_HEADER: Final = "x-waypost-csrf"
_OWN_SITES: Final = ("same-origin", "none")
_log = log("console")


def guard_endpoint(row: PageRoute, tools: PageTools) -> Callable[[Request], Awaitable[Response]]:
    """Return a Starlette endpoint that checks the request and then calls the row's endpoint."""

    async def endpoint(http: Request) -> Response:
        request = PageRequest(tools, http, chosen_app_id=http.cookies.get(rendering.APP_COOKIE, ""))
        try:
            response = await _admit(row, request) or await row.endpoint(request)
            await _record(row, request, response)
        except ClientDisconnect:
            raise
        except Exception as error:  # noqa: BLE001  every error becomes a page
            mark_rejected(http.scope)
            response = await _error_response(request, error, row)
            try:
                await _record(row, request, response, error)
            except Exception:  # noqa: BLE001  the response is an error already
                _log.exception("audit entry could not be written", action=row.path)
            if isinstance(error, MethodNotAllowed):
                response.headers["Allow"] = error.allowed
        finally:
            await request.close()
        return _add_headers(response, request)

    return endpoint


def method_not_allowed(
    path: str, allowed_at: Callable[[Request], Collection[str]], tools: PageTools
) -> Callable[[Request], Awaitable[Response]]:
    """Return a Starlette endpoint that reports a wrong method on an error page.

    Args:
        allowed_at: returns the methods allowed for a request's path.
    """

    async def raise_error(request: PageRequest) -> Response:
        raise MethodNotAllowed(request.http.method, allowed_at(request.http))

    row = PageRoute(RouteKind.PAGE, path, raise_error, "report a wrong method", Audience.PUBLIC)
    guarded_endpoint = guard_endpoint(row, tools)

    async def endpoint(http: Request) -> Response:
        http.scope["path_params"] = {}  # so that the response does not depend on whose app is in the path
        return await guarded_endpoint(http)

    return endpoint


def check_host(request: PageRequest) -> None:
    """Reject a request to a demo under a host name that is not this machine's (DNS rebinding).

    Another site's host name may resolve to this machine. A browser then treats our pages as that site's own,
    and a demo can be entered without a password.
    """
    if request.services.demo_partner_id is None:
        return
    host = hostname_of("//" + request.http.headers.get("host", ""))
    if host in request.services.hosts or is_loopback(host):
        return
    raise InvalidPageRequest(
        f"The host name {host[:100]!r} is not allowed for this demo.",
        "Use 127.0.0.1 or localhost, or add the name to WAYPOST_ADMIN_HOSTS.",
    )


async def _admit(row: PageRoute, request: PageRequest) -> Response | None:
    """Return None if the endpoint may be called, or else a redirect or an error response."""
    check_host(request)
    services, http = request.services, request.http
    if "\0" in http.scope["path"] or any("\0" in value for value in http.query_params.values()):
        raise NotFound  # the store cannot hold it
    request.session = await services.sessions.find(http.cookies.get(services.session_cookie, ""))
    if request.session is not None:
        mark_authenticated(http.scope)
    request.notices = rendering.read_notices(http.cookies)
    if request.session is None and row.audience is Audience.PARTNER:
        if row.kind is RouteKind.PAGE:
            return _redirect_to_sign_in(request, own_address(request))
        if row.kind is RouteKind.ACT and not request.is_quiet:
            return _redirect_to_sign_in(request, _referring_page(request))
        return JSONResponse({"message": "Your session has ended.", "hint": "Reload the page and sign in."}, 401)
    if row.kind is RouteKind.ACT:
        await _check_origin(request)
    if request.session is not None:
        request.apps = await request.read(list_apps, request.partner.id)
    if row.is_shared and not request.is_administrator:
        raise AdministratorRequired
    if "app_id" in request.path_params:
        app_id = request.path_params["app_id"]
        request.named_app = next((app for app in request.apps if app.id == app_id), None)
        if request.named_app is None:
            raise NotFound("App not found.")
    return None


def own_address(request: PageRequest) -> str:
    """Return path and query of the request, as a link of this site."""
    url = request.http.url
    return "/" + url.path.lstrip("/") + (f"?{url.query}" if url.query else "")


def _redirect_to_sign_in(request: PageRequest, next_page: str) -> Response:
    """Return the redirect to the sign-in form, which says that a session has ended if the browser had one."""
    ended = "ended=1&" if request.http.cookies.get(request.services.session_cookie) else ""
    return RedirectResponse(f"/sign-in?{ended}next={quote(next_page, safe='')}", 303)


def _referring_page(request: PageRequest) -> str:
    """Return the console page that a form was on, from the Referer header; the home page without one."""
    referer = request.http.headers.get("referer", "")
    if netloc_of(referer) != request.http.headers.get("host", "").lower():
        return "/"
    page = urlsplit(referer)
    return page.path + (f"?{page.query}" if page.query else "")


async def _check_origin(request: PageRequest) -> None:
    """Reject an action that was not sent by a page of this console in this session's browser."""
    headers = request.http.headers
    origin, own = headers.get("origin"), (headers.get("host", "").lower(), netloc_of(request.services.public_url))
    is_ours = origin is None or (netloc_of(origin) or "nowhere") in own
    if headers.get("sec-fetch-site", "none") not in _OWN_SITES or not is_ours:
        raise InvalidPageRequest("The request came from another site.", "Open the console and try again there.")
    if request.session is None:  # signing in: there is no session yet to bind a token to
        return
    token = headers.get(CSRF_HEADER) or await request.field(CSRF_FIELD)
    if not secrets_equal(token, request.session.csrf):
        raise InvalidPageRequest("The form's session token is missing or out of date.")


async def _error_response(request: PageRequest, error: Exception, row: PageRoute) -> Response:
    before = _referring_page(request)
    next_steps = [("Try again", own_address(request) if request.http.method == "GET" else before)]
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
            _log.warning(str(error), path=request.http.url.path)
            status, text = 503, "The database is unavailable."
            hint = "Nothing was saved. Try again in a moment."
        case _:
            _log.exception("defect", path=request.http.url.path)
            status, text = 500, "Something went wrong on our side."
            hint = (
                "Nothing was saved. Try again; if it fails again, report time and address: the service's log has "
                "the details."
            )
    if request.is_quiet or row.kind in (RouteKind.PART, RouteKind.LIVE):
        return JSONResponse({"message": text, "hint": hint}, status)
    shown = {"is_defect": status >= 500, "text": text, "hint": hint, "next_steps": next_steps}
    try:
        if request.session is None:  # the layout with navigation needs a session
            return request.bare_page("error_signed_out.html", status, **shown)
        return await request.page("error.html", status, **shown)
    except Exception:  # noqa: BLE001
        _log.exception("defect", path=request.http.url.path)
        return Response(f"{text} {hint}", status, media_type="text/plain; charset=utf-8")


def _add_headers(response: Response, request: PageRequest) -> Response:
    """Return the response with the headers of every response, and remember the app in the path."""
    headers = MutableHeaders(raw=response.raw_headers)
    for name, value in rendering.HEADERS.items():
        headers.setdefault(name, value)
    if request.named_app is not None and request.named_app.id != request.chosen_app_id:
        request.set_cookie(response, rendering.APP_COOKIE, request.named_app.id)
    return response


async def report_unknown_path(_request: PageRequest) -> Response:
    """Report an unknown path as a page that does not exist."""
    raise NotFound
