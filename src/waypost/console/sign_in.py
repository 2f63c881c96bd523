"""Sign-in with a partner's credentials or by one click in a demo; sign-out; the theme."""

from collections.abc import Sequence
from typing import Final

from starlette.responses import RedirectResponse, Response

from waypost.base.encryption import hash_secret
from waypost.base.telemetry.logs import log
from waypost.base.telemetry.throttled_logging import ThrottledLog
from waypost.console.guard import check_host
from waypost.console.page_request import PageRequest
from waypost.console.rendering import THEME_COOKIE, THEMES
from waypost.console.web.errors import NotFound
from waypost.console.web.sessions import SESSION_LIFE_MS
from waypost.console.web.zones import TIME_CHOICES, TIMES_COOKIE
from waypost.domain.errors import ApiError
from waypost.domain.partner import MAX_PASSWORD_CHARS, Partner
from waypost.store.accounts.partners import LoginRecord, find_login_record, partner_by_id

MAX_EMAIL_CHARS: Final = 254
INCORRECT_CREDENTIALS: Final = "The e-mail address or password is incorrect."
_log = ThrottledLog(log("console"))


async def show_sign_in(request: PageRequest) -> Response:
    """Show the sign-in form; redirect if the user is signed in already."""
    next_page = local_path(request.query("next", "/"))
    if request.session is not None:
        return RedirectResponse(next_page, 303)
    return await _form(request, next_page)


async def sign_in(request: PageRequest) -> Response:
    """Check the password (argon2id) or a client secret, and start a session.

    A wrong password and an unknown account get the same response after the same time. Too many attempts
    from one address or for one e-mail address are rejected before any lookup.

    Source: decision 0058; spec, "Authentication", rule 2: the portal accepts a changed password.
    """
    services = request.services
    next_page = local_path(await request.field("next", "/"))
    email = (await request.field("email")).strip().lower()
    password = await request.field("password")
    if not email or not password or len(email) > MAX_EMAIL_CHARS or len(password) > MAX_PASSWORD_CHARS:
        return await _form(request, next_page, email, "Enter your e-mail address and password.", 400)
    address = services.client_address(request.http.scope)
    try:
        attempt = await services.sign_in_limiter.spend(email, address)
    except ApiError as error:
        wait_s = error.retry_after_s or 60
        text = f"Too many attempts. Try again in {wait_s} s; the limit is 10 failed attempts per minute and account."
        response = await _form(request, next_page, email, text, 429)
        response.headers["Retry-After"] = str(wait_s)
        return response
    facts, is_right = await check_password(request, email, password)
    if facts is None or not is_right:
        _log.info("sign-in failed", address=address)
        return await _form(request, next_page, email, INCORRECT_CREDENTIALS, 401)
    await attempt.refund()
    return await start_session(request, facts.partner, next_page)


async def check_password(request: PageRequest, email: str, password: str) -> tuple[LoginRecord | None, bool]:
    """Return a partner's login record, and whether this is its password or one of its client secrets."""
    facts = await request.read(find_login_record, email, request.now_ms())
    is_secret = facts is not None and hash_secret(password) in facts.secret_hashes
    return facts, await request.services.passwords.matches(facts and facts.password_hash, password) or is_secret


async def enter(request: PageRequest) -> Response:
    """Start a session as the demo partner, without a password."""
    check_host(request)
    services = request.services
    if services.demo_partner_id is None:
        raise NotFound("This is not a demo. Sign in instead.")
    partner = await request.read(partner_by_id, services.demo_partner_id)
    if partner is None:
        raise NotFound("The demo partner is missing. Reset the demo.")
    return await start_session(request, partner, local_path(await request.field("next", "/")))


async def sign_out(request: PageRequest) -> Response:
    """End the session."""
    await request.services.sessions.end(request.http.cookies.get(request.services.session_cookie, ""))
    response = RedirectResponse("/sign-in", 303)
    response.delete_cookie(request.services.session_cookie, path="/", secure=request.services.is_secure, httponly=True)
    return response


async def choose_theme(request: PageRequest) -> Response:
    """Store the theme (light, dark or system) in a cookie of this browser."""
    return await _remember(request, THEME_COOKIE, "theme", THEMES)


async def choose_times(request: PageRequest) -> Response:
    """Store in a cookie of this browser whether times are shown in its zone or in UTC."""
    return await _remember(request, TIMES_COOKIE, "times", TIME_CHOICES)


async def _remember(request: PageRequest, cookie: str, field: str, choices: Sequence[str]) -> Response:
    """Store the value of a field in a cookie for a year, unless it is none of the choices."""
    chosen = await request.field(field)
    response = Response(status_code=204)
    if not request.is_quiet:
        response = RedirectResponse(local_path(await request.field("next", "/")), 303)
    if chosen in choices:
        request.set_cookie(response, cookie, chosen, httponly=False)
    return response


def local_path(path: str) -> str:
    """Return the path if it is a path of this site, or else `/`."""
    is_ours = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_ours and len(path) < 1000 and "\\" not in path else "/"


async def start_session(request: PageRequest, partner: Partner, next_page: str) -> Response:
    """End the browser's session, start one for a partner, and redirect to a page."""
    old = request.http.cookies.get(request.services.session_cookie, "")
    if old:
        await request.services.sessions.end(old)
    session = await request.services.sessions.start(partner)
    response = RedirectResponse(next_page, 303)
    request.set_cookie(response, request.services.session_cookie, session.token, SESSION_LIFE_MS // 1000)
    return response


async def _form(request: PageRequest, next_page: str, email: str = "", error: str = "", status: int = 200) -> Response:
    return request.bare_page(
        "sign_in.html", status, next_page=next_page, email=email, wrong=error,
        has_ended=bool(request.query("ended")), is_demo=request.services.demo_partner_id is not None,
    )  # fmt: skip


async def show_home(request: PageRequest) -> Response:
    """Redirect to the overview of the last viewed app; without an app, show how to create one."""
    app = request.shown_app
    if app is None:
        return await request.page("no_apps.html")
    return RedirectResponse(f"/apps/{app.id}", 303)
