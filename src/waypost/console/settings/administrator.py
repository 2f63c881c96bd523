"""Administrator rights of a session, for an hour, granted for the admin token.

Under `serve` some pages change what all partners share: the simulator, its clock and its faults. They
need these rights. In a demonstration everyone has them.
"""

from typing import Final

from starlette.responses import Response

from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.domain.errors import ApiError

PATH: Final = "/settings/administrator"
MAX_TOKEN: Final = 1024


async def show_administrator(desk: PageTools, visit: PageRequest) -> Response:
    """Return the end of this session's administrator rights, or the form for the token."""
    return await _page(desk, visit)


async def begin(desk: PageTools, visit: PageRequest) -> Response:
    """Check the admin token; wrong ones count toward the same limit as at the admin API."""
    parts = desk.parts
    token = await visit.field("token")
    if not parts.has_admin_token:
        return await _page(desk, visit, "This service has no admin token.", 409)
    if not token or len(token) > MAX_TOKEN:
        return await _page(desk, visit, "Enter the admin token.", 400)
    address = parts.address_of(visit.request.scope)
    try:
        await parts.attempts.check_admin(address)
        if not parts.is_admin_token(token):
            await parts.attempts.spend_admin(address)
            return await _page(desk, visit, "Wrong admin token.", 400)
    except ApiError as error:
        wait_s = error.retry_after_s or 60
        return await _page(desk, visit, f"Too many wrong tokens. Try again in {wait_s} s.", 429)
    await parts.sessions.let_administrate(visit.session)
    return desk.go(PATH, "You have administrator rights for one hour.")


async def end(desk: PageTools, visit: PageRequest) -> Response:
    """End the administrator rights of this session."""
    await desk.parts.sessions.stop_administrating(visit.session)
    return desk.go(PATH, "Your administrator rights ended.")


async def _page(desk: PageTools, visit: PageRequest, wrong: str = "", status: int = 200) -> Response:
    session = visit.session
    return await desk.page(
        visit, "settings/administrator.html", status, wrong=wrong,
        until_ms=None if session is None else session.administers_until_ms,
        is_demo=desk.parts.demo_partner_id is not None,
        has_admin_token=desk.parts.has_admin_token,
    )  # fmt: skip
