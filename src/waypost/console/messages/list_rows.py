"""Rows of the list of messages, with a preview of the content."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from waypost.console.messages.filters import MESSAGE_KINDS, encode_cursor
from waypost.store.messages.lists import MessageCursor
from waypost.store.messages.text import short_text
from waypost.wire.redaction import TextVisibility, redact_preview

_LABELS: Final = {stored: label for _, all_stored, label in MESSAGE_KINDS for stored in all_stored}
MAX_PREVIEW_CHARS: Final = 120
MAX_COUNTED_CHARS: Final = 100_000
"""Maximum characters that are counted of a hidden text."""
FINAL_STATES: Final = frozenset({"read", "deleted"})


@dataclass(frozen=True, slots=True)
class MessageListRow:
    """One message of a list.

    Attributes:
        cursor: cursor of the row.
        what: name of the template, or the message type.
        text: beginning of the content, or its length if hidden; empty if there is no content or it was deleted.
    """

    id: str
    cursor: str
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


def message_rows(
    rows: Iterable[Mapping[str, Any]], names: Mapping[str, str], *, show_text: bool
) -> list[MessageListRow]:
    """Return list rows from rows of the store and the names of the app's templates."""
    return [_message_row(row, names, TextVisibility(show_text, row["holds_code"])) for row in rows]


def kind_label(kind: str) -> str:
    """Return the label of a stored kind."""
    return _LABELS.get(kind, kind)


def _message_row(row: Mapping[str, Any], names: Mapping[str, str], sight: TextVisibility) -> MessageListRow:
    name = names.get(row["template_id"] or "")
    return MessageListRow(
        id=row["id"],
        cursor=encode_cursor(MessageCursor(row["accepted_on_ms"], row["id"])),
        destination=row["destination"],
        what=name or kind_label(row["kind"]),
        is_template=bool(row["template_id"]),
        text=redact_preview(
            short_text(row["content"], MAX_PREVIEW_CHARS if sight.is_open else MAX_COUNTED_CHARS), sight
        ),
        state=row["state"],
        unconfirmed=row["unconfirmed"],
        code=row["code"],
        reason=row["reason"] or "",
        sandbox=row["sandbox"],
        accepted_on_ms=row["accepted_on_ms"],
        changed_on_ms=row["changed_on_ms"],
    )
