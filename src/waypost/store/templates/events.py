"""Events of templates: one row for each change, written in the change's own transaction.

Rows are retained as long as the template's own row, which is never deleted: a template has few of them, and
the trace of an old message may show them. They are read for one template at a time.
"""

from collections.abc import Collection
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Connection, func, insert, select

from waypost.base.clock import DAY_MS
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.template import Template, TemplateStatus
from waypost.store.encoding import decode_template_draft
from waypost.store.sql import read_all
from waypost.store.tables import apps, inbound_messages, messages, operator_accounts, template_events, webhook_items

MAX_TEMPLATE_EVENTS: Final = 200  # maximum events of one template that are read at once; the newest


class TemplateEventKind(StrEnum):
    """Kinds of events; the values are stored."""

    SUBMITTED = "submitted"  # by the partner
    ADOPTED = "adopted"  # created at the operator from its library, and stored here
    FOUND = "found"  # made at the operator by another tool, and stored here by a synchronisation
    CHANGED_AT_OPERATOR = "changed_at_operator"  # edited there by another tool; detail: fields
    EDITED = "edited"  # by the partner; detail: fields; approved: the draft before, as JSON, if that was approved
    ACCEPTED = "accepted"  # the operator accepted it; detail: operator_id
    IN_REVIEW = "in_review"  # the operator reviews it again
    APPROVED = "approved"
    REJECTED = "rejected"  # detail: reason
    FAILED = "failed"  # it could not be submitted; detail: reason
    EDIT_REJECTED = "edit_rejected"  # the operator has rejected the edit; detail: reason
    EDIT_FAILED = "edit_failed"  # the edit could not be submitted; detail: reason
    PAUSED = "paused"  # detail: reason
    RESUMED = "resumed"  # approved again after a suspension
    DISABLED = "disabled"  # detail: reason
    APPEALED = "appealed"
    FLAGGED = "flagged"
    LOCKED = "locked"
    ARCHIVED = "archived"
    QUALITY_CHANGED = "quality_changed"  # detail: old, new
    CATEGORY_CHANGE_ANNOUNCED = "category_change_announced"  # a category change is planned; detail: old, new
    CATEGORY_CHANGED = "category_changed"  # its category changed; detail: old, new
    DELETED = "deleted"


_S: Final = TemplateStatus
# fmt: off
EVENT_BY_STATUS: Final = {  # the event of a template's change to a status
    _S.PENDING:           TemplateEventKind.IN_REVIEW,
    _S.APPROVED:          TemplateEventKind.APPROVED,
    _S.REJECTED:          TemplateEventKind.REJECTED,
    _S.FAILED:            TemplateEventKind.FAILED,
    _S.PAUSED:            TemplateEventKind.PAUSED,
    _S.DISABLED:          TemplateEventKind.DISABLED,
    _S.IN_APPEAL:         TemplateEventKind.APPEALED,
    _S.FLAGGED:           TemplateEventKind.FLAGGED,
    _S.LOCKED:            TemplateEventKind.LOCKED,
    _S.ARCHIVED:          TemplateEventKind.ARCHIVED,
    _S.SANDBOX_REQUESTED: TemplateEventKind.IN_REVIEW,
    _S.DELETED:           TemplateEventKind.DELETED,
}
ONCE_APPROVED: Final = {_S.APPROVED, _S.FLAGGED, _S.PAUSED}
"""Statuses in which the current draft is one that was approved, and can be edited."""
SUSPENDED_STATUSES: Final = {_S.PAUSED, _S.DISABLED, _S.FLAGGED, _S.LOCKED, _S.ARCHIVED}
# fmt: on


class TemplateEvent(NamedTuple):
    """One event. `kind` is a `TemplateEventKind`, or a value from a newer version."""

    id: int
    at_ms: int
    kind: str
    detail: dict[str, Any]


def record_template_event(
    connection: Connection, template: Template, kind: TemplateEventKind, at_ms: int, **detail: str | list[str]
) -> None:
    """Write an event; empty details are left out."""
    details = msgspec.json.encode({name: value for name, value in detail.items() if value}).decode()
    event = {"partner_id": template.partner_id, "template_id": template.id, "at_ms": at_ms, "kind": kind.value}
    connection.execute(insert(template_events), event | {"detail": details})


def status_event_kind(before: TemplateStatus, after: TemplateStatus) -> TemplateEventKind:
    """Return the kind of event for a change from one status to another."""
    if after is TemplateStatus.APPROVED and before in SUSPENDED_STATUSES:
        return TemplateEventKind.RESUMED
    return EVENT_BY_STATUS[after]


def edited_fields(before: TemplateDraft, after: TemplateDraft) -> list[str]:
    """Return the names of the draft's fields that an edit has changed."""
    names = [field.name for field in fields(TemplateDraft)]
    return [name for name in names if getattr(before, name) != getattr(after, name)]


def last_approved_draft(connection: Connection, template: Template) -> TemplateDraft | None:
    """Return the draft that was approved last: the current one, or the one before the edits; None if none is known."""
    if template.status in ONCE_APPROVED:
        return template.draft
    query = (
        select(template_events.c.detail)
        .where(
            template_events.c.template_id == template.id,
            template_events.c.partner_id == template.partner_id,
            template_events.c.kind == TemplateEventKind.EDITED.value,
        )
        .order_by(template_events.c.id.desc())
        .limit(MAX_TEMPLATE_EVENTS)
    )
    details = (msgspec.json.decode(detail) for detail in connection.execute(query).scalars())
    approved = next((detail["approved"] for detail in details if "approved" in detail), None)
    return None if approved is None else decode_template_draft(approved)


def template_history(
    connection: Connection, partner_id: int, template_id: str, at_most: int = MAX_TEMPLATE_EVENTS
) -> list[TemplateEvent]:
    """Return the events of a partner's template, newest first; for another partner there are none."""
    query = (
        select(template_events)
        .where(template_events.c.template_id == template_id, template_events.c.partner_id == partner_id)
        .order_by(template_events.c.id.desc())
        .limit(at_most)
    )
    return read_all(
        connection, query, lambda row: TemplateEvent(row.id, row.at_ms, row.kind, msgspec.json.decode(row.detail))
    )


_BATCH_IDS: Final = 500


@dataclass(frozen=True, slots=True)
class StateCount:
    """Number of a template's messages that were accepted on one day and are now in one state."""

    template_id: str
    day: int  # since the epoch, in UTC
    state: str
    messages: int


def state_counts(
    connection: Connection, partner_id: int, template_ids: Collection[str], from_ms: int, until_ms: int
) -> list[StateCount]:
    """Return the number of messages of these templates of one account, by day and state, of a range of times."""
    day = (messages.c.accepted_on_ms // DAY_MS).label("day")
    # By the partner's apps, the first column of the only index that fits: another index, by template,
    # would add a fifth to the time of accepting a template message.
    of_partner = select(apps.c.id).where(apps.c.partner_id == partner_id)
    counted = (
        select(messages.c.template_id, day, messages.c.state, func.count().label("count"))
        .where(
            messages.c.app_id.in_(of_partner),
            messages.c.template_id.in_(template_ids),
            messages.c.accepted_on_ms >= from_ms,
            messages.c.accepted_on_ms < until_ms,
            messages.c.partner_id == partner_id,
        )
        .group_by(messages.c.template_id, day, messages.c.state)
    )
    return read_all(connection, counted, lambda row: StateCount(*row))


def list_template_taps(
    connection: Connection, app_id: str, from_ms: int, until_ms: int
) -> list[tuple[int, str, bytes]]:
    """Return the time of each tap on a template's button, the kind of its operator, and its webhook item as stored."""
    rows = connection.execute(
        select(inbound_messages.c.received_on_ms, operator_accounts.c.kind, webhook_items.c.item)
        .join(webhook_items, webhook_items.c.id == inbound_messages.c.item_id)
        .join(operator_accounts, operator_accounts.c.id == webhook_items.c.operator_account_id)
        .where(
            inbound_messages.c.app_id == app_id,
            inbound_messages.c.kind == "button",
            inbound_messages.c.received_on_ms >= from_ms,
            inbound_messages.c.received_on_ms < until_ms,
        )
    )
    return [(received_on_ms, kind, item) for received_on_ms, kind, item in rows]


def templates_of_messages(
    connection: Connection, partner_id: int, operator_message_ids: Collection[str]
) -> dict[str, str]:
    """Return the template of each message by the operator's message id; other messages are left out."""
    ids = sorted(operator_message_ids)
    template_ids: dict[str, str] = {}
    for first in range(0, len(ids), _BATCH_IDS):
        rows = connection.execute(
            select(messages.c.operator_message_id, messages.c.template_id).where(
                messages.c.operator_message_id.in_(ids[first : first + _BATCH_IDS]),
                messages.c.partner_id == partner_id,
                messages.c.template_id.is_not(None),
            )
        )
        template_ids.update((operator_id, template_id) for operator_id, template_id in rows)
    return template_ids
