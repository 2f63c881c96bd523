"""Stopping a stage worker at the moments that occur under load."""

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
from waypost.store.queue.job_subjects import JobSubject, QueueName, SubjectKind
from waypost.store.queue.jobs import NewJob, enqueue_jobs

JOB: Final = NewJob(QueueName.OUTBOUND, "a group", "a key", JobSubject(SubjectKind.MESSAGE, "1"), due_ms=0)


@pytest_asyncio.fixture
async def queue(tmp_path: Path) -> AsyncIterator[JobQueue]:
    """Yield a queue with one outbound job."""
    database = Database(SqliteEngine(tmp_path / "waypost.db"))
    await database.open()
    job_queue = JobQueue(database, SystemClock(), holder="a holder")
    await job_queue.open()
    await database.write(enqueue_jobs, [JOB])
    yield job_queue
    await job_queue.close()
    await database.close()


async def test_stop_waits_for_jobs_whose_batch_is_still_being_prepared(queue: JobQueue) -> None:
    """Preparing sets the in-flight mark: if it were cut off after that, a message would be uncertain."""
    preparing, ended = asyncio.Event(), asyncio.Event()

    async def prepare(jobs: Sequence[Job]) -> PreparedJobs:
        preparing.set()
        await asyncio.sleep(0.05)
        return [(job, work_of(job)) for job in jobs]

    def work_of(job: Job) -> Callable[[], Awaitable[None]]:
        async def work() -> None:
            await asyncio.sleep(0.05)
            ended.set()
            queue.abandon(job)

        return work

    worker = StageWorker(queue, QueueName.OUTBOUND, prepare)
    running = asyncio.create_task(worker.run())
    await preparing.wait()

    await worker.stop(timeout_s=5)

    assert ended.is_set()
    assert worker.active_jobs == 0
    await running


async def test_stop_starts_no_job_that_is_claimed_meanwhile(queue: JobQueue) -> None:
    started: list[Job] = []

    async def prepare(jobs: Sequence[Job]) -> PreparedJobs:
        started.extend(jobs)
        return []

    worker = StageWorker(queue, QueueName.OUTBOUND, prepare)
    running = asyncio.create_task(worker.run())
    await asyncio.sleep(0)  # it is reading the queue on another thread

    await worker.stop(timeout_s=5)
    await running

    assert started == []
    assert [job.subject.ref for job in await queue.claim(QueueName.OUTBOUND, at_most=1)] == [JOB.subject.ref]
