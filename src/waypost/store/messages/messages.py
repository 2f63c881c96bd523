"""Messages, and the jobs that submit them to the operator."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import Connection

from waypost.domain.message import Message, MessageState
from waypost.store.bulk_statements import BulkInsert, BulkUpdate
from waypost.store.encoding import decode_content, message_columns
from waypost.store.queue.job_subjects import JobSubject, SubjectKind
from waypost.store.queue.jobs import NewJob, QueueName, enqueue_jobs
from waypost.store.sql import equals_any, select_for_update
from waypost.store.tables import messages
from waypost.store.trace_events import MessageTraceEvent, add_trace_events
from waypost.store.typed_rows import columns_getter, select_row
from waypost.store.write_through_cache import CachedTable, cache_new_rows


class MessageRow(NamedTuple):
    """A message as stored, without the partner's request. Columns with a default are set after acceptance."""

    id: str
    partner_id: int
    app_id: str
    source: str
    destination: str
    kind: str
    template_id: str | None
    content: bytes
    sandbox: bool
    state: str
    unconfirmed: bool
    accepted_on_ms: int
    changed_on_ms: int
    recipient_id: int | None = None
    operator_message_id: str | None = None
    code: int | None = None
    reason: str | None = None


CACHED_MESSAGES: Final[CachedTable[str, MessageRow]] = CachedTable("messages", lambda row: len(row.content))
"""Newly accepted messages, while this process has them in memory."""

_get_accepted_columns: Final = columns_getter(
    name for name in MessageRow._fields if name not in MessageRow._field_defaults
)


def record_messages(connection: Connection, accepted: Sequence[Message]) -> list[None]:
    """Write messages and the jobs that carry them, within one transaction.

    Called with everything that waits at this moment. Ids are new, so none can exist already.
    """
    rows = [message_columns(message) for message in accepted]
    _INSERT_MESSAGES.run(connection, rows)
    cache_new_rows(connection, CACHED_MESSAGES, ((row["id"], MessageRow(*_get_accepted_columns(row))) for row in rows))
    enqueue_jobs(connection, [submission_job(message) for message in accepted])
    return [None] * len(accepted)


def submission_job(message: Message) -> NewJob:
    """Return the job that carries a message: paced by source, in order per source and destination."""
    return NewJob(
        QueueName.OUTBOUND,
        concurrency_group=message.source,
        ordering_key=f"{message.source} {message.destination}",
        subject=JobSubject(SubjectKind.MESSAGE, message.id),
        due_ms=message.accepted_on_ms,
    )


def decode_message(row: MessageRow) -> Message:
    """Return a message from its row, without the partner's request."""
    return Message(
        id=row.id,
        partner_id=row.partner_id,
        app_id=row.app_id,
        source=row.source,
        destination=row.destination,
        content=decode_content(row.kind, row.content),
        accepted_on_ms=row.accepted_on_ms,
        sandbox=row.sandbox,
    )


def messages_by_ids(connection: Connection, ids: set[str]) -> dict[str, MessageRow]:
    """Return rows by our id, locked in a writing transaction; ids without a row are left out."""
    if not ids:
        return {}
    rows = connection.execute(select_for_update(connection, _MESSAGES_BY_IDS), {"ids": ids})
    return {row.id: row for row in map(MessageRow._make, rows)}


def messages_by_operator_ids(connection: Connection, ids: set[str]) -> dict[str, MessageRow]:
    """Return rows by the operator's id, locked in a writing transaction; ids without a row are left out."""
    if not ids:
        return {}
    rows = connection.execute(select_for_update(connection, _MESSAGES_BY_OPERATOR_IDS), {"ids": ids})
    return {row.operator_message_id: row for row in map(MessageRow._make, rows) if row.operator_message_id}


@dataclass(frozen=True, slots=True)
class MessageChange:
    """The new state of a message after an event.

    Attributes:
        changes_ids: its recipient or its id at the operator differs from its row. Both are indexed, at
            random places, so that they are written only then.
    """

    id: str
    state: MessageState
    at_ms: int
    recipient_id: int | None
    operator_message_id: str | None
    unconfirmed: bool = False
    code: int | None = None
    reason: str | None = None
    changes_ids: bool = True


def change_messages(
    connection: Connection, changes: Sequence[MessageChange], events: Sequence[MessageTraceEvent]
) -> None:
    """Write the new states of messages, and the events that led to them."""
    rows = [
        {
            "at": change.id,
            "state": change.state.value,
            "changed_on_ms": change.at_ms,
            "recipient_id": change.recipient_id,
            "operator_message_id": change.operator_message_id,
            "unconfirmed": change.unconfirmed,
            "code": change.code,
            "reason": change.reason,
        }
        for change in changes
    ]
    with_new_ids = [change.changes_ids for change in changes]
    _UPDATE_STATES_AND_IDS.run(
        connection, [row for row, changes_ids in zip(rows, with_new_ids, strict=True) if changes_ids]
    )
    _UPDATE_STATES.run(
        connection, [row for row, changes_ids in zip(rows, with_new_ids, strict=True) if not changes_ids]
    )
    add_trace_events(connection, events)


_SELECT_MESSAGES: Final = select_row(messages, MessageRow).order_by(messages.c.id)
_MESSAGES_BY_IDS: Final = _SELECT_MESSAGES.where(equals_any(messages.c.id, "ids"))
_MESSAGES_BY_OPERATOR_IDS: Final = _SELECT_MESSAGES.where(equals_any(messages.c.operator_message_id, "ids"))
_INSERT_MESSAGES: Final = BulkInsert(
    messages, "id", "partner_id", "app_id", "source", "destination", "kind", "template_id", "content",
    "request", "sandbox", "state", "unconfirmed", "accepted_on_ms", "changed_on_ms",
)  # fmt: skip
_UPDATE_STATES: Final = BulkUpdate(messages, "id", "state", "changed_on_ms", "unconfirmed", "code", "reason")
_UPDATE_STATES_AND_IDS: Final = BulkUpdate(
    messages, "id", "state", "changed_on_ms", "recipient_id", "operator_message_id", "unconfirmed", "code",
    "reason",
)  # fmt: skip
