"""The audit log page: a partner's own entries; all entries for the administrator."""

from typing import Final

from starlette.responses import Response

from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.store.accounts.audit_log import AuditFilter

ENTRIES: Final = 50
_OUTCOMES: Final = {"done": False, "rejected": True}


async def show_audit(desk: PageTools, visit: PageRequest) -> Response:
    """Return the newest entries with a link to older ones."""
    outcome, before = visit.query("outcome"), visit.query("before")
    demo_partner_id = desk.parts.demo_partner_id
    shows_all = desk.administrates(visit) if demo_partner_id is None else visit.partner.id == demo_partner_id
    is_number = before.isascii() and before.isdecimal() and len(before) < 19
    query = AuditFilter(
        partner_id=None if shows_all else visit.partner.id,
        rejected=_OUTCOMES.get(outcome),
        before_id=int(before) if is_number else None,
    )
    rows = await desk.parts.audit.page(query, ENTRIES + 1)
    entries = rows[:ENTRIES]
    return await desk.page(
        visit, "settings/audit.html",
        entries=entries, shows_all=shows_all, outcome=outcome if outcome in _OUTCOMES else "",
        older=entries[-1].id if len(rows) > ENTRIES else None,
    )  # fmt: skip
