"""Sign-in with a partner's credentials or by one click in a demo; sign-out; the theme."""

from typing import Final

from starlette.responses import RedirectResponse, Response

from waypost.base.encryption import hash_of
from waypost.base.telemetry.logs import log
from waypost.base.telemetry.throttled_logging import ThrottledLog
from waypost.console.guard import check_host, cookie_name, put_session
from waypost.console.page_tools import PageTools
from waypost.console.rendering import THEME, THEMES
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest
from waypost.domain.errors import ApiError
from waypost.domain.partner import Partner
from waypost.store.accounts.partners import login_facts, partner_by_id

MOST_EMAIL: Final = 254
MOST_PASSWORD: Final = 1024
WRONG: Final = "The e-mail address or password is incorrect."
_log = ThrottledLog(log("console"))


async def show_sign_in(desk: PageTools, visit: PageRequest) -> Response:
    """Show the sign-in form; redirect if the user is signed in already."""
    next_page = own_page(visit.query("next", "/"))
    if visit.session is not None:
        return RedirectResponse(next_page, 303)
    return await _form(desk, visit, next_page)


async def sign_in(desk: PageTools, visit: PageRequest) -> Response:
    """Check the password (argon2id) or a client secret, and start a session.

    A wrong password and an unknown account get the same response after the same time. Too many attempts
    from one address or for one e-mail address are rejected before any lookup.

    Source: decision 0058; spec, "Authentication", rule 2: the portal accepts a changed password.
    """
    parts = desk.parts
    next_page = own_page(await visit.field("next", "/"))
    email = (await visit.field("email")).strip().lower()
    password = await visit.field("password")
    if not email or not password or len(email) > MOST_EMAIL or len(password) > MOST_PASSWORD:
        return await _form(desk, visit, next_page, email, "Enter your e-mail address and password.", 400)
    address = parts.address_of(visit.request.scope)
    try:
        attempt = await parts.attempts.spend(email, address)
    except ApiError as error:
        wait_s = error.retry_after_s or 60
        text = f"Too many attempts. Try again in {wait_s} s; the limit is 10 failed attempts per minute and account."
        response = await _form(desk, visit, next_page, email, text, 429)
        response.headers["Retry-After"] = str(wait_s)
        return response
    facts = await parts.database.read(login_facts, email, parts.clock.now_ms())
    is_secret = facts is not None and hash_of(password) in facts.secret_hashes
    stored = None if facts is None else facts.password_hash
    is_right = await parts.passwords.matches(stored, password) or is_secret
    if facts is None or not is_right:
        _log.info("sign-in failed", address=address)
        return await _form(desk, visit, next_page, email, WRONG, 401)
    await attempt.give_back()
    return await _begin(desk, visit, facts.partner, next_page)


async def enter(desk: PageTools, visit: PageRequest) -> Response:
    """Start a session as the demo partner, without a password."""
    check_host(desk, visit)
    parts = desk.parts
    if parts.demo_partner_id is None:
        raise NotThere("This is not a demo. Sign in instead.")
    partner = await parts.database.read(partner_by_id, parts.demo_partner_id)
    if partner is None:
        raise NotThere("The demo partner is missing. Reset the demo.")
    return await _begin(desk, visit, partner, own_page(await visit.field("next", "/")))


async def sign_out(desk: PageTools, visit: PageRequest) -> Response:
    """End the session."""
    await desk.parts.sessions.end(visit.request.cookies.get(cookie_name(desk), ""))
    response = RedirectResponse("/sign-in", 303)
    response.delete_cookie(cookie_name(desk), path="/", secure=desk.parts.is_secure, httponly=True)
    return response


async def choose_theme(desk: PageTools, visit: PageRequest) -> Response:
    """Store the theme (light, dark or system) in a cookie of this browser."""
    theme = await visit.field("theme", "system")
    response = Response(status_code=204)
    if not visit.is_quiet:
        response = RedirectResponse(own_page(await visit.field("next", "/")), 303)
    if theme in THEMES:
        response.set_cookie(THEME, theme, max_age=31_536_000, path="/", samesite="lax", secure=desk.parts.is_secure)
    return response


def own_page(path: str) -> str:
    """Return the path if it is a path of this site, or else `/`."""
    is_ours = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_ours and len(path) < 1000 and "\\" not in path else "/"


async def _begin(desk: PageTools, visit: PageRequest, partner: Partner, next_page: str) -> Response:
    old = visit.request.cookies.get(cookie_name(desk), "")
    if old:
        await desk.parts.sessions.end(old)
    session = await desk.parts.sessions.begin(partner)
    response = RedirectResponse(next_page, 303)
    put_session(desk, response, session.token)
    return response


async def _form(
    desk: PageTools, visit: PageRequest, next_page: str, email: str = "", wrong: str = "", status: int = 200
) -> Response:
    return desk.parts.pages.answer(
        "sign_in.html", visit, status,
        next_page=next_page, email=email, wrong=wrong,
        is_demo=desk.parts.demo_partner_id is not None,
    )  # fmt: skip
