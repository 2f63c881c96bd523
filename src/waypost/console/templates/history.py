"""The history of a template as text."""

from dataclasses import dataclass
from typing import Final

from waypost.store.templates.events import TemplateEvent, TemplateEventKind


@dataclass(frozen=True, slots=True)
class TemplateEventText:
    """The text of one kind of event.

    Attributes:
        kind: colour of its badge: good, warn, bad, info or quiet.
        actor: the actor.
    """

    title: str
    kind: str
    actor: str


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One event of the history, as shown."""

    at_ms: int
    text: TemplateEventText
    detail: str


TEMPLATE_EVENT_TEXTS: Final = {  # Source: store/templates/events.py
    # title, kind, who
    TemplateEventKind.SUBMITTED: TemplateEventText("Submitted", "info", "you"),
    TemplateEventKind.ADOPTED: TemplateEventText("Added from the operator's library", "info", "you"),
    TemplateEventKind.FOUND: TemplateEventText("Found at the operator", "info", "operator"),
    TemplateEventKind.CHANGED_AT_OPERATOR: TemplateEventText("Edited at the operator", "warn", "operator"),
    TemplateEventKind.EDITED: TemplateEventText("Edited", "info", "you"),
    TemplateEventKind.ACCEPTED: TemplateEventText("Accepted by the operator", "quiet", "operator"),
    TemplateEventKind.IN_REVIEW: TemplateEventText("Under review", "info", "operator"),
    TemplateEventKind.APPROVED: TemplateEventText("Approved", "good", "operator"),
    TemplateEventKind.REJECTED: TemplateEventText("Rejected", "bad", "operator"),
    TemplateEventKind.FAILED: TemplateEventText("Could not be submitted", "bad", "service"),
    TemplateEventKind.EDIT_REJECTED: TemplateEventText("Edit rejected", "bad", "operator"),
    TemplateEventKind.EDIT_FAILED: TemplateEventText("Edit could not be submitted", "bad", "service"),
    TemplateEventKind.PAUSED: TemplateEventText("Paused", "warn", "operator"),
    TemplateEventKind.RESUMED: TemplateEventText("Resumed", "good", "operator"),
    TemplateEventKind.DISABLED: TemplateEventText("Disabled", "bad", "operator"),
    TemplateEventKind.APPEALED: TemplateEventText("In appeal", "info", "operator"),
    TemplateEventKind.FLAGGED: TemplateEventText("Flagged", "warn", "operator"),
    TemplateEventKind.LOCKED: TemplateEventText("Locked", "warn", "operator"),
    TemplateEventKind.ARCHIVED: TemplateEventText("Archived", "quiet", "operator"),
    TemplateEventKind.QUALITY_CHANGED: TemplateEventText("Quality rated", "info", "operator"),
    TemplateEventKind.CATEGORY_CHANGE_ANNOUNCED: TemplateEventText("Category change announced", "warn", "operator"),
    TemplateEventKind.CATEGORY_CHANGED: TemplateEventText("Category changed", "warn", "operator"),
    TemplateEventKind.DELETED: TemplateEventText("Deleted", "quiet", "you or operator"),
}
FIELD_LABELS: Final[dict[str, str]] = {  # labels of the draft's fields
    "content": "body",
    "example": "sample values",
    "example_header": "header sample",
    "example_media": "media sample",
    "media_url": "sample URL",
    "template_type": "type",
}
_TEXT_BY_EVENT: Final = {kind.value: text for kind, text in TEMPLATE_EVENT_TEXTS.items()}


def describe_event(event: TemplateEvent) -> HistoryEntry:
    """Return an event as text; an unknown one of a newer process by its name."""
    text = _TEXT_BY_EVENT.get(event.kind) or TemplateEventText(event.kind.capitalize(), "quiet", "")
    return HistoryEntry(event.at_ms, text, _describe_detail(event))


def _describe_detail(event: TemplateEvent) -> str:
    detail = event.detail
    fields: list[str] = detail.get("fields", [])
    if fields:
        return ", ".join(FIELD_LABELS.get(name, name.replace("_", " ")) for name in fields)
    if "new" in detail:
        return f"{str(detail.get('old', '')).lower()} → {str(detail['new']).lower()}"
    if "operator_id" in detail:
        return f"Operator ID: {detail['operator_id']}"
    return str(detail.get("reason", ""))
