"""Depths of the queues, read at a cost that does not grow with them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, bindparam, case, func, select

from waypost.store.queue.dead_letters import IS_DEAD_LETTER
from waypost.store.queue.jobs import JobState, QueueName
from waypost.store.tables import queue_jobs, subscriptions

MAX_COUNTED_PER_QUEUE: Final = 20_000
"""How many jobs of a queue are counted; a longer queue is only known to be longer."""


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """Depth of one queue.

    Attributes:
        jobs: by state, of those that were counted.
        oldest_due_ms: of jobs that may be worked; None if there are none.
        is_longer: there are more jobs than were counted.
    """

    jobs: Mapping[JobState, int]
    oldest_due_ms: int | None
    is_longer: bool


@dataclass(frozen=True, slots=True)
class QueueDepths:
    """Depths of all queues.

    Attributes:
        paused: subscriptions, by who paused them.
    """

    queues: Mapping[QueueName, QueueDepth]
    paused: Mapping[str, int]


def read_queue_depths(connection: Connection) -> QueueDepths:
    """Count waiting jobs, reading at most `MAX_COUNTED_PER_QUEUE` jobs of each queue."""
    paused_row = connection.execute(_COUNT_PAUSED, {"limit": MAX_COUNTED_PER_QUEUE}).one()
    paused = {"service": paused_row.by_service, "partner": paused_row.by_partner}
    return QueueDepths({queue_name: _read_depth(connection, queue_name) for queue_name in QueueName}, paused)


def _read_depth(connection: Connection, queue_name: QueueName) -> QueueDepth:
    rows = connection.execute(_COUNT_BY_STATE, {"queue": int(queue_name), "limit": MAX_COUNTED_PER_QUEUE}).all()
    counted = {JobState(row.state): row.jobs for row in rows}
    dues = [row.oldest_due_ms for row in rows if row.state < JobState.DEAD_LETTER]
    # Dead letters have a small index of their own, so that none is missed in a long queue.
    dead_letters = connection.execute(
        _COUNT_DEAD_LETTERS, {"queue": int(queue_name), "limit": MAX_COUNTED_PER_QUEUE}
    ).all()
    return QueueDepth(
        {state: counted.get(state, 0) for state in _WORKABLE_STATES}
        | dict.fromkeys(_DEAD_LETTER_STATES, 0)
        | {JobState(row.state): row.jobs for row in dead_letters},
        min(dues, default=None),
        sum(counted.values()) >= MAX_COUNTED_PER_QUEUE,
    )


_WORKABLE_STATES: Final = (JobState.OPEN, JobState.IN_FLIGHT)
_DEAD_LETTER_STATES: Final = (JobState.DEAD_LETTER, JobState.DEAD_LETTER_IN_FLIGHT)
_counted_jobs = (
    select(queue_jobs.c.state, queue_jobs.c.due_ms)
    .where(queue_jobs.c.queue == bindparam("queue"))
    .order_by(queue_jobs.c.concurrency_group, queue_jobs.c.position)
    .limit(bindparam("limit"))
    .subquery()
)
_COUNT_BY_STATE: Final = select(
    _counted_jobs.c.state, func.count().label("jobs"), func.min(_counted_jobs.c.due_ms).label("oldest_due_ms")
).group_by(_counted_jobs.c.state)

_dead_letters = (
    select(queue_jobs.c.state)
    .where(queue_jobs.c.queue == bindparam("queue"), IS_DEAD_LETTER)
    .limit(bindparam("limit"))
    .subquery()
)
_COUNT_DEAD_LETTERS: Final = select(_dead_letters.c.state, func.count().label("jobs")).group_by(_dead_letters.c.state)

_scanned_subscriptions = (
    select(subscriptions.c.active, subscriptions.c.paused_on_ms).limit(bindparam("limit")).subquery()
)
_COUNT_PAUSED: Final = select(
    func.count(_scanned_subscriptions.c.paused_on_ms).label("by_service"),
    func.count(case((_scanned_subscriptions.c.active.is_(False), 1))).label("by_partner"),
)
