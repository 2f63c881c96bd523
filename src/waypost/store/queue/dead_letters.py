"""Dead letters: jobs that a defect keeps from being worked, until a person retries or deletes them."""

from typing import Final, NamedTuple

from sqlalchemy import Connection, delete, insert, literal_column, select

from waypost.store.queue.callback_jobs import end_dead_callback, live_group, open_callbacks, reopen_dead_callback
from waypost.store.queue.names import JobState, QueueName
from waypost.store.tables import queue_jobs
from waypost.store.typed_rows import select_row
from waypost.store.write_through_cache import enqueued_jobs


class DeadLetter(NamedTuple):
    """A job that waits for a person, with the reason why it was parked."""

    position: int
    queue: int
    concurrency_group: str
    ref: str
    defects: int
    note: str | None


def read_dead_letters(connection: Connection, *, at_most: int = 100) -> list[DeadLetter]:
    """Return dead letters by queue and position, as in their index."""
    found = [
        dead_letter
        for statement in (_OLDEST_DEAD_LETTERS, _OLDEST_DEAD_CALLBACKS)
        for dead_letter in map(DeadLetter._make, connection.execute(statement.limit(at_most)))
    ]
    return sorted(found, key=lambda dead_letter: (dead_letter.queue, dead_letter.position))[:at_most]


def reopen_dead_letter(connection: Connection, position: int, due_ms: int) -> bool:
    """Move a dead letter to the end of its queue, to be worked again.

    One that may have been sent becomes in flight, so that it is not sent again.
    """
    row = connection.execute(
        delete(queue_jobs).where(queue_jobs.c.position == position, IS_DEAD_LETTER).returning(queue_jobs)
    ).one_or_none()
    if row is None:
        return _reopen_callback(connection, position, due_ms)
    was_in_flight = row.state == JobState.DEAD_LETTER_IN_FLIGHT
    connection.execute(
        insert(queue_jobs),
        {
            "queue": row.queue,
            "concurrency_group": row.concurrency_group,
            "ordering_key": row.ordering_key,
            "ref": row.ref,
            "due_ms": due_ms,
            "state": int(JobState.IN_FLIGHT if was_in_flight else JobState.OPEN),
            "detached": row.detached,
            "replay": row.replay,
        },
    )
    enqueued_jobs(connection).add_group(row.queue, row.concurrency_group)
    return True


def remove_dead_letter(connection: Connection, position: int, now_ms: int) -> bool:
    """Delete a dead letter; its work is not done. A callback stays, as one that was not delivered."""
    deleted = connection.execute(delete(queue_jobs).where(queue_jobs.c.position == position, IS_DEAD_LETTER))
    return deleted.rowcount == 1 or end_dead_callback(connection, position, now_ms)


def _reopen_callback(connection: Connection, position: int, due_ms: int) -> bool:
    subscription_id = reopen_dead_callback(connection, position, due_ms)
    if subscription_id is None:
        return False
    enqueued_jobs(connection).add_group(QueueName.CALLBACKS, live_group(subscription_id))
    return True


IS_DEAD_LETTER: Final = queue_jobs.c.state >= literal_column(str(int(JobState.DEAD_LETTER)))
"""As in the partial index: with a parameter instead, a planner does not know that it may use the index."""
_OLDEST_DEAD_LETTERS: Final = (
    select_row(queue_jobs, DeadLetter).where(IS_DEAD_LETTER).order_by(queue_jobs.c.queue, queue_jobs.c.position)
)
_OLDEST_DEAD_CALLBACKS: Final = (
    select(*(open_callbacks.c[name] for name in DeadLetter._fields))
    .where(open_callbacks.c.state >= literal_column(str(int(JobState.DEAD_LETTER))))
    .order_by(open_callbacks.c.position)
)
