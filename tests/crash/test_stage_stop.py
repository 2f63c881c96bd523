"""A stage that is told to stop, at the moments at which a stop under load finds it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import pytest_asyncio

from waypost.base.clock import SystemClock
from waypost.queue.job import Job
from waypost.queue.queue import JobQueue
from waypost.queue.worker import PreparedJobs, StageWorker
from waypost.store.database import Database
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.queue.job_subjects import JobSubject, SubjectKind
from waypost.store.queue.jobs import NewJob, QueueName, enqueue_jobs

ENTRY: Final = NewJob(QueueName.OUTBOUND, "a group", "a key", JobSubject(SubjectKind.MESSAGE, "1"), due_ms=0)


@pytest_asyncio.fixture
async def queue(tmp_path: Path) -> AsyncIterator[JobQueue]:
    """A journal with one entry in its submissions queue."""
    database = Database(SqliteEngine(tmp_path / "waypost.db"))
    await database.open()
    opened = JobQueue(database, SystemClock(), holder="a holder")
    await opened.open()
    await database.write(enqueue_jobs, [ENTRY])
    yield opened
    await opened.close()
    await database.close()


async def test_stop_waits_for_work_whose_batch_was_still_being_prepared(queue: JobQueue) -> None:
    """The in-hand mark is part of preparing: cut off after it, a message would be uncertain."""
    preparing, ended = asyncio.Event(), asyncio.Event()

    async def prepare(entries: Sequence[Job]) -> PreparedJobs:
        preparing.set()
        await asyncio.sleep(0.05)
        return [(job, work_of(job)) for job in entries]

    def work_of(job: Job) -> Callable[[], Awaitable[None]]:
        async def work() -> None:
            await asyncio.sleep(0.05)
            ended.set()
            queue.abandon(job)

        return work

    stage = StageWorker(queue, QueueName.OUTBOUND, prepare)
    running = asyncio.create_task(stage.run())
    await preparing.wait()

    await stage.stop(timeout_s=5)

    assert ended.is_set()
    assert stage.active_jobs == 0
    await running


async def test_stop_begins_nothing_that_is_claimed_meanwhile(queue: JobQueue) -> None:
    begun: list[Job] = []

    async def prepare(entries: Sequence[Job]) -> PreparedJobs:
        begun.extend(entries)
        return []

    stage = StageWorker(queue, QueueName.OUTBOUND, prepare)
    running = asyncio.create_task(stage.run())
    await asyncio.sleep(0)  # it reads the queue on another thread now

    await stage.stop(timeout_s=5)
    await running

    assert begun == []
    assert [job.subject.ref for job in await queue.claim(QueueName.OUTBOUND, at_most=1)] == [ENTRY.subject.ref]
