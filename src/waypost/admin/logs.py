"""The admin API's operations that read pages of the audit log and of the request log, with filters."""

import json
from dataclasses import asdict
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from waypost.admin.operation import AdminOperations
from waypost.admin.provisioning import AdminContext, check_filters
from waypost.domain.errors import invalid_field, resource_not_found
from waypost.store.accounts.audit_log import AuditEntry, AuditFilter, audit_page
from waypost.store.requests.request_log import RequestLogEntry, RequestLogFilter, read_request_entry, read_request_page
from waypost.wire.requests import StatusFilter, statuses_of
from waypost.wire.responses import response

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


@operation("GET", "/admin/audit", response(entries=list[AuditEntry], next=int | None))
async def list_audit_entries(context: AdminContext, query: AuditQuery) -> dict[str, Any]:
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
    return {"entries": entries, "next": entries[-1].id if is_more else None}


MAX_LISTED_REQUESTS: Final = 500


class RequestLogQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The filters; an unknown one is an error, because ignoring it would return wrong entries."""

    status: Annotated[
        StatusFilter | None, Meta(description="Their status, such as 404, or its class, such as 4xx.")
    ] = None
    route: Annotated[str | None, Meta(description="Part of method and path, such as /template/msg.")] = None
    app_id: Annotated[str | None, Meta(description="Only requests for this app, by its id.")] = None
    partner_id: Annotated[int | None, Meta(description="Only requests of this partner.")] = None
    request_id: Annotated[str | None, Meta(description="Only those with this X-Request-Id.")] = None
    before: Annotated[
        str | None, Meta(description="Only requests older than the one with this id, for the next page.")
    ] = None
    limit: Annotated[int, Meta(description="Maximum number of requests, 1 to 500.")] = 50

    def __post_init__(self) -> None:
        """Check the size of the page."""
        if not 1 <= self.limit <= MAX_LISTED_REQUESTS:
            raise invalid_field("limit", f"1 to {MAX_LISTED_REQUESTS}")


class LoggedRequest(msgspec.Struct):
    """One request, with its redacted request and response as objects, and its duration in milliseconds."""

    id: str
    at_ms: int
    partner_id: int | None
    app_id: str
    route: str
    credential: str
    status: int
    error: str
    message: str
    explanation: str
    field: str
    accepted: str
    request: Any
    response: Any
    recipient: str
    size_bytes: int
    request_id: str
    took_ms: float


@operation("GET", "/admin/requests", response(requests=list[LoggedRequest], next=str | None))
async def list_requests(context: AdminContext, query: RequestLogQuery) -> dict[str, Any]:
    """Return the newest matching requests of the log, and the cursor of the next page."""
    log_filter = RequestLogFilter(
        partner_id=query.partner_id,
        app_id=query.app_id,
        statuses=None if query.status is None else statuses_of(query.status),
        route=query.route,
        request_id=query.request_id,
        before_id=query.before,
    )
    page = await context.database.read(read_request_page, log_filter, query.limit)
    if not page.entries:
        await check_filters(context, app_id=query.app_id, partner_id=query.partner_id)
    return {"requests": [_entry_view(entry) for entry in page.entries], "next": page.following}


@operation("GET", "/admin/requests/{request_id:path}")
async def show_request(context: AdminContext, request_id: str) -> LoggedRequest:
    """Return one request of the log: why it failed, what would be accepted, and what was sent, redacted.

    An `X-Request-Id` that several requests have finds the newest.
    """
    entry = await context.database.read(read_request_entry, request_id, None)
    if entry is None:
        page = await context.database.read(read_request_page, RequestLogFilter(request_id=request_id), 1)
        entry = next(iter(page.entries), None)
    if entry is None:
        raise resource_not_found("request", "request_id", request_id)
    return _entry_view(entry)


def _entry_view(entry: RequestLogEntry) -> LoggedRequest:
    view = asdict(entry)
    took_us = view.pop("took_us")
    request = json.loads(entry.request) if entry.request else None
    shown_response = json.loads(entry.response) if entry.response else None
    view["explanation"] = entry.explanation or entry.message  # an error without a documented text explains itself
    view.update(request=request, response=shown_response, took_ms=took_us / 1000)
    return LoggedRequest(**view)
