"""Messages as lines of a list: what each is, and a little of what it says."""

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
"""Of characters of a text that is not shown."""
FINAL_STATES: Final = frozenset({"read", "deleted"})


@dataclass(frozen=True, slots=True)
class Line:
    """One message of a list.

    Attributes:
        what: its template's name, or its kind.
        text: the beginning of what it says, or how long that is; empty where it says nothing, or nothing any more.
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
        """Whether nothing more is to come."""
        return self.state in FINAL_STATES or (self.state == "failed" and not self.unconfirmed)


def lines_of(rows: Iterable[Mapping[str, Any]], names: Mapping[str, str], *, show_text: bool) -> list[Line]:
    """Lines from rows of the store, with the names of the app's templates."""
    return [_line(row, names, Sight(show_text, row["holds_code"])) for row in rows]


def kind_label(kind: str) -> str:
    """What a stored kind is called on a page."""
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
