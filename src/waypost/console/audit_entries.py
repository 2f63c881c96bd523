"""Audit log entries of actions in the console, and of searches in hidden texts."""

from typing import Final

from starlette.responses import Response

from waypost.base.telemetry.logs import log
from waypost.console.page_tools import PageTools
from waypost.console.rendering import RejectedRedirect
from waypost.console.route import PageRoute
from waypost.console.web.page_request import PageRequest

_REJECTED: Final = 409
_log = log("console")


async def record_action(row: PageRoute, tools: PageTools, page_request: PageRequest, response: Response) -> None:
    """Write the audit entry of an action or a search and return when it is on disk; do nothing for other pages."""
    status = _REJECTED if isinstance(response, RejectedRedirect) else response.status_code
    outcome = "searched in hidden texts" if page_request.searches_hidden_text else ""
    await _record(row, tools, page_request, status, outcome if status < 400 else "rejected")


async def record_rejection(
    row: PageRoute, tools: PageTools, page_request: PageRequest, response: Response, error: Exception
) -> None:
    """Write the audit entry of a rejected action; log an error if that fails too."""
    try:
        await _record(row, tools, page_request, response.status_code, type(error).__name__)
    except Exception:  # noqa: BLE001  the response is an error already
        _log.exception("audit entry could not be written", action=row.path)


async def _record(row: PageRoute, tools: PageTools, page_request: PageRequest, status: int, detail: str) -> None:
    session = page_request.session
    is_audited = row.is_audited or page_request.searches_hidden_text
    if not is_audited or session is None or (row.is_shared and _is_demo(tools)):
        return
    await tools.services.audit.record(
        actor=session.partner.email,
        remote_address=tools.services.client_address(page_request.request.scope),
        action=f"{row.method} {row.path}",
        status=status,
        partner_id=session.partner.id,
        subject=page_request.path_params,
        detail=detail,
    )


def _is_demo(tools: PageTools) -> bool:
    """True in a demo: its user is its administrator, and a reset deletes the log with the store."""
    return tools.services.demo_partner_id is not None
