"""Administrator rights of a session, for an hour, granted for the admin token.

Under `serve` some pages change what all partners share: the simulator, its clock and its faults. They
need these rights. In a demonstration everyone has them.
"""

from typing import Final

from starlette.responses import Response

from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.domain.errors import ApiError

ADMINISTRATOR_PATH: Final = "/settings/administrator"
MAX_TOKEN_CHARS: Final = 1024


async def show_administrator(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the end of this session's administrator rights, or the form for the token."""
    return await _page(tools, page_request)


async def start_administration(tools: PageTools, page_request: PageRequest) -> Response:
    """Check the admin token; wrong ones count toward the same limit as at the admin API."""
    parts = tools.services
    token = await page_request.field("token")
    if not parts.has_admin_token:
        return await _page(tools, page_request, "This service has no admin token.", 409)
    if not token or len(token) > MAX_TOKEN_CHARS:
        return await _page(tools, page_request, "Enter the admin token.", 400)
    address = parts.client_address(page_request.request.scope)
    try:
        await parts.sign_in_limiter.check_admin_attempts(address)
        if not parts.is_admin_token(token):
            await parts.sign_in_limiter.count_wrong_admin_token(address)
            return await _page(tools, page_request, "Wrong admin token.", 400)
    except ApiError as error:
        wait_s = error.retry_after_s or 60
        return await _page(tools, page_request, f"Too many wrong tokens. Try again in {wait_s} s.", 429)
    await parts.sessions.grant_administration(page_request.session)
    return tools.redirect(ADMINISTRATOR_PATH, "You have administrator rights for one hour.")


async def end_administration(tools: PageTools, page_request: PageRequest) -> Response:
    """End the administrator rights of this session."""
    await tools.services.sessions.revoke_administration(page_request.session)
    return tools.redirect(ADMINISTRATOR_PATH, "Your administrator rights ended.")


async def _page(tools: PageTools, page_request: PageRequest, wrong: str = "", status: int = 200) -> Response:
    session = page_request.session
    return await tools.page(
        page_request, "settings/administrator.html", status, wrong=wrong,
        until_ms=None if session is None else session.admin_until_ms,
        is_demo=tools.services.demo_partner_id is not None,
        has_admin_token=tools.services.has_admin_token,
    )  # fmt: skip
