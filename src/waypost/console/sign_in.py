"""Sign-in with a partner's credentials or by one click in a demo; sign-out; the theme."""

from collections.abc import Sequence
from typing import Final

from starlette.responses import RedirectResponse, Response

from waypost.base.encryption import hash_secret
from waypost.base.telemetry.logs import log
from waypost.base.telemetry.throttled_logging import ThrottledLog
from waypost.console.guard import check_host, cookie_name
from waypost.console.page_tools import PageTools
from waypost.console.rendering import THEME_COOKIE, THEMES
from waypost.console.web.page_request import NotFound, PageRequest
from waypost.console.web.sessions import SESSION_LIFE_MS
from waypost.console.web.zones import TIME_CHOICES, TIMES_COOKIE
from waypost.domain.errors import ApiError
from waypost.domain.partner import MAX_PASSWORD_CHARS, Partner
from waypost.store.accounts.partners import LoginRecord, find_login_record, partner_by_id

MAX_EMAIL_CHARS: Final = 254
INCORRECT_CREDENTIALS: Final = "The e-mail address or password is incorrect."
_log = ThrottledLog(log("console"))


async def show_sign_in(tools: PageTools, page_request: PageRequest) -> Response:
    """Show the sign-in form; redirect if the user is signed in already."""
    next_page = local_path(page_request.query("next", "/"))
    if page_request.session is not None:
        return RedirectResponse(next_page, 303)
    return await _form(tools, page_request, next_page)


async def sign_in(tools: PageTools, page_request: PageRequest) -> Response:
    """Check the password (argon2id) or a client secret, and start a session.

    A wrong password and an unknown account get the same response after the same time. Too many attempts
    from one address or for one e-mail address are rejected before any lookup.

    Source: decision 0058; spec, "Authentication", rule 2: the portal accepts a changed password.
    """
    parts = tools.services
    next_page = local_path(await page_request.field("next", "/"))
    email = (await page_request.field("email")).strip().lower()
    password = await page_request.field("password")
    if not email or not password or len(email) > MAX_EMAIL_CHARS or len(password) > MAX_PASSWORD_CHARS:
        return await _form(tools, page_request, next_page, email, "Enter your e-mail address and password.", 400)
    address = parts.client_address(page_request.request.scope)
    try:
        attempt = await parts.sign_in_limiter.spend(email, address)
    except ApiError as error:
        wait_s = error.retry_after_s or 60
        text = f"Too many attempts. Try again in {wait_s} s; the limit is 10 failed attempts per minute and account."
        response = await _form(tools, page_request, next_page, email, text, 429)
        response.headers["Retry-After"] = str(wait_s)
        return response
    facts, is_right = await check_password(tools, email, password)
    if facts is None or not is_right:
        _log.info("sign-in failed", address=address)
        return await _form(tools, page_request, next_page, email, INCORRECT_CREDENTIALS, 401)
    await attempt.refund()
    return await start_session(tools, page_request, facts.partner, next_page)


async def check_password(tools: PageTools, email: str, password: str) -> tuple[LoginRecord | None, bool]:
    """Return a partner's login record, and whether this is its password or one of its client secrets."""
    facts = await tools.services.database.read(find_login_record, email, tools.services.clock.now_ms())
    is_secret = facts is not None and hash_secret(password) in facts.secret_hashes
    return facts, await tools.services.passwords.matches(facts and facts.password_hash, password) or is_secret


async def enter(tools: PageTools, page_request: PageRequest) -> Response:
    """Start a session as the demo partner, without a password."""
    check_host(tools, page_request)
    parts = tools.services
    if parts.demo_partner_id is None:
        raise NotFound("This is not a demo. Sign in instead.")
    partner = await parts.database.read(partner_by_id, parts.demo_partner_id)
    if partner is None:
        raise NotFound("The demo partner is missing. Reset the demo.")
    return await start_session(tools, page_request, partner, local_path(await page_request.field("next", "/")))


async def sign_out(tools: PageTools, page_request: PageRequest) -> Response:
    """End the session."""
    await tools.services.sessions.end(page_request.request.cookies.get(cookie_name(tools), ""))
    response = RedirectResponse("/sign-in", 303)
    response.delete_cookie(cookie_name(tools), path="/", secure=tools.services.is_secure, httponly=True)
    return response


async def choose_theme(tools: PageTools, page_request: PageRequest) -> Response:
    """Store the theme (light, dark or system) in a cookie of this browser."""
    return await _remember(tools, page_request, THEME_COOKIE, "theme", THEMES)


async def choose_times(tools: PageTools, page_request: PageRequest) -> Response:
    """Store in a cookie of this browser whether times are shown in its zone or in UTC."""
    return await _remember(tools, page_request, TIMES_COOKIE, "times", TIME_CHOICES)


async def _remember(
    tools: PageTools, page_request: PageRequest, cookie: str, field: str, choices: Sequence[str]
) -> Response:
    """Store the value of a field in a cookie for a year, unless it is none of the choices."""
    chosen = await page_request.field(field)
    response = Response(status_code=204)
    if not page_request.is_quiet:
        response = RedirectResponse(local_path(await page_request.field("next", "/")), 303)
    if chosen in choices:
        tools.set_cookie(response, cookie, chosen, httponly=False)
    return response


def local_path(path: str) -> str:
    """Return the path if it is a path of this site, or else `/`."""
    is_ours = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_ours and len(path) < 1000 and "\\" not in path else "/"


async def start_session(tools: PageTools, page_request: PageRequest, partner: Partner, next_page: str) -> Response:
    """End the browser's session, start one for a partner, and redirect to a page."""
    old = page_request.request.cookies.get(cookie_name(tools), "")
    if old:
        await tools.services.sessions.end(old)
    session = await tools.services.sessions.start(partner)
    response = RedirectResponse(next_page, 303)
    tools.set_cookie(response, cookie_name(tools), session.token, SESSION_LIFE_MS // 1000)
    return response


async def _form(
    tools: PageTools, page_request: PageRequest, next_page: str, email: str = "", error: str = "", status: int = 200
) -> Response:
    return tools.services.pages.respond(
        "sign_in.html", page_request, status, next_page=next_page, email=email, wrong=error,
        has_ended=bool(page_request.query("ended")), is_demo=tools.services.demo_partner_id is not None,
    )  # fmt: skip


async def show_home(tools: PageTools, page_request: PageRequest) -> Response:
    """Redirect to the overview of the last viewed app; without an app, show how to create one."""
    app = page_request.shown_app
    if app is None:
        return await tools.page(page_request, "no_apps.html")
    return RedirectResponse(f"/apps/{app.id}", 303)
