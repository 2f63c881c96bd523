"""The admin API's operation that reads pages of the audit log, with filters."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from waypost.admin.filters import check_filters
from waypost.admin.operation import AdminOperations
from waypost.admin.provisioning import AdminContext
from waypost.domain.errors import invalid_field
from waypost.store.accounts.audit_log import AuditEntry, AuditFilter, audit_page

MAX_ENTRIES: Final = 500

operation = AdminOperations()


class AuditQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The filters; an unknown one is an error, because ignoring it would return wrong entries."""

    partner_id: Annotated[int | None, Meta(description="Entries about this partner's account.")] = None
    actor: Annotated[str | None, Meta(description="admin, nobody, or a partner's e-mail address.")] = None
    action: Annotated[str | None, Meta(description="Part of method and path, such as client-secrets.")] = None
    outcome: Annotated[
        Literal["done", "rejected"] | None, Meta(description="Only what was done, or only what was rejected.")
    ] = None
    since_ms: Annotated[int | None, Meta(description="From this time on.")] = None
    until_ms: Annotated[int | None, Meta(description="Before this time.")] = None
    before: Annotated[
        int | None, Meta(description="Only entries older than the one with this id, for the next page.")
    ] = None
    limit: Annotated[int, Meta(description="Maximum number of entries, 1 to 500.")] = 100

    def __post_init__(self) -> None:
        """Check the size of the page."""
        if not 1 <= self.limit <= MAX_ENTRIES:
            raise invalid_field("limit", f"1 to {MAX_ENTRIES}")


class AuditEntries(msgspec.Struct):
    """Entries, newest first, and the cursor of the next page; null after the last."""

    entries: list[AuditEntry]
    next: int | None


@operation("GET", "/admin/audit")
async def list_audit_entries(context: AdminContext, query: AuditQuery) -> AuditEntries:
    """Return the audit log: every action of administrators and partners, rejected ones too, newest first."""
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
    return AuditEntries(entries, entries[-1].id if is_more else None)
