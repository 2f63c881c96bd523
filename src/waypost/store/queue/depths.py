"""Depths of the queues, read at a cost that does not grow with them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, FromClause, bindparam, case, func, literal_column, select

from waypost.store.queue.callback_jobs import open_callbacks
from waypost.store.queue.dead_letters import IS_DEAD_LETTER
from waypost.store.queue.names import JobState, QueueName
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
    parameters = {"queue": int(queue_name), "limit": MAX_COUNTED_PER_QUEUE}
    sources = _SOURCES if queue_name is QueueName.CALLBACKS else _SOURCES[:1]
    counted, dead_letters, dues = Counter[JobState](), Counter[JobState](), list[int]()
    for count_by_state, count_dead_letters in sources:
        for row in connection.execute(count_by_state, parameters):
            counted[JobState(row.state)] += row.jobs
            if row.state < JobState.DEAD_LETTER:
                dues.append(row.oldest_due_ms)
        # Dead letters have a small index of their own, so that none is missed in a long queue.
        for row in connection.execute(count_dead_letters, parameters):
            dead_letters[JobState(row.state)] += row.jobs
    return QueueDepth(
        {state: counted[state] for state in _WORKABLE_STATES}
        | {state: dead_letters[state] for state in _DEAD_LETTER_STATES},
        min(dues, default=None),
        sum(counted.values()) >= MAX_COUNTED_PER_QUEUE,
    )


_WORKABLE_STATES: Final = (JobState.OPEN, JobState.IN_FLIGHT)
_DEAD_LETTER_STATES: Final = (JobState.DEAD_LETTER, JobState.DEAD_LETTER_IN_FLIGHT)


def _count_statements(jobs: FromClause, group_column: str, is_dead_letter: Any) -> tuple[Any, Any]:
    """Return the statements that count the first jobs of a source by state, and its dead letters."""
    of_queue = jobs.c.queue == bindparam("queue")
    counted = (
        select(jobs.c.state, jobs.c.due_ms)
        .where(of_queue)
        .order_by(jobs.c[group_column], jobs.c.position)
        .limit(bindparam("limit"))
        .subquery()
    )
    dead_letters = select(jobs.c.state).where(of_queue, is_dead_letter).limit(bindparam("limit")).subquery()
    return (
        select(counted.c.state, func.count().label("jobs"), func.min(counted.c.due_ms).label("oldest_due_ms")).group_by(
            counted.c.state
        ),
        select(dead_letters.c.state, func.count().label("jobs")).group_by(dead_letters.c.state),
    )


_SOURCES: Final = (
    _count_statements(queue_jobs, "concurrency_group", IS_DEAD_LETTER),
    _count_statements(
        open_callbacks, "subscription_id", open_callbacks.c.state >= literal_column(str(int(JobState.DEAD_LETTER)))
    ),
)

_scanned_subscriptions = (
    select(subscriptions.c.active, subscriptions.c.paused_on_ms).limit(bindparam("limit")).subquery()
)
_COUNT_PAUSED: Final = select(
    func.count(_scanned_subscriptions.c.paused_on_ms).label("by_service"),
    func.count(case((_scanned_subscriptions.c.active.is_(False), 1))).label("by_partner"),
)
