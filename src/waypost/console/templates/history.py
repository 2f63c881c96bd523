"""The history of a template as text."""

from dataclasses import dataclass
from typing import Final

from waypost.store.templates.events import TemplateEvent, Told


@dataclass(frozen=True, slots=True)
class Word:
    """The text of one kind of event.

    Attributes:
        kind: colour of its badge: good, warn, bad, info or quiet.
        who: the actor.
    """

    title: str
    kind: str
    who: str


@dataclass(frozen=True, slots=True)
class Step:
    """One event of the history, as shown."""

    at_ms: int
    word: Word
    more: str


# fmt: off
WORDS: Final = {  # Source: store/templates/events.py
    #                  title                                  kind     who
    Told.SUBMITTED: Word("Submitted",                         "info",  "you"),
    Told.ADOPTED:   Word("Added from the operator's library", "info",  "you"),
    Told.EDITED:    Word("Edited",                            "info",  "you"),
    Told.TAKEN:     Word("Accepted by the operator",             "quiet", "operator"),
    Told.REVIEWING: Word("Under review",                      "info",  "operator"),
    Told.APPROVED:  Word("Approved",                          "good",  "operator"),
    Told.REJECTED:  Word("Rejected",                          "bad",   "operator"),
    Told.FAILED:    Word("Could not be submitted",            "bad",   "service"),
    Told.PAUSED:    Word("Paused",                            "warn",  "operator"),
    Told.RESUMED:   Word("Resumed",                           "good",  "operator"),
    Told.DISABLED:  Word("Disabled",                          "bad",   "operator"),
    Told.APPEALED:  Word("In appeal",                         "info",  "operator"),
    Told.FLAGGED:   Word("Flagged",                           "warn",  "operator"),
    Told.LOCKED:    Word("Locked",                            "warn",  "operator"),
    Told.ARCHIVED:  Word("Archived",                          "quiet", "operator"),
    Told.RATED:     Word("Quality rated",                     "info",  "operator"),
    Told.ANNOUNCED: Word("Category change announced",        "warn",  "operator"),
    Told.FILED:     Word("Category changed",      "warn",  "operator"),
    Told.DELETED:   Word("Deleted",                           "quiet", "you or operator"),
}
FIELDS: Final[dict[str, str]] = {  # labels of the draft's fields
    "content":        "body",
    "example":        "sample values",
    "example_header": "header sample",
    "example_media":  "media sample",
    "media_url":      "sample URL",
    "template_type":  "type",
}
# fmt: on
_WORDS: Final = {kind.value: text for kind, text in WORDS.items()}


def told(event: TemplateEvent) -> Step:
    """Return an event as text; an unknown one of a newer process by its name."""
    text = _WORDS.get(event.what) or Word(event.what.capitalize(), "quiet", "")
    return Step(event.at_ms, text, _more(event))


def _more(event: TemplateEvent) -> str:
    detail = event.detail
    fields: list[str] = detail.get("fields", [])
    if fields:
        return ", ".join(FIELDS.get(name, name.replace("_", " ")) for name in fields)
    if "new" in detail:
        return f"{str(detail.get('old', '')).lower()} → {str(detail['new']).lower()}"
    if "operator_id" in detail:
        return f"Operator ID: {detail['operator_id']}"
    return str(detail.get("reason", ""))
