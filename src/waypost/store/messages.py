"""Messages, and the submissions that carry them to the operator."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, bindparam, insert, select, update

from waypost.domain.message import Message, MessageState
from waypost.store.journal import Lane, NewEntry, append_entries
from waypost.store.prepared import Prepared
from waypost.store.rows import message_columns
from waypost.store.tables import message_events, messages


def record_messages(connection: Connection, accepted: Sequence[Message]) -> list[None]:
    """Write messages and the entries that carry them, within one transaction.

    Called with everything that waits at this moment. Ids are fresh, so none can be there already.
    """
    _RECORD.run(connection, [message_columns(message) for message in accepted])
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
    """Rows by our id; those that are not there are left out."""
    if not ids:
        return {}
    return {row.id: row for row in connection.execute(_BY_ID, {"ids": list(ids)})}


def messages_by_operator_ids(connection: Connection, ids: set[str]) -> dict[str, Any]:
    """Rows by the operator's id; those that are not there are left out."""
    if not ids:
        return {}
    found = connection.execute(_BY_OPERATOR_ID, {"ids": list(ids)})
    return {row.operator_message_id: row for row in found}


@dataclass(frozen=True, slots=True)
class MessageChange:
    """Where a message stands after news."""

    id: str
    state: MessageState
    at_ms: int
    recipient_id: int | None
    operator_message_id: str | None
    doubted: bool = False
    code: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class MessageNews:
    """One line of a message's trace."""

    message_id: str
    news: str
    at_ms: int
    moved: bool
    detail: str = ""


def change_messages(
    connection: Connection, changes: Sequence[MessageChange], news: Sequence[MessageNews]
) -> None:
    """Write where messages stand now, and the trace of how they came there."""
    _CHANGE.run(
        connection,
        [
            {
                "at_id": change.id,
                "new_state": change.state.value,
                "new_changed": change.at_ms,
                "new_recipient": change.recipient_id,
                "new_operator_id": change.operator_message_id,
                "new_doubted": change.doubted,
                "new_code": change.code,
                "new_reason": change.reason,
            }
            for change in changes
        ],
    )
    _NEWS.run(
        connection,
        [
            {
                "message_id": line.message_id,
                "news": line.news,
                "at_ms": line.at_ms,
                "moved": line.moved,
                "detail": line.detail,
            }
            for line in news
        ],
    )


_BY_ID: Final = select(messages).where(messages.c.id.in_(bindparam("ids", expanding=True)))
_BY_OPERATOR_ID: Final = select(messages).where(
    messages.c.operator_message_id.in_(bindparam("ids", expanding=True))
)
_RECORD: Final = Prepared(
    insert(messages), "id", "partner_id", "app_id", "source", "destination", "kind", "template_id", "content",
    "request", "sandbox", "state", "doubted", "accepted_on_ms", "changed_on_ms",
)  # fmt: skip
_NEWS: Final = Prepared(insert(message_events), "message_id", "news", "at_ms", "moved", "detail")
_CHANGE: Final = Prepared(
    update(messages)
    .where(messages.c.id == bindparam("at_id"))
    .values(
        state=bindparam("new_state"),
        changed_on_ms=bindparam("new_changed"),
        recipient_id=bindparam("new_recipient"),
        operator_message_id=bindparam("new_operator_id"),
        doubted=bindparam("new_doubted"),
        code=bindparam("new_code"),
        reason=bindparam("new_reason"),
    )
)
