"""A try that was put off stands in a message's trace once, whatever became of the commit's answer."""

from dataclasses import replace
from typing import Final

from sqlalchemy import Connection, select

from tests.support.builders import AT_MS, message
from waypost.store.console.trace import message_trace
from waypost.store.database import Database
from waypost.store.messages.messages import record_messages
from waypost.store.queue.jobs import JobRetry, JobState, QueueName, ShardFence, retry_jobs_later
from waypost.store.tables import queue_jobs
from waypost.store.trace_events import SEND_ATTEMPTED, MessageTraceEvent

MESSAGE: Final = message(1)


def release(position: int, attempt: int) -> JobRetry:
    """The message's entry, given back after a try."""
    news = MessageTraceEvent(MESSAGE.id, SEND_ATTEMPTED, AT_MS + attempt, is_applied=False, detail="away")
    fence = ShardFence(QueueName.OUTBOUND, None, "")
    return JobRetry(position, AT_MS, attempt, 0, JobState.OPEN, False, "away", fence, news)


async def position_of_entry(database: Database) -> int:
    def found(connection: Connection) -> int:
        return connection.execute(select(queue_jobs.c.position)).scalar_one()

    return await database.read(found)


async def tries(database: Database) -> list[int]:
    trace = await database.read(message_trace, MESSAGE.id)
    assert trace is not None
    return [line["at_ms"] - AT_MS for line in trace["news"]]


async def test_release_that_is_written_again_tells_its_try_once(database: Database) -> None:
    await database.join(record_messages, MESSAGE)
    first = release(await position_of_entry(database), 1)

    for _ in range(2):  # the second as after a commit whose answer was lost
        await database.join(retry_jobs_later, first)
    await database.join(retry_jobs_later, replace(first, attempt=2, event=release(0, 2).event))

    assert await tries(database) == [1, 2]


async def test_release_of_an_entry_that_is_gone_tells_nothing(database: Database) -> None:
    await database.join(record_messages, MESSAGE)

    await database.join(retry_jobs_later, release(await position_of_entry(database) + 1, 1))

    assert await tries(database) == []
