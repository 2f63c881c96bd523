"""How much waits in the queues, asked so that the answer costs the same however much it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, bindparam, case, func, select

from waypost.store.queue.jobs import IS_DEAD_LETTER, JobState, QueueName
from waypost.store.tables import queue_jobs, subscriptions

MOST: Final = 20_000
"""How many entries of a queue are counted; of a longer one it is known that it is longer."""


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """One queue.

    Attributes:
        jobs: by state, of those that were counted.
        oldest_due_ms: of what may be worked; None where there is nothing.
        is_longer: there are more entries than were counted.
    """

    jobs: Mapping[JobState, int]
    oldest_due_ms: int | None
    is_longer: bool


@dataclass(frozen=True, slots=True)
class QueueDepths:
    """Everything that waits.

    Attributes:
        paused: subscriptions, by who paused them.
    """

    queues: Mapping[QueueName, QueueDepth]
    paused: Mapping[str, int]


def read_queue_depths(connection: Connection) -> QueueDepths:
    """Count what waits, reading at most `MOST` entries of each queue."""
    found = connection.execute(_PAUSED, {"most": MOST}).one()
    paused = {"service": found.by_service, "partner": found.by_partner}
    return QueueDepths({queue_name: _read_depth(connection, queue_name) for queue_name in QueueName}, paused)


def _read_depth(connection: Connection, queue_name: QueueName) -> QueueDepth:
    rows = connection.execute(_OF_QUEUE, {"queue": int(queue_name), "most": MOST}).all()
    counted = {JobState(row.state): row.entries for row in rows}
    dues = [row.oldest_due_ms for row in rows if row.state < JobState.DEAD_LETTER]
    # What is set aside has a small index of its own, so that none is missed behind a long queue.
    aside = connection.execute(_IS_DEAD_LETTER, {"queue": int(queue_name), "most": MOST}).all()
    return QueueDepth(
        {state: counted.get(state, 0) for state in _WORKED}
        | dict.fromkeys(_DEAD_LETTERS_COUNT, 0)
        | {JobState(row.state): row.entries for row in aside},
        min(dues, default=None),
        sum(counted.values()) >= MOST,
    )


_WORKED: Final = (JobState.OPEN, JobState.IN_FLIGHT)
_DEAD_LETTERS_COUNT: Final = (JobState.DEAD_LETTER, JobState.DEAD_LETTER_IN_FLIGHT)
_counted = (
    select(queue_jobs.c.state, queue_jobs.c.due_ms)
    .where(queue_jobs.c.queue == bindparam("queue"))
    .order_by(queue_jobs.c.concurrency_group, queue_jobs.c.position)
    .limit(bindparam("most"))
    .subquery()
)
_OF_QUEUE: Final = select(
    _counted.c.state, func.count().label("entries"), func.min(_counted.c.due_ms).label("oldest_due_ms")
).group_by(_counted.c.state)

_dead_letters = (
    select(queue_jobs.c.state)
    .where(queue_jobs.c.queue == bindparam("queue"), IS_DEAD_LETTER)
    .limit(bindparam("most"))
    .subquery()
)
_IS_DEAD_LETTER: Final = select(_dead_letters.c.state, func.count().label("entries")).group_by(_dead_letters.c.state)

_looked_at = select(subscriptions.c.active, subscriptions.c.paused_on_ms).limit(bindparam("most")).subquery()
_PAUSED: Final = select(
    func.count(_looked_at.c.paused_on_ms).label("by_service"),
    func.count(case((_looked_at.c.active.is_(False), 1))).label("by_partner"),
)
