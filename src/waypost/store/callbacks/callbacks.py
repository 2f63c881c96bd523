"""Callbacks, their sequence numbers, and every attempt to deliver them."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Connection, bindparam, func, select, update

from waypost.domain.callbacks.callback import AttemptKind, CallbackAttempt
from waypost.store.bulk_statements import BulkInsert, BulkUpdate
from waypost.store.callbacks.receivers import receiver_failure
from waypost.store.messages.one_time_codes import callback_holds_code
from waypost.store.sql import equals_any, upsert
from waypost.store.tables import attempts, callbacks, sequences
from waypost.store.typed_rows import select_row
from waypost.store.write_through_cache import CachedTable, cache_new_rows

MAX_STORED_HEADERS: Final = 40
MAX_HEADER_CHARS: Final = 300


class CallbackRow(NamedTuple):
    """A rendered callback, without its outcome.

    Attributes:
        subject: the recipient's id, or another text within which order is kept.
        message_id: ours, if it is about a message.
        event: its name, as named in the trace.
        body: every attempt sends these bytes.
    """

    id: str
    partner_id: int
    app_id: str
    subscription_id: int
    subject: str
    sequence: int
    message_id: str | None
    event: str
    body: bytes
    created_on_ms: int


CACHED_CALLBACKS: Final[CachedTable[str, CallbackRow]] = CachedTable("callbacks", lambda row: len(row.body))
"""New callbacks, while this process has them in memory."""


def reserve_sequence_numbers(
    connection: Connection, counts: Mapping[tuple[int, str], int]
) -> dict[tuple[int, str], int]:
    """Reserve sequence numbers.

    Args:
        connection: the writer's.
        counts: how many for each (subscription, recipient).

    Returns:
        The last number reserved for each.
    """
    if not counts:
        return {}
    rows = connection.execute(
        _RESERVE_SEQUENCES,
        [
            {"subscription_id": subscription_id, "subject": subject, "last": count}
            for (subscription_id, subject), count in sorted(counts.items())
        ],
    )
    return {(row.subscription_id, row.subject): row.last for row in rows}


def add_callbacks(connection: Connection, rows: Sequence[CallbackRow]) -> None:
    """Store rendered callbacks."""
    _INSERT_CALLBACKS.run(connection, [row._asdict() for row in rows])
    cache_new_rows(connection, CACHED_CALLBACKS, ((row.id, row) for row in rows))


def callbacks_by_ids(connection: Connection, ids: set[str]) -> dict[str, CallbackRow]:
    """Return rows by id."""
    return {row.id: row for row in map(CallbackRow._make, connection.execute(_CALLBACK_ROWS_BY_IDS, {"ids": ids}))}


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt of one callback.

    Attributes:
        kind: why it was made.
        delivered: True if it was delivered, False if it failed for good, None if it is retried.
    """

    callback_id: str
    subscription_id: int
    attempt: CallbackAttempt
    delivered: bool | None
    kind: AttemptKind = AttemptKind.INITIAL


def record_attempts(connection: Connection, callback_attempts: Sequence[AttemptRecord]) -> None:
    """Store attempts, and the outcomes of callbacks: a replay does not change when one was first delivered."""
    _INSERT_ATTEMPTS.run(
        connection,
        [
            {
                "callback_id": callback_attempt.callback_id,
                "subscription_id": callback_attempt.subscription_id,
                "at_ms": callback_attempt.attempt.at_ms,
                "duration_ms": callback_attempt.attempt.duration_ms,
                "status": callback_attempt.attempt.status,
                "response_body": callback_attempt.attempt.response[:4096],
                "error": callback_attempt.attempt.error,
                "request_headers": _encode_headers(callback_attempt.attempt.request_headers),
                "response_headers": _encode_headers(callback_attempt.attempt.response_headers),
                "kind": callback_attempt.kind.value,
            }
            for callback_attempt in callback_attempts
        ],
    )
    ended = [callback_attempt for callback_attempt in callback_attempts if callback_attempt.delivered is not None]
    _UPDATE_ENDED.run(
        connection,
        [
            _end_columns(callback_attempt)
            for callback_attempt in ended
            if callback_attempt.kind is not AttemptKind.REPLAY
        ],
    )
    replay_outcomes = [
        _end_columns(callback_attempt) for callback_attempt in ended if callback_attempt.kind is AttemptKind.REPLAY
    ]
    if replay_outcomes:
        connection.execute(_UPDATE_REPLAYED, replay_outcomes)


def _end_columns(callback_attempt: AttemptRecord) -> dict[str, Any]:
    at_ms = callback_attempt.attempt.at_ms + callback_attempt.attempt.duration_ms
    return {"at": callback_attempt.callback_id, "ended_on_ms": at_ms, "delivered": callback_attempt.delivered}


def attempt_kind(kind: str, number: int) -> str:
    """Return why an attempt was made; before revision 6 it follows from the number, counted from 1."""
    return kind or (AttemptKind.INITIAL if number == 1 else AttemptKind.RETRY).value


def first_attempt_times(connection: Connection, ids: Collection[str]) -> dict[str, int]:
    """Return the time of the first attempt of each callback; those without an attempt are left out."""
    if not ids:
        return {}
    rows = connection.execute(_FIRST_ATTEMPTS, {"ids": ids})
    return {row.callback_id: row.at_ms for row in rows}


def callback_with_attempts(connection: Connection, callback_id: str) -> dict[str, Any] | None:
    """Return a callback with its exact bytes as text, and every attempt; None if there is none.

    Until it is delivered, also since when its receiver has been failing, and when the next attempt is due.
    """
    row = connection.execute(_CALLBACKS_BY_IDS, {"ids": [callback_id]}).mappings().one_or_none()
    if row is None:
        return None
    is_open = row["ended_on_ms"] is None
    failure = receiver_failure(connection, row["subscription_id"]) if is_open else {}
    return {**read_callback_details(connection, dict(row)), **failure}


def read_callback_details(connection: Connection, row: dict[str, Any]) -> dict[str, Any]:
    """Return a callback's row with its body as text, whether that may hold a one-time code, and its attempts."""
    query = select(attempts).where(attempts.c.callback_id == row["id"]).order_by(attempts.c.id)
    return {
        **row,
        "body": row["body"].decode(),
        "holds_code": callback_holds_code(connection, row),
        "attempts": [
            {
                **attempt,
                "kind": attempt_kind(attempt["kind"], number),
                "response_body": attempt["response_body"].decode("utf-8", "replace"),
                "request_headers": json.loads(attempt["request_headers"] or "{}"),
                "response_headers": json.loads(attempt["response_headers"] or "{}"),
            }
            for number, attempt in enumerate(connection.execute(query).mappings(), 1)
        ],
    }


def _encode_headers(headers: Mapping[str, str]) -> str:
    """Encode the first headers, with long values shortened: the size of a receiver's response is limited."""
    shortened = {
        name[:MAX_HEADER_CHARS]: text[:MAX_HEADER_CHARS].replace("\0", "")
        for name, text in list(headers.items())[:MAX_STORED_HEADERS]
    }
    return msgspec.json.encode(shortened).decode()


_FIRST_ATTEMPTS: Final = (
    select(attempts.c.callback_id, func.min(attempts.c.at_ms).label("at_ms"))
    .where(equals_any(attempts.c.callback_id, "ids"))
    .group_by(attempts.c.callback_id)
)
_CALLBACKS_BY_IDS: Final = select(callbacks).where(equals_any(callbacks.c.id, "ids"))
_CALLBACK_ROWS_BY_IDS: Final = select_row(callbacks, CallbackRow).where(equals_any(callbacks.c.id, "ids"))
_INSERT_SEQUENCE = upsert(sequences)
_RESERVE_SEQUENCES: Final = _INSERT_SEQUENCE.on_conflict_do_update(
    index_elements=["subscription_id", "subject"], set_={"last": sequences.c.last + _INSERT_SEQUENCE.excluded.last}
).returning(sequences.c.subscription_id, sequences.c.subject, sequences.c.last)
_INSERT_CALLBACKS: Final = BulkInsert(callbacks, *CallbackRow._fields)
_INSERT_ATTEMPTS: Final = BulkInsert(
    attempts, "callback_id", "subscription_id", "at_ms", "duration_ms", "status", "response_body", "error",
    "request_headers", "response_headers", "kind",
)  # fmt: skip
_UPDATE_ENDED: Final = BulkUpdate(callbacks, "id", "ended_on_ms", "delivered")
_UPDATE_REPLAYED: Final = (
    update(callbacks)
    .where(callbacks.c.id == bindparam("at"), callbacks.c.delivered.is_not(True))
    .values(ended_on_ms=bindparam("ended_on_ms"), delivered=bindparam("delivered"))
)
