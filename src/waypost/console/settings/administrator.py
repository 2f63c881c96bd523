"""Becoming the administrator for an hour: whoever is signed in gives the admin token.

Under `serve` some pages change what all partners share: a simulator, its clock, its faults. They are
for the administrator. At a demonstration everybody is.
"""

from typing import Final

from starlette.responses import Response

from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.domain.errors import ApiError

PATH: Final = "/settings/administrator"
MAX_TOKEN: Final = 1024


async def show_administrator(desk: PageTools, visit: PageRequest) -> Response:
    """Until when this session administrates, or the form that asks for the token."""
    return await _page(desk, visit)


async def begin(desk: PageTools, visit: PageRequest) -> Response:
    """Check the admin token; wrong ones count as they do at the admin API."""
    parts = desk.parts
    given = await visit.field("token")
    if not parts.has_admin_token:
        return await _page(desk, visit, "This service has no admin token.", 409)
    if not given or len(given) > MAX_TOKEN:
        return await _page(desk, visit, "Give the admin token.", 400)
    address = parts.address_of(visit.request.scope)
    try:
        await parts.attempts.check_admin(address)
        if not parts.is_admin_token(given):
            await parts.attempts.spend_admin(address)
            return await _page(desk, visit, "This is not the admin token.", 400)
    except ApiError as refused:
        wait = refused.retry_after_s or 60
        wrong = f"There were too many wrong tokens. Wait {wait} s and try again."
        return await _page(desk, visit, wrong, 429)
    await parts.sessions.let_administrate(visit.session)
    return desk.go(PATH, "You are the administrator for an hour.")


async def end(desk: PageTools, visit: PageRequest) -> Response:
    """Give it up."""
    await desk.parts.sessions.stop_administrating(visit.session)
    return desk.go(PATH, "You are not the administrator any more.")


async def _page(desk: PageTools, visit: PageRequest, wrong: str = "", status: int = 200) -> Response:
    session = visit.session
    return await desk.page(
        visit, "settings/administrator.html", status, wrong=wrong,
        until_ms=None if session is None else session.administers_until_ms,
        is_demo=desk.parts.demo_partner_id is not None,
        has_admin_token=desk.parts.has_admin_token,
    )  # fmt: skip
