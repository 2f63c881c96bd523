"""Callbacks, their sequence numbers, and every attempt to deliver them."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Connection, bindparam, func, select, update

from waypost.domain.callbacks.callback import Attempt, AttemptKind
from waypost.store.bulk_statements import Adding, Changing
from waypost.store.callbacks.receivers import receiver_failure
from waypost.store.messages.one_time_codes import callback_holds_code
from waypost.store.sql import insert_or, one_of
from waypost.store.tables import attempts, callbacks, sequences
from waypost.store.typed_rows import select_row
from waypost.store.write_through_cache import FreshTable, are_fresh

MOST_HEADERS: Final = 40
MOST_HEADER_CHARS: Final = 300


class CallbackRow(NamedTuple):
    """A rendered callback, without its outcome.

    Attributes:
        about: the recipient's id, or another text within which order is kept.
        message_id: ours, if it is about a message.
        news: the event, as named in the trace.
        body: every attempt sends these bytes.
    """

    id: str
    partner_id: int
    app_id: str
    subscription_id: int
    about: str
    sequence: int
    message_id: str | None
    news: str
    body: bytes
    created_on_ms: int


FRESH: Final[FreshTable[str, CallbackRow]] = FreshTable("callbacks", lambda row: len(row.body))
"""New callbacks, while this process has them in memory."""


def count_up(connection: Connection, wanted: Mapping[tuple[int, str], int]) -> dict[tuple[int, str], int]:
    """Reserve sequence numbers.

    Args:
        connection: the writer's.
        counts: how many for each (subscription, recipient).

    Returns:
        The last number reserved for each.
    """
    if not wanted:
        return {}
    rows = connection.execute(
        _COUNT_UP,
        [
            {"subscription_id": subscription_id, "about": about, "last": count}
            for (subscription_id, about), count in sorted(wanted.items())
        ],
    )
    return {(row.subscription_id, row.about): row.last for row in rows}


def add_callbacks(connection: Connection, rows: Sequence[CallbackRow]) -> None:
    """Store rendered callbacks."""
    _ADD.run(connection, [row._asdict() for row in rows])
    are_fresh(connection, FRESH, ((row.id, row) for row in rows))


def callbacks_by_ids(connection: Connection, ids: set[str]) -> dict[str, CallbackRow]:
    """Return rows by id."""
    return {row.id: row for row in map(CallbackRow._make, connection.execute(_RENDERED, {"ids": ids}))}


@dataclass(frozen=True, slots=True)
class Tried:
    """One attempt of one callback.

    Attributes:
        kind: why it was made.
        delivered: True if it was delivered, False if it failed for good, None if it is retried.
    """

    callback_id: str
    subscription_id: int
    attempt: Attempt
    ended: bool | None
    kind: AttemptKind = AttemptKind.INITIAL


def record_attempts(connection: Connection, tries: Sequence[Tried]) -> None:
    """Store attempts, and the outcomes of callbacks: a replay does not change when one was first delivered."""
    _ATTEMPT.run(
        connection,
        [
            {
                "callback_id": callback_attempt.callback_id,
                "subscription_id": callback_attempt.subscription_id,
                "at_ms": callback_attempt.attempt.at_ms,
                "duration_ms": callback_attempt.attempt.duration_ms,
                "status": callback_attempt.attempt.status,
                "answer": callback_attempt.attempt.answer[:4096],
                "error": callback_attempt.attempt.error,
                "request_headers": _text(callback_attempt.attempt.sent),
                "answer_headers": _text(callback_attempt.attempt.told),
                "kind": callback_attempt.kind.value,
            }
            for callback_attempt in tries
        ],
    )
    ended = [callback_attempt for callback_attempt in tries if callback_attempt.ended is not None]
    _END.run(
        connection,
        [_end(callback_attempt) for callback_attempt in ended if callback_attempt.kind is not AttemptKind.REPLAY],
    )
    replay_outcomes = [
        _end(callback_attempt) for callback_attempt in ended if callback_attempt.kind is AttemptKind.REPLAY
    ]
    if replay_outcomes:
        connection.execute(_END_REPLAYED, replay_outcomes)


def _end(tried: Tried) -> dict[str, Any]:
    at_ms = tried.attempt.at_ms + tried.attempt.duration_ms
    return {"at": tried.callback_id, "ended_on_ms": at_ms, "delivered": tried.ended}


def attempt_kind(kind: str, number: int) -> str:
    """Return why an attempt was made; before revision 6 it follows from the number, counted from 1."""
    return kind or (AttemptKind.INITIAL if number == 1 else AttemptKind.RETRY).value


def first_tried(connection: Connection, ids: Collection[str]) -> dict[str, int]:
    """Return the time of the first attempt of each callback; those without an attempt are left out."""
    if not ids:
        return {}
    rows = connection.execute(_FIRST_TRIED, {"ids": ids})
    return {row.callback_id: row.at_ms for row in rows}


def callback_with_attempts(connection: Connection, callback_id: str) -> dict[str, Any] | None:
    """Return a callback with its exact bytes as text, and every attempt; None if there is none.

    Until it is delivered, also since when its receiver has been failing, and when the next attempt is due.
    """
    row = connection.execute(_BY_ID, {"ids": [callback_id]}).mappings().one_or_none()
    if row is None:
        return None
    is_open = row["ended_on_ms"] is None
    failure = receiver_failure(connection, row["subscription_id"]) if is_open else {}
    return {**shown_callback(connection, dict(row)), **failure}


def shown_callback(connection: Connection, row: dict[str, Any]) -> dict[str, Any]:
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
                "answer": attempt["answer"].decode("utf-8", "replace"),
                "request_headers": json.loads(attempt["request_headers"] or "{}"),
                "answer_headers": json.loads(attempt["answer_headers"] or "{}"),
            }
            for number, attempt in enumerate(connection.execute(query).mappings(), 1)
        ],
    }


def _text(headers: Mapping[str, str]) -> str:
    """Encode the first headers, with long values shortened: the size of a receiver's response is limited."""
    shortened = {
        name[:MOST_HEADER_CHARS]: text[:MOST_HEADER_CHARS].replace("\0", "")
        for name, text in list(headers.items())[:MOST_HEADERS]
    }
    return msgspec.json.encode(shortened).decode()


_FIRST_TRIED: Final = (
    select(attempts.c.callback_id, func.min(attempts.c.at_ms).label("at_ms"))
    .where(one_of(attempts.c.callback_id, "ids"))
    .group_by(attempts.c.callback_id)
)
_BY_ID: Final = select(callbacks).where(one_of(callbacks.c.id, "ids"))
_RENDERED: Final = select_row(callbacks, CallbackRow).where(one_of(callbacks.c.id, "ids"))
_COUNT = insert_or(sequences)
_COUNT_UP: Final = _COUNT.on_conflict_do_update(
    index_elements=["subscription_id", "about"], set_={"last": sequences.c.last + _COUNT.excluded.last}
).returning(sequences.c.subscription_id, sequences.c.about, sequences.c.last)
_ADD: Final = Adding(callbacks, *CallbackRow._fields)
_ATTEMPT: Final = Adding(
    attempts, "callback_id", "subscription_id", "at_ms", "duration_ms", "status", "answer", "error",
    "request_headers", "answer_headers", "kind",
)  # fmt: skip
_END: Final = Changing(callbacks, "id", "ended_on_ms", "delivered")
_END_REPLAYED: Final = (
    update(callbacks)
    .where(callbacks.c.id == bindparam("at"), callbacks.c.delivered.is_not(True))
    .values(ended_on_ms=bindparam("ended_on_ms"), delivered=bindparam("delivered"))
)
