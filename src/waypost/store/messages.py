"""Messages, and the submissions that carry them to the operator."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, select

from waypost.domain.message import Message, MessageState
from waypost.store.fresh import are_fresh
from waypost.store.journal import Lane, NewEntry, append_entries
from waypost.store.message_news import MessageNews, add_news
from waypost.store.one_of import one_of
from waypost.store.prepared import Adding, Changing
from waypost.store.rows import message_columns
from waypost.store.statements import to_change
from waypost.store.tables import messages

FRESH: Final = "messages"
"""By which table's name messages as they were accepted are taken, while this process still has them."""

_NOT_YET: Final = {"recipient_id": None, "operator_message_id": None, "code": None, "reason": None}


def record_messages(connection: Connection, accepted: Sequence[Message]) -> list[None]:
    """Write messages and the entries that carry them, within one transaction.

    Called with everything that waits at this moment. Ids are fresh, so none can be there already.
    """
    rows = [message_columns(message) for message in accepted]
    _RECORD.run(connection, rows)
    are_fresh(connection, FRESH, rows, "content", "request", also=_NOT_YET)
    append_entries(connection, [submission(message) for message in accepted])
    return [None] * len(accepted)


def submission(message: Message) -> NewEntry:
    """The entry that carries a message: paced by source, in order per source and destination."""
    return NewEntry(
        Lane.SUBMISSIONS,
        group=message.source,
        order_key=f"{message.source} {message.destination}",
        ref=f"message {message.id}",
        due_ms=message.accepted_on_ms,
    )


def messages_by_ids(connection: Connection, ids: set[str]) -> dict[str, Any]:
    """Rows by our id, locked when they are read to be changed; those that are not there are left out."""
    if not ids:
        return {}
    found = connection.execute(to_change(connection, _BY_ID), {"ids": ids}).all()
    return {row.id: row for row in found}


def messages_by_operator_ids(connection: Connection, ids: set[str]) -> dict[str, Any]:
    """Rows by the operator's id, locked when they are read to be changed; those that are not there are left out."""
    if not ids:
        return {}
    found = connection.execute(to_change(connection, _BY_OPERATOR_ID), {"ids": ids}).all()
    return {row.operator_message_id: row for row in found}


@dataclass(frozen=True, slots=True)
class MessageChange:
    """Where a message stands after news.

    Attributes:
        is_named: its recipient or its name at the operator is another than in its row. Both are
            indexed, at random places, so that they are written only then.
    """

    id: str
    state: MessageState
    at_ms: int
    recipient_id: int | None
    operator_message_id: str | None
    doubted: bool = False
    code: int | None = None
    reason: str | None = None
    is_named: bool = True


def change_messages(connection: Connection, changes: Sequence[MessageChange], news: Sequence[MessageNews]) -> None:
    """Write where messages stand now, and the trace of how they came there."""
    rows = [
        {
            "at": change.id,
            "state": change.state.value,
            "changed_on_ms": change.at_ms,
            "recipient_id": change.recipient_id,
            "operator_message_id": change.operator_message_id,
            "doubted": change.doubted,
            "code": change.code,
            "reason": change.reason,
        }
        for change in changes
    ]
    named = [change.is_named for change in changes]
    _NAME.run(connection, [row for row, is_named in zip(rows, named, strict=True) if is_named])
    _MOVE.run(connection, [row for row, is_named in zip(rows, named, strict=True) if not is_named])
    add_news(connection, news)


_BY_ID: Final = select(messages).where(one_of(messages.c.id, "ids")).order_by(messages.c.id)
_BY_OPERATOR_ID: Final = select(messages).where(one_of(messages.c.operator_message_id, "ids")).order_by(messages.c.id)
_RECORD: Final = Adding(
    messages, "id", "partner_id", "app_id", "source", "destination", "kind", "template_id", "content",
    "request", "sandbox", "state", "doubted", "accepted_on_ms", "changed_on_ms",
)  # fmt: skip
_MOVE: Final = Changing(messages, "id", "state", "changed_on_ms", "doubted", "code", "reason")
_NAME: Final = Changing(
    messages, "id", "state", "changed_on_ms", "recipient_id", "operator_message_id", "doubted", "code",
    "reason",
)  # fmt: skip
