"""The worker of every stage: a defect belongs to its job, and a stop waits for the jobs in work."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from tests.queue.conftest import OUTBOUND, QueueHarness
from tests.support.polling import poll_until
from waypost.queue.job import Job
from waypost.queue.worker import PreparedJobs, StageWorker
from waypost.store.queue.job_subjects import JobState
from waypost.store.queue.jobs import count_jobs_by_state


class Work:
    """Complete jobs and record them; some fail, and all can be held."""

    def __init__(self, harness: QueueHarness) -> None:
        self.harness = harness
        self.done: list[str] = []
        self.most_at_once = 0
        self.may_go = asyncio.Event()
        self.may_go.set()
        self.fails: Callable[[str], bool] = lambda _: False
        self._now = 0

    async def prepare(self, jobs: Sequence[Job]) -> PreparedJobs:
        def make_work(job: Job) -> Callable[[], Awaitable[None]]:
            return lambda: self._work(job)

        return [(job, make_work(job)) for job in jobs]

    async def wait_for_count(self, count: int) -> None:
        await wait_until(lambda: len(self.done) >= count)

    async def _work(self, job: Job) -> None:
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            await self.may_go.wait()
            if self.fails(job.subject.ref):
                raise ValueError(job.subject.ref)
            await self.harness.complete(job)
            self.done.append(job.subject.ref)
        finally:
            self._now -= 1


@pytest.fixture
async def work(harness: QueueHarness) -> Work:
    return Work(harness)


async def test_stage_works_jobs_that_are_there_and_jobs_that_are_enqueued(harness: QueueHarness, work: Work) -> None:
    await harness.enqueue("a", "b")
    stage = StageWorker(harness.queue, OUTBOUND, work.prepare)
    running = asyncio.create_task(stage.run())
    await work.wait_for_count(2)

    await harness.enqueue("c")

    await work.wait_for_count(3)
    await stage.stop(timeout_s=1)
    await running
    assert sorted(work.done) == ["a.0", "b.1", "c.0"]


async def test_defect_belongs_to_its_job_and_the_stage_works_the_others(harness: QueueHarness, work: Work) -> None:
    work.fails = lambda ref: ref == "a.0"
    await harness.enqueue("a", "b", "c")
    stage = StageWorker(harness.queue, OUTBOUND, work.prepare)

    running = asyncio.create_task(stage.run())

    await work.wait_for_count(2)
    await stage.stop(timeout_s=1)
    await running
    assert sorted(work.done) == ["b.1", "c.2"]
    assert await harness.database.read(count_jobs_by_state, OUTBOUND) == {JobState.OPEN: 1}


async def test_defect_while_a_batch_is_prepared_loses_no_job(harness: QueueHarness, work: Work) -> None:
    fails = [True, False]

    async def prepare(jobs: Sequence[Job]) -> PreparedJobs:
        if fails.pop(0):
            raise ValueError("not ready")
        return await work.prepare(jobs)

    await harness.enqueue("a", "b")
    stage = StageWorker(harness.queue, OUTBOUND, prepare)
    running = asyncio.create_task(stage.run())
    await wait_until(lambda: len(fails) == 1 and not stage.active_jobs)

    harness.clock.advance(ms=1_000)

    await work.wait_for_count(2)
    await stage.stop(timeout_s=1)
    await running


async def test_stop_waits_for_jobs_that_are_being_worked(harness: QueueHarness, work: Work) -> None:
    work.may_go.clear()
    await harness.enqueue("a")
    stage = StageWorker(harness.queue, OUTBOUND, work.prepare)
    running = asyncio.create_task(stage.run())
    await wait_until(lambda: stage.active_jobs)
    stopping = asyncio.create_task(stage.stop(timeout_s=5))
    await asyncio.sleep(0.01)
    assert not stopping.done()

    work.may_go.set()

    await stopping
    await running
    assert work.done == ["a.0"]


async def test_stop_cancels_jobs_that_exceed_its_timeout(harness: QueueHarness, work: Work) -> None:
    work.may_go.clear()
    await harness.enqueue("a")
    stage = StageWorker(harness.queue, OUTBOUND, work.prepare)
    running = asyncio.create_task(stage.run())
    await wait_until(lambda: work.most_at_once)

    await stage.stop(timeout_s=0.01)

    await running
    assert work.done == []
    assert await harness.database.read(count_jobs_by_state, OUTBOUND) == {JobState.OPEN: 1}


async def wait_until(condition: Callable[[], object]) -> None:
    """Return when the condition is true."""

    async def check() -> object:
        return condition()

    await poll_until(check)
