"""Rows of the list of messages, with a preview of the content."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from waypost.console.messages.filters import KINDS, written_place
from waypost.store.messages.lists import Place
from waypost.store.messages.text import short_text
from waypost.wire.redaction import Sight, shown_line

_LABELS: Final = {stored: label for _, all_stored, label in KINDS for stored in all_stored}
MOST_SHOWN: Final = 120
MOST_COUNTED: Final = 100_000
"""Maximum characters that are counted of a hidden text."""
FINAL_STATES: Final = frozenset({"read", "deleted"})


@dataclass(frozen=True, slots=True)
class Line:
    """One message of a list.

    Attributes:
        place: cursor of the row.
        what: name of the template, or the message type.
        text: beginning of the content, or its length if hidden; empty if there is no content or it was deleted.
    """

    id: str
    place: str
    destination: str
    what: str
    is_template: bool
    text: str
    state: str
    unconfirmed: bool
    code: int | None
    reason: str
    sandbox: bool
    accepted_on_ms: int
    changed_on_ms: int

    @property
    def is_final(self) -> bool:
        """True if the status cannot change any more."""
        return self.state in FINAL_STATES or (self.state == "failed" and not self.unconfirmed)


def lines_of(rows: Iterable[Mapping[str, Any]], names: Mapping[str, str], *, show_text: bool) -> list[Line]:
    """Return list rows from rows of the store and the names of the app's templates."""
    return [_line(row, names, Sight(show_text, row["holds_code"])) for row in rows]


def kind_label(kind: str) -> str:
    """Return the label of a stored kind."""
    return _LABELS.get(kind, kind)


def _line(row: Mapping[str, Any], names: Mapping[str, str], sight: Sight) -> Line:
    name = names.get(row["template_id"] or "")
    return Line(
        id=row["id"],
        place=written_place(Place(row["accepted_on_ms"], row["id"])),
        destination=row["destination"],
        what=name or kind_label(row["kind"]),
        is_template=bool(row["template_id"]),
        text=shown_line(short_text(row["content"], MOST_SHOWN if sight.is_open else MOST_COUNTED), sight),
        state=row["state"],
        unconfirmed=row["unconfirmed"],
        code=row["code"],
        reason=row["reason"] or "",
        sandbox=row["sandbox"],
        accepted_on_ms=row["accepted_on_ms"],
        changed_on_ms=row["changed_on_ms"],
    )
