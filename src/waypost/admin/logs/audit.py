"""The admin API's operation that reads pages of the audit log, with filters."""

from typing import Any, Final, Literal

import msgspec

from waypost.admin.filters import check_filters
from waypost.admin.provisioning import AdminContext
from waypost.domain.errors import invalid_field
from waypost.store.accounts.audit_log import AuditFilter, audit_page

MAX_ENTRIES: Final = 500


class AuditQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The filters; an unknown one is an error, because ignoring it would return wrong entries."""

    partner_id: int | None = None
    actor: str | None = None
    action: str | None = None
    outcome: Literal["done", "rejected"] | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    before: int | None = None
    limit: int = 100

    def __post_init__(self) -> None:
        """Check the size of the page."""
        if not 1 <= self.limit <= MAX_ENTRIES:
            raise invalid_field("limit", f"1 to {MAX_ENTRIES}")


async def list_audit_entries(context: AdminContext, query: AuditQuery) -> Any:
    """Return the newest entries, and the cursor of the next page."""
    audit_filter = AuditFilter(
        partner_id=query.partner_id,
        actor=query.actor,
        action=query.action,
        rejected=None if query.outcome is None else query.outcome == "rejected",
        since_ms=query.since_ms,
        until_ms=query.until_ms,
        before_id=query.before,
    )
    rows = await context.database.read(audit_page, audit_filter, query.limit + 1)
    if not rows:
        await check_filters(context, partner_id=query.partner_id)
    entries, is_more = rows[: query.limit], len(rows) > query.limit
    return {"entries": [msgspec.to_builtins(entry) for entry in entries], "next": entries[-1].id if is_more else None}
