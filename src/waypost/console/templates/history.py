"""What happened to a template, in words."""

from dataclasses import dataclass
from typing import Final

from waypost.store.templates.events import TemplateEvent, Told


@dataclass(frozen=True, slots=True)
class Word:
    """How a step of a template's life is told.

    Attributes:
        kind: as badges have it: good, warn, bad, info, quiet.
        who: did it.
    """

    title: str
    kind: str
    who: str


@dataclass(frozen=True, slots=True)
class Step:
    """One step, told."""

    at_ms: int
    word: Word
    more: str


# fmt: off
WORDS: Final = {  # Source: Told, store/templates/events.py
    #                  title                                  kind     who
    Told.SUBMITTED: Word("Submitted",                         "info",  "you"),
    Told.ADOPTED:   Word("Added from the operator's library", "info",  "you"),
    Told.EDITED:    Word("Edited",                            "info",  "you"),
    Told.TAKEN:     Word("Taken by the operator",             "quiet", "operator"),
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
    Told.ANNOUNCED: Word("Another category announced",        "warn",  "operator"),
    Told.FILED:     Word("Filed under another category",      "warn",  "operator"),
    Told.DELETED:   Word("Deleted",                           "quiet", "you or operator"),
}
FIELDS: Final[dict[str, str]] = {  # the draft's fields as people call them
    "content":        "body",
    "example":        "sample values",
    "example_header": "sample of the header",
    "example_media":  "sample of the medium",
    "media_url":      "sample's address",
    "template_type":  "type",
}
# fmt: on
_WORDS: Final = {told.value: word for told, word in WORDS.items()}


def told(event: TemplateEvent) -> Step:
    """One row in words; that of a newer process with its own word."""
    word = _WORDS.get(event.what) or Word(event.what.capitalize(), "quiet", "")
    return Step(event.at_ms, word, _more(event))


def _more(event: TemplateEvent) -> str:
    detail = event.detail
    fields: list[str] = detail.get("fields", [])
    if fields:
        return ", ".join(FIELDS.get(one, one.replace("_", " ")) for one in fields)
    if "new" in detail:
        return f"{str(detail.get('old', '')).lower()} → {str(detail['new']).lower()}"
    if "operator_id" in detail:
        return f"under the id {detail['operator_id']}"
    return str(detail.get("reason", ""))
