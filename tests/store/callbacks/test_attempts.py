"""A retried attempt is in a message's trace once, even when the response to the commit was lost."""

from dataclasses import replace
from typing import Final

from sqlalchemy import Connection, select

from tests.support.builders import AT_MS, message
from waypost.store.console.trace import message_trace
from waypost.store.database import Database
from waypost.store.messages.messages import record_messages
from waypost.store.queue.job_subjects import JobState, QueueName
from waypost.store.queue.jobs import JobRetry, ShardFence, retry_jobs_later
from waypost.store.tables import queue_jobs
from waypost.store.trace_events import SEND_ATTEMPTED, MessageTraceEvent

MESSAGE: Final = message(1)


def job_retry(position: int, attempt: int) -> JobRetry:
    """Return the retry of the message's job after an attempt."""
    event = MessageTraceEvent(MESSAGE.id, SEND_ATTEMPTED, AT_MS + attempt, is_applied=False, detail="away")
    fence = ShardFence(QueueName.OUTBOUND, None, "")
    return JobRetry(position, AT_MS, attempt, 0, JobState.OPEN, False, "away", fence, event=event)


async def job_position(database: Database) -> int:
    def read_position(connection: Connection) -> int:
        return connection.execute(select(queue_jobs.c.position)).scalar_one()

    return await database.read(read_position)


async def attempt_times(database: Database) -> list[int]:
    trace = await database.read(message_trace, MESSAGE.id)
    assert trace is not None
    return [line["at_ms"] - AT_MS for line in trace["events"]]


async def test_retry_that_is_written_twice_records_its_attempt_once(database: Database) -> None:
    await database.join(record_messages, MESSAGE)
    first = job_retry(await job_position(database), 1)

    for _ in range(2):  # the second time as after a commit whose response was lost
        await database.join(retry_jobs_later, first)
    await database.join(retry_jobs_later, replace(first, attempt=2, event=job_retry(0, 2).event))

    assert await attempt_times(database) == [1, 2]


async def test_retry_of_a_missing_job_records_no_attempt(database: Database) -> None:
    await database.join(record_messages, MESSAGE)

    await database.join(retry_jobs_later, job_retry(await job_position(database) + 1, 1))

    assert await attempt_times(database) == []
