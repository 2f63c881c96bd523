"""Callbacks, their sequence numbers, and every attempt to deliver them."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Connection, and_, bindparam, func, or_, select, tuple_, update
from sqlalchemy.sql.operators import eq, in_op, is_

from waypost.domain.callbacks import CALLBACK_CONTENT_TYPE, AttemptKind, CallbackAttempt
from waypost.store.bulk_statements import BulkInsert, BulkSelect, BulkUpdate, bulk_count
from waypost.store.callbacks.receivers import SubscriptionFilter, receiver_failure
from waypost.store.encoding import CALLBACK_BODIES
from waypost.store.messages.messages import callback_holds_code
from waypost.store.messages.recipients import recipient_ids
from waypost.store.queue.job_subjects import JobSubject, QueueName, SubjectKind
from waypost.store.queue.jobs import NewJob, announce_jobs, enqueue_jobs, live_group, replay_group
from waypost.store.sql import equals_any, filter_conditions, read_all, read_dict, read_dicts
from waypost.store.tables import attempts, callbacks, recipients, sequences, subscriptions
from waypost.store.write_through_cache import CachedTable, cache_new_rows

MAX_STORED_HEADERS: Final = 40
MAX_HEADER_CHARS: Final = 300
MAX_RESPONSE_BYTES: Final = 4096
_encode_json: Final = msgspec.json.Encoder().encode
_MESSAGE_ID: Final = b"\0"  # replaces the message's id in a stored body; JSON has no such byte
_DERIVED_HEADERS: Final = {"Waypost-Callback-Id": "id", "Waypost-Sequence": "sequence", "webhook-id": "id"}
"""Headers of attempts that follow from the callback's row, with the columns: a first attempt does not store them."""
_PACKED_HEADERS: Final = ("webhook-timestamp", "webhook-signature", "User-Agent")
"""Headers of every attempt of which a first attempt stores the values only."""
_SENT_HEADERS: Final = {*_DERIVED_HEADERS, *_PACKED_HEADERS, "Content-Type"}


class CallbackRow(NamedTuple):
    """A rendered callback, without its outcome."""

    id: str
    partner_id: int
    app_id: str
    subscription_id: int
    subject: str  # the recipient's id, or another text within which order is kept
    sequence: int
    message_id: str | None  # ours, if it is about a message
    event: str  # its name, as named in the trace
    body: bytes  # every attempt sends these bytes
    created_on_ms: int


CACHED_CALLBACKS: Final[CachedTable[str, CallbackRow]] = CachedTable("callbacks", attrgetter("body"))
"""New callbacks, while this process has them in memory."""


def reserve_sequence_numbers(
    connection: Connection, counts: Mapping[tuple[int, str], int]
) -> dict[tuple[int, str], int]:
    """Reserve so many sequence numbers for each (subscription, recipient); return the last one of each."""
    reserved: list[tuple[int, str, int]] = []
    for (subscription_id, subject), count in sorted(counts.items()):
        reserved.append((subscription_id, subject, count))
    last_numbers: dict[tuple[int, str], int] = {}
    for subscription_id, subject, last in _RESERVE_SEQUENCES.fetch(connection, reserved):
        last_numbers[subscription_id, subject] = last
    return last_numbers


def enqueue_callbacks(connection: Connection, rows: Sequence[CallbackRow], due_ms: Sequence[int]) -> None:
    """Store rendered callbacks, each due at its time: they are their own jobs."""
    if not rows:
        return
    stored_rows: list[tuple[Any, ...]] = []
    new_jobs: list[NewJob] = []
    for row, due in zip(rows, due_ms, strict=True):
        # Without the message's id, which the row has, and which no dictionary can contain
        body = row.body if row.message_id is None else row.body.replace(row.message_id.encode(), _MESSAGE_ID)
        stored_rows.append((*row[:_BODY], CALLBACK_BODIES.compress(body), row.created_on_ms, due))
        key = f"{row.subscription_id} {row.subject}"
        subject = JobSubject(SubjectKind.CALLBACK, row.id)
        new_jobs.append(NewJob(QueueName.CALLBACKS, live_group(row.subscription_id), key, subject, due))
    positions = _INSERT_CALLBACKS.run(connection, stored_rows)
    cache_new_rows(connection, CACHED_CALLBACKS, rows)
    announce_jobs(connection, new_jobs, positions)


def callbacks_by_ids(connection: Connection, ids: set[str]) -> dict[str, CallbackRow]:
    """Return rows by id."""
    rows = _CALLBACKS_BY_ID.run(connection, ids)
    return {row.id: row._replace(body=read_callback_body(row.body, row.message_id)) for row in rows}


def read_callback_body(stored: bytes, message_id: str | None) -> bytes:
    """Return the body that every attempt sends, from its row."""
    body = CALLBACK_BODIES.decompress(stored)
    return body if message_id is None else body.replace(_MESSAGE_ID, message_id.encode())


class AttemptRecord(NamedTuple):
    """One attempt of one callback."""

    callback_id: str
    subscription_id: int
    attempt: CallbackAttempt
    delivered: bool | None  # True if it was delivered, False if it failed for good, None if it is retried
    kind: AttemptKind = AttemptKind.INITIAL  # why it was made


def record_attempts(connection: Connection, callback_attempts: Sequence[AttemptRecord]) -> None:
    """Store attempts, and the outcomes of callbacks, which complete their jobs.

    A first attempt that delivers its callback becomes part of the callback's row. A replay does not change
    when a callback was first delivered, and what was delivered is never given up.
    """
    delivered: list[tuple[Any, ...]] = []
    others: list[AttemptRecord] = []
    for record in callback_attempts:
        if record.kind is AttemptKind.INITIAL and record.delivered:
            delivered.append(_delivered_columns(record))
        else:
            others.append(record)
    if delivered:
        _UPDATE_DELIVERED_AT_ONCE.run(connection, delivered)
    if not others:
        return
    _INSERT_ATTEMPTS.run(connection, [_attempt_columns(record) for record in others])
    retried: list[tuple[Any, ...]] = []
    unless_delivered: list[dict[str, Any]] = []  # another process may have delivered what this one gives up
    for record in others:
        if record.delivered is None:
            continue
        columns = _end_columns(record)
        if record.delivered and record.kind is not AttemptKind.REPLAY:
            retried.append(columns)
        else:
            unless_delivered.append(dict(zip(("ended_on_ms", "delivered", "at"), columns, strict=True)))
    _UPDATE_ENDED.run(connection, retried)
    if unless_delivered:
        connection.execute(_UPDATE_UNLESS_DELIVERED, unless_delivered)


def _delivered_columns(record: AttemptRecord) -> tuple[Any, ...]:
    attempt = record.attempt
    return (
        attempt.at_ms + attempt.duration_ms,
        True,
        attempt.at_ms,
        attempt.duration_ms,
        attempt.status,
        attempt.response[:MAX_RESPONSE_BYTES] or None,
        _pack_request_headers(attempt.request_headers),
        _encode_headers(attempt.response_headers) if attempt.response_headers else None,
        record.callback_id,
    )


def _attempt_columns(record: AttemptRecord) -> tuple[Any, ...]:
    attempt = record.attempt
    return (
        record.callback_id,
        record.subscription_id,
        attempt.at_ms,
        attempt.duration_ms,
        attempt.status,
        attempt.response[:MAX_RESPONSE_BYTES],
        attempt.error,
        _encode_headers(attempt.request_headers),
        _encode_headers(attempt.response_headers),
        record.kind.value,
    )


def _end_columns(record: AttemptRecord) -> tuple[int, bool | None, str]:
    return record.attempt.at_ms + record.attempt.duration_ms, record.delivered, record.callback_id


def first_attempt_ends(connection: Connection, ids: Collection[str]) -> dict[str, int]:
    """Return when the first attempt of each callback ended; those without an attempt are left out."""
    return dict(read_all(connection, _FIRST_ATTEMPT_ENDS, tuple, ids=ids)) if ids else {}


def callback_with_attempts(connection: Connection, callback_id: str) -> dict[str, Any] | None:
    """Return a callback with its exact bytes as text, and every attempt; None if there is none.

    Until it is delivered, also since when its receiver has been failing, and when the next attempt is due.
    """
    row = read_dict(connection, select(callbacks).where(callbacks.c.id == callback_id))
    if row is None:
        return None
    failure = receiver_failure(connection, row["subscription_id"]) if row["ended_on_ms"] is None else {}
    return read_callback_details(connection, row) | failure


def read_callback_details(connection: Connection, row: dict[str, Any]) -> dict[str, Any]:
    """Return a callback's row with its body as text, whether that may hold a one-time code, and its attempts."""
    body = read_callback_body(row["body"], row["message_id"])
    query = select(attempts).where(attempts.c.callback_id == row["id"]).order_by(attempts.c.id)
    stored = read_dicts(connection, query)
    if row["attempted_on_ms"] is not None:  # the first attempt delivered it
        same = {name: row[name] for name in _FIRST_ATTEMPT_COLUMNS}
        own = {"id": 0, "callback_id": row["id"], "at_ms": row["attempted_on_ms"], "error": None}
        headers = json.dumps(_unpack_request_headers(row))
        stored.insert(0, {**same, **own, "request_headers": headers, "kind": AttemptKind.INITIAL.value})
    return {
        **{name: value for name, value in row.items() if name not in _JOB_AND_ATTEMPT_COLUMNS},
        "body": body.decode(),
        "holds_code": callback_holds_code(connection, row | {"body": body}),
        "attempts": [
            {
                **attempt,
                "response_body": (attempt["response_body"] or b"").decode("utf-8", "replace"),
                "request_headers": json.loads(attempt["request_headers"] or "{}"),
                "response_headers": json.loads(attempt["response_headers"] or "{}"),
            }
            for attempt in stored
        ],
    }


def _pack_request_headers(headers: Mapping[str, str]) -> str:
    """Return the headers of a first attempt without what follows from the callback's row and from our own tables.

    Values in the order of `_PACKED_HEADERS`, and then the other headers by name: those of the partner, whose
    values are not stored.
    """
    values: list[Any] = [*map(headers.get, _PACKED_HEADERS)]
    others = headers.keys() - _SENT_HEADERS
    if others:
        values.append({name[:MAX_HEADER_CHARS]: headers[name][:MAX_HEADER_CHARS] for name in sorted(others)[:40]})
    return _encode_json(values).decode()


def _unpack_request_headers(row: Mapping[str, Any]) -> dict[str, str]:
    values: list[Any] = json.loads(row["request_headers"] or "[]")
    packed: dict[str, str | None] = dict(zip(_PACKED_HEADERS, values, strict=False))
    others: dict[str, str] = values[len(_PACKED_HEADERS)] if len(values) > len(_PACKED_HEADERS) else {}
    derived = {name: str(row[column]) for name, column in _DERIVED_HEADERS.items()}
    sent = {"Content-Type": CALLBACK_CONTENT_TYPE, **packed, **derived}
    return {**others, **{name: text for name, text in sent.items() if text is not None}}


def _encode_headers(headers: Mapping[str, str]) -> str:
    """Encode the first headers, with long values shortened: the size of a receiver's response is limited."""
    if len(headers) <= MAX_STORED_HEADERS:
        text = _encode_json(dict(headers)).decode()
        if len(text) <= MAX_HEADER_CHARS and "\\u0000" not in text:  # then no value is too long
            return text
    shortened = {
        name[:MAX_HEADER_CHARS]: text[:MAX_HEADER_CHARS].replace("\0", "")
        for name, text in list(headers.items())[:MAX_STORED_HEADERS]
    }
    return _encode_json(shortened).decode()


_FIRST_ATTEMPT_COLUMNS: Final = ("subscription_id", "duration_ms", "status", "response_body", "response_headers")
_JOB_AND_ATTEMPT_COLUMNS: Final = {  # they are shown as its job, and in the list of its attempts
    *("position", "due_ms", "attempt", "defects", "state", "note", "detached"),
    *("attempted_on_ms", "duration_ms", "status", "response_body", "request_headers", "response_headers"),
}
_FIRST_ATTEMPT_ENDS: Final = (
    select(attempts.c.callback_id, func.min(attempts.c.at_ms + attempts.c.duration_ms).label("ended_on_ms"))
    .where(equals_any(attempts.c.callback_id, "ids"))
    .group_by(attempts.c.callback_id)
)
_CALLBACKS_BY_ID: Final = BulkSelect(callbacks, CallbackRow, "id")
_RESERVE_SEQUENCES: Final = bulk_count(sequences, "subscription_id", "subject", "last")
_BODY: Final = CallbackRow._fields.index("body")
_INSERT_CALLBACKS: Final = BulkInsert(callbacks, *CallbackRow._fields, "due_ms", positions="position")
_RESULT_COLUMNS: Final = ("duration_ms", "status", "response_body")
_HEADER_COLUMNS: Final = ("request_headers", "response_headers")
_INSERT_ATTEMPTS: Final = BulkInsert(
    attempts, "callback_id", "subscription_id", "at_ms", *_RESULT_COLUMNS, "error", *_HEADER_COLUMNS, "kind"
)
_UPDATE_DELIVERED_AT_ONCE: Final = BulkUpdate(
    callbacks, "id", "ended_on_ms", "delivered", "attempted_on_ms", *_RESULT_COLUMNS, *_HEADER_COLUMNS
)
_UPDATE_ENDED: Final = BulkUpdate(callbacks, "id", "ended_on_ms", "delivered")
_UPDATE_UNLESS_DELIVERED: Final = (
    update(callbacks)
    .where(callbacks.c.id == bindparam("at"), callbacks.c.delivered.is_not(True))
    .values(ended_on_ms=bindparam("ended_on_ms"), delivered=bindparam("delivered"))
)


REPLAY_BATCH_JOBS: Final = 500  # how many jobs one transaction enqueues, so that no other write waits long for it


@dataclass(frozen=True, slots=True)
class ReplayFilter:
    """Filter of callbacks: all given conditions must match. A callback that still waits never matches."""

    subscriptions: SubscriptionFilter  # the subscriptions; callbacks of a deleted one cannot be replayed
    callback_id: str | None  # one callback
    recipient: str | None  # a phone number or business-scoped id
    event: str | None  # as named in the trace, such as `delivered`
    delivered: bool | None  # True those that were, False those that failed for good, None both
    from_ms: int  # rendered from then on
    to_ms: int  # and before then
    message_ids: tuple[str, ...] = ()  # about one of these messages; empty: about any, or none


ReplayCursor = tuple[int, int, str, int]
"""Subscription, time, subject and sequence number of the last callback that was read."""


def count_replays(connection: Connection, query: ReplayFilter) -> dict[str, int]:
    """Return how many match, and how many more still wait for their first delivery."""
    fitting = select(func.count()).where(_filter_condition(connection, query))
    waiting = fitting.where(callbacks.c.ended_on_ms.is_(None))
    ended = fitting.where(
        callbacks.c.ended_on_ms.is_not(None), *filter_conditions((is_, callbacks.c.delivered, query.delivered))
    )
    counts = (("callbacks", ended), ("waiting", waiting))
    return {name: connection.execute(counted).scalar_one() for name, counted in counts}


def enqueue_replays(
    connection: Connection, query: ReplayFilter, after: ReplayCursor | None, due_ms: int
) -> tuple[int, ReplayCursor | None]:
    """Enqueue jobs for the next callbacks, oldest first for each subscription.

    Returns:
        How many, and where to continue; None after the last.
    """
    order = (callbacks.c.subscription_id, callbacks.c.created_on_ms, callbacks.c.subject, callbacks.c.sequence)
    statement = select(callbacks.c.id, *order).where(
        _filter_condition(connection, query),
        callbacks.c.ended_on_ms.is_not(None),
        *filter_conditions((is_, callbacks.c.delivered, query.delivered)),
    )
    if after is not None:
        statement = statement.where(tuple_(*order) > tuple_(*after))
    rows = connection.execute(statement.order_by(*order).limit(REPLAY_BATCH_JOBS)).all()
    enqueue_jobs(
        connection,
        [
            NewJob(
                QueueName.CALLBACKS,
                concurrency_group=replay_group(row.subscription_id),
                ordering_key=f"replay {row.subscription_id} {row.subject}",
                subject=JobSubject(SubjectKind.CALLBACK, row.id),
                due_ms=due_ms,
                is_replay=True,
            )
            for row in rows
        ],
    )
    if len(rows) < REPLAY_BATCH_JOBS:
        return len(rows), None
    last = rows[-1]
    return REPLAY_BATCH_JOBS, (last.subscription_id, last.created_on_ms, last.subject, last.sequence)


def _filter_condition(connection: Connection, query: ReplayFilter) -> ColumnElement[bool]:
    statement = select(subscriptions.c.id, subscriptions.c.app_id, subscriptions.c.partner_id)
    statement = statement.where(*query.subscriptions.conditions)
    if query.callback_id is not None:
        subscription_id = select(callbacks.c.subscription_id).where(callbacks.c.id == query.callback_id)
        statement = statement.where(subscriptions.c.id == subscription_id.scalar_subquery())
    chosen = connection.execute(statement).all()
    return and_(
        callbacks.c.subscription_id.in_([row.id for row in chosen]),
        callbacks.c.partner_id.in_({row.partner_id for row in chosen}),
        callbacks.c.created_on_ms >= query.from_ms,
        callbacks.c.created_on_ms < query.to_ms,
        *filter_conditions(
            (eq, callbacks.c.id, query.callback_id),
            (in_op, callbacks.c.message_id, query.message_ids or None),
            (eq, callbacks.c.event, query.event),
        ),
        *is_about(connection, {row.app_id for row in chosen}, query.recipient),
    )


def is_about(connection: Connection, app_ids: Collection[str], recipient: str | None) -> list[ColumnElement[bool]]:
    """Return the condition of callbacks about a recipient of apps, by its number or id; none if none is named."""
    if recipient is None:
        return []
    has_name = or_(recipients.c.phone_number == recipient, recipients.c.user_id == recipient)
    known = recipient_ids(connection, and_(recipients.c.app_id.in_(app_ids), has_name))
    # Before the operator has identified a recipient, its callbacks are about the destination.
    return [callbacks.c.subject.in_([recipient, *map(str, known)])]
