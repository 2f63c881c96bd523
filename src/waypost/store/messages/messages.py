"""Messages, and the jobs that submit them to the operator."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from waypost.domain.message import Message, MessageState, TemplateSend
from waypost.store.bulk_statements import BulkInsert, BulkSelect, BulkUpdate
from waypost.store.compressed_texts import REQUESTS
from waypost.store.encoding import content_kind, decode_content, encode_content
from waypost.store.queue.job_subjects import JobSubject, SubjectKind
from waypost.store.queue.jobs import NewJob, enqueue_jobs
from waypost.store.queue.names import QueueName
from waypost.store.tables import messages
from waypost.store.trace_events import MessageTraceEvent, add_trace_events
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
    enqueued_on_ms: int | None = None
    sent_on_ms: int | None = None
    delivered_on_ms: int | None = None
    read_on_ms: int | None = None
    request_id: str | None = None


TIMED_STATES: Final = (MessageState.ENQUEUED, MessageState.SENT, MessageState.DELIVERED, MessageState.READ)
"""States whose times are columns of a message's row, in the order of these columns; others are trace events."""

CACHED_MESSAGES: Final[CachedTable[str, MessageRow]] = CachedTable("messages", lambda row: len(row.content))
"""Newly accepted messages, while this process has them in memory."""


def record_messages(connection: Connection, accepted: Sequence[Message]) -> list[None]:
    """Write messages and the jobs that carry them, within one transaction.

    Called with everything that waits at this moment. Ids are new, so none can exist already.
    """
    rows = [_accepted_row(message) for message in accepted]
    stored_rows = [
        (*row[:_ACCEPTED_COLUMNS], "", REQUESTS.compress(message.request.encode()), row.request_id)
        for row, message in zip(rows, accepted, strict=True)
    ]
    _INSERT_MESSAGES.run(connection, stored_rows)
    cache_new_rows(connection, CACHED_MESSAGES, ((row.id, row) for row in rows))
    enqueue_jobs(connection, [submission_job(message) for message in accepted])
    return [None] * len(accepted)


def read_request(row: Any) -> str:
    """Return the partner's request from a row with `request` and `compressed_request`; empty if it was cleared."""
    return row.request if row.compressed_request is None else REQUESTS.decompress(row.compressed_request).decode()


def _accepted_row(message: Message) -> MessageRow:
    content = message.content
    return MessageRow(
        message.id,
        message.partner_id,
        message.app_id,
        message.source,
        message.destination,
        content_kind(content),
        content.template_id if isinstance(content, TemplateSend) else None,
        encode_content(content),
        message.sandbox,
        MessageState.ACCEPTED.value,
        False,
        message.accepted_on_ms,
        message.accepted_on_ms,
        request_id=message.request_id or None,
    )


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
        request_id=row.request_id or "",
    )


def messages_by_ids(connection: Connection, ids: set[str]) -> dict[str, MessageRow]:
    """Return rows by our id, locked in a writing transaction; ids without a row are left out."""
    return {row.id: row for row in _MESSAGES_BY_IDS.run(connection, ids)}


def messages_by_operator_ids(connection: Connection, ids: set[str]) -> dict[str, MessageRow]:
    """Return rows by the operator's id, locked in a writing transaction; ids without a row are left out."""
    rows = sorted(_MESSAGES_BY_OPERATOR_IDS.run(connection, ids), key=lambda row: row.id)
    return {row.operator_message_id: row for row in rows if row.operator_message_id}


class MessageChange(NamedTuple):
    """The new state of a message after an event.

    Attributes:
        times_ms: when it reached each of `TIMED_STATES`; None where it has not.
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
    times_ms: tuple[int | None, ...] = (None,) * len(TIMED_STATES)
    changes_ids: bool = True


def change_messages(
    connection: Connection, changes: Sequence[MessageChange], events: Sequence[MessageTraceEvent]
) -> None:
    """Write the new states of messages, and the events that led to them."""
    _UPDATE_STATES_AND_IDS.run(
        connection,
        [
            (*_state_columns(change), change.recipient_id, change.operator_message_id, change.id)
            for change in changes
            if change.changes_ids
        ],
    )
    _UPDATE_STATES.run(
        connection, [(*_state_columns(change), change.id) for change in changes if not change.changes_ids]
    )
    add_trace_events(connection, events)


def _state_columns(change: MessageChange) -> tuple[Any, ...]:
    return change.state.value, change.at_ms, change.unconfirmed, change.code, change.reason, *change.times_ms


_STATE_COLUMNS: Final = (
    "state", "changed_on_ms", "unconfirmed", "code", "reason", "enqueued_on_ms", "sent_on_ms", "delivered_on_ms",
    "read_on_ms",
)  # fmt: skip
_MESSAGES_BY_IDS: Final = BulkSelect(messages, MessageRow, "id")
_MESSAGES_BY_OPERATOR_IDS: Final = BulkSelect(messages, MessageRow, "operator_message_id")
_ACCEPTED_COLUMNS: Final = MessageRow._fields.index("recipient_id")
_INSERT_MESSAGES: Final = BulkInsert(
    messages, *MessageRow._fields[:_ACCEPTED_COLUMNS], "request", "compressed_request", "request_id"
)
_UPDATE_STATES: Final = BulkUpdate(messages, "id", *_STATE_COLUMNS)
_UPDATE_STATES_AND_IDS: Final = BulkUpdate(messages, "id", *_STATE_COLUMNS, "recipient_id", "operator_message_id")
