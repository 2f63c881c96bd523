"""What happened to a template: one row for each step of its life, written in the step's own transaction.

Rows stay as long as the template's own row does, which is for good: a template has few of them, and
the trace of an old message may ask. They are read by one template at a time.
"""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, insert, select

from waypost.domain.templates.fields import Draft
from waypost.domain.templates.template import Template, TemplateStatus
from waypost.store.tables import template_events

MOST: Final = 200
"""Of one template's, at once; the newest."""


class Told(StrEnum):
    """What a row says; the words are stored."""

    SUBMITTED = "submitted"  # by the partner
    ADOPTED = "adopted"  # made at the operator from its library, and kept here
    EDITED = "edited"  # by the partner; detail: fields
    TAKEN = "taken"  # the operator has it; detail: operator_id
    REVIEWING = "reviewing"  # the operator looks at it anew
    APPROVED = "approved"
    REJECTED = "rejected"  # detail: reason
    FAILED = "failed"  # it could not be handed in; detail: reason
    PAUSED = "paused"  # detail: reason
    RESUMED = "resumed"  # approved again after it was held back
    DISABLED = "disabled"  # detail: reason
    APPEALED = "appealed"
    FLAGGED = "flagged"
    LOCKED = "locked"
    ARCHIVED = "archived"
    RATED = "rated"  # detail: old, new
    ANNOUNCED = "announced"  # another category to come; detail: old, new
    FILED = "filed"  # under another category; detail: old, new
    DELETED = "deleted"


_S: Final = TemplateStatus
# fmt: off
BY_STATUS: Final = {  # what is told of a template that goes to a status
    _S.PENDING:           Told.REVIEWING,
    _S.APPROVED:          Told.APPROVED,
    _S.REJECTED:          Told.REJECTED,
    _S.FAILED:            Told.FAILED,
    _S.PAUSED:            Told.PAUSED,
    _S.DISABLED:          Told.DISABLED,
    _S.IN_APPEAL:         Told.APPEALED,
    _S.FLAGGED:           Told.FLAGGED,
    _S.LOCKED:            Told.LOCKED,
    _S.ARCHIVED:          Told.ARCHIVED,
    _S.SANDBOX_REQUESTED: Told.REVIEWING,
    _S.DELETED:           Told.DELETED,
}
HELD_BACK: Final = {_S.PAUSED, _S.DISABLED, _S.FLAGGED, _S.LOCKED, _S.ARCHIVED}
# fmt: on


@dataclass(frozen=True, slots=True)
class TemplateEvent:
    """One row. `what` is a `Told`, or a word of a newer process."""

    id: int
    at_ms: int
    what: str
    detail: dict[str, Any]


def tell_of(connection: Connection, template: Template, what: Told, at_ms: int, **detail: str | list[str]) -> None:
    """Write a row; what is empty of the detail is left out."""
    given = {name: value for name, value in detail.items() if value}
    connection.execute(
        insert(template_events),
        {
            "partner_id": template.partner_id,
            "template_id": template.id,
            "at_ms": at_ms,
            "what": what.value,
            "detail": msgspec.json.encode(given).decode(),
        },
    )


def told_by_status(before: TemplateStatus, after: TemplateStatus) -> Told:
    """What a template's way from one status to another is called."""
    if after is TemplateStatus.APPROVED and before in HELD_BACK:
        return Told.RESUMED
    return BY_STATUS[after]


def edited_fields(before: Draft, after: Draft) -> list[str]:
    """The names of the draft's fields that an edit has changed."""
    names = [one.name for one in fields(Draft)]
    return [name for name in names if getattr(before, name) != getattr(after, name)]


def template_history(
    connection: Connection, partner_id: int, template_id: str, at_most: int = MOST
) -> list[TemplateEvent]:
    """What happened to a template of a partner's, the newest first; another's has nothing."""
    of_template = (
        select(template_events)
        .where(template_events.c.template_id == template_id, template_events.c.partner_id == partner_id)
        .order_by(template_events.c.id.desc())
        .limit(at_most)
    )
    return [
        TemplateEvent(row.id, row.at_ms, row.what, msgspec.json.decode(row.detail))
        for row in connection.execute(of_template)
    ]
