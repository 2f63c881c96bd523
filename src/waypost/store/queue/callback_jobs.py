"""Callbacks as jobs: a callback that has not ended is its own job in the queue `callbacks`.

Its position, due time and attempt count are columns of its row, so that rendering it enqueues it and
recording its outcome completes it (decision 0089). Replays are rows of `queue_jobs`, like the jobs of
every other queue. The columns of `open_callbacks` have the names of those of `queue_jobs`.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection, Integer, Text, cast, false, literal_column, select, text, update

from waypost.store.bulk_statements import BULK_STATEMENTS, BulkUpdate
from waypost.store.queue.names import JobState, QueueName
from waypost.store.tables import callbacks

_LIVE_PREFIX: Final = "subscription "


@lru_cache(maxsize=65_536)
def live_group(id: int | str) -> str:
    """Return the concurrency group of a subscription's callbacks."""
    return f"{_LIVE_PREFIX}{id}"


@lru_cache(maxsize=65_536)
def replay_group(id: int | str) -> str:
    """Return the concurrency group of its replays: they do not delay other callbacks."""
    return f"replay {id}"


@lru_cache(maxsize=65_536)
def group_subscription_id(group: str) -> int:
    """Return the id of the subscription of a concurrency group in the callbacks queue."""
    return int(group.rpartition(" ")[2])


def is_live_group(queue_name: QueueName, group: str) -> bool:
    """Return True if the jobs of a group are callbacks, and not rows of `queue_jobs`."""
    return queue_name is QueueName.CALLBACKS and group.startswith(_LIVE_PREFIX)


def ordering_key(subscription_id: int, subject: str) -> str:
    """Return the ordering key of a callback."""
    return f"{subscription_id} {subject}"


_subscription_text = cast(callbacks.c.subscription_id, Text)
_JOB_COLUMNS: Final = (
    literal_column(str(int(QueueName.CALLBACKS)), Integer).label("queue"),
    callbacks.c.subscription_id,
    (literal_column(f"'{_LIVE_PREFIX}'", Text) + _subscription_text).label("concurrency_group"),
    (_subscription_text + literal_column("' '", Text) + callbacks.c.subject).label("ordering_key"),
    callbacks.c.id.label("ref"),
    callbacks.c.position,
    callbacks.c.due_ms,
    callbacks.c.attempt,
    callbacks.c.defects,
    callbacks.c.state,
    callbacks.c.note,
    callbacks.c.detached,
    false().label("replay"),
    callbacks.c.created_on_ms,
)
open_callbacks: Final = (
    select(*_JOB_COLUMNS)
    .where(text("callbacks.ended_on_ms IS NULL"))  # as in the partial index
    .subquery("open_callbacks")
)
"""The callbacks that have not ended, dead letters included."""

MARK_CALLBACK_IN_FLIGHT: Final = BulkUpdate(callbacks, "id", "state")
RETRY_CALLBACK_LATER: Final = BulkUpdate(callbacks, "id", "due_ms", "attempt", "defects", "state", "detached", "note")


def next_open_subscription(connection: Connection, after: int) -> int | None:
    """Return the first subscription with open callbacks whose id is higher, found by skipping through the index."""
    return connection.execute(_NEXT_SUBSCRIPTION, {"after": after}).scalar_one_or_none()


def reopen_dead_callback(connection: Connection, position: int, due_ms: int) -> int | None:
    """Let a callback that is a dead letter be worked again; return its subscription, or None if there is none.

    Readers of its group have passed its position, so that it gets a new one.
    """
    new_position = connection.info[BULK_STATEMENTS].next_position(connection)
    return connection.execute(
        update(callbacks)
        .where(callbacks.c.position == position, IS_DEAD_CALLBACK)
        .values(position=new_position, state=int(JobState.OPEN), due_ms=due_ms, attempt=0, defects=0, note=None)
        .returning(callbacks.c.subscription_id)
    ).scalar_one_or_none()


def end_dead_callback(connection: Connection, position: int, now_ms: int) -> bool:
    """End a callback that is a dead letter, as one that was not delivered."""
    ended = connection.execute(
        update(callbacks)
        .where(callbacks.c.position == position, IS_DEAD_CALLBACK)
        .values(ended_on_ms=now_ms, delivered=False)
    )
    return ended.rowcount == 1


def find_open_callback(connection: Connection, callback_id: str) -> Mapping[Any, Any] | None:
    """Return a callback's job, with the columns of `open_callbacks`; None if it has ended."""
    query = select(*_JOB_COLUMNS, callbacks.c.ended_on_ms).where(callbacks.c.id == callback_id)
    row = connection.execute(query).mappings().one_or_none()
    return row if row is not None and row["ended_on_ms"] is None else None


IS_DEAD_CALLBACK: Final = text("callbacks.ended_on_ms IS NULL AND callbacks.state >= 2")
"""As in the partial index: with parameters instead, a planner does not know that it may use the index."""
_NEXT_SUBSCRIPTION: Final = text(
    "SELECT subscription_id FROM callbacks WHERE ended_on_ms IS NULL AND subscription_id > :after "
    "ORDER BY subscription_id LIMIT 1"
)
