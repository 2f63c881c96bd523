"""The audit log page: a partner's own entries; all entries for the administrator."""

from typing import Final

from starlette.responses import Response

from waypost.console.page_tools import PageTools
from waypost.console.settings.audit_texts import make_audit_row
from waypost.console.web.page_request import PageRequest
from waypost.store.accounts.audit_log import AuditFilter

ENTRIES_PER_PAGE: Final = 50
_OUTCOMES: Final = {"done": False, "rejected": True}


async def show_audit(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the newest entries with a link to older ones."""
    outcome, before = page_request.query("outcome"), page_request.query("before")
    demo_partner_id = tools.services.demo_partner_id
    shows_all = (
        tools.is_administrator(page_request) if demo_partner_id is None else page_request.partner.id == demo_partner_id
    )
    is_number = before.isascii() and before.isdecimal() and len(before) < 19
    query = AuditFilter(
        partner_id=None if shows_all else page_request.partner.id,
        rejected=_OUTCOMES.get(outcome),
        before_id=int(before) if is_number else None,
    )
    rows = await tools.services.audit.page(query, ENTRIES_PER_PAGE + 1)
    entries = rows[:ENTRIES_PER_PAGE]
    app_names = {app.id: app.name for app in page_request.apps}
    return await tools.page(
        page_request,
        "settings/audit.html",
        rows=[make_audit_row(entry, app_names) for entry in entries],
        shows_all=shows_all,
        outcome=outcome if outcome in _OUTCOMES else "",
        older=entries[-1].id if len(rows) > ENTRIES_PER_PAGE else None,
    )
