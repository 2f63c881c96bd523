"""The admin API's operation that reads the audit log: filtered, a page at a time."""

from typing import Any, Final, Literal

import msgspec

from waypost.admin.provisioning import AdminContext
from waypost.domain.errors import invalid_field
from waypost.store.accounts.audit_log import AuditFilter, audit_page

MAX_ENTRIES: Final = 500


class AuditQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The filters; one that is not known is an error here, because entries would be missed."""

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


async def list_audit_entries(context: AdminContext, given: AuditQuery) -> Any:
    """Return the newest entries, and where the next page begins."""
    wanted = AuditFilter(
        partner_id=given.partner_id,
        actor=given.actor,
        action=given.action,
        rejected=None if given.outcome is None else given.outcome == "rejected",
        since_ms=given.since_ms,
        until_ms=given.until_ms,
        before_id=given.before,
    )
    found = await context.database.read(audit_page, wanted, given.limit + 1)
    jobs, is_more = found[: given.limit], len(found) > given.limit
    return {"entries": [msgspec.to_builtins(one) for one in jobs], "next": jobs[-1].id if is_more else None}
