"""The loop every stage runs: a defect is its entry's, and a stop waits for what is being worked."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from tests.queue.conftest import LANE, Bench
from tests.support.waiting import patiently
from waypost.queue.job import Job
from waypost.queue.worker import PreparedJobs, StageWorker
from waypost.store.queue.jobs import JobState, count_jobs_by_state


class Work:
    """Settles entries and remembers them; some fail, and all can be held up."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.done: list[str] = []
        self.most_at_once = 0
        self.may_go = asyncio.Event()
        self.may_go.set()
        self.fails: Callable[[str], bool] = lambda _: False
        self._now = 0

    async def prepare(self, jobs: Sequence[Job]) -> PreparedJobs:
        def work_of(job: Job) -> Callable[[], Awaitable[None]]:
            return lambda: self._work(job)

        return [(job, work_of(job)) for job in jobs]

    async def until(self, count: int) -> None:
        await until(lambda: len(self.done) >= count)

    async def _work(self, job: Job) -> None:
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            await self.may_go.wait()
            if self.fails(job.subject.ref):
                raise ValueError(job.subject.ref)
            await self.bench.settle(job)
            self.done.append(job.subject.ref)
        finally:
            self._now -= 1


@pytest.fixture
async def work(bench: Bench) -> Work:
    return Work(bench)


async def test_stage_works_what_is_there_and_what_is_appended(bench: Bench, work: Work) -> None:
    await bench.append("a", "b")
    stage = StageWorker(bench.journal, LANE, work.prepare)
    running = asyncio.create_task(stage.run())
    await work.until(2)

    await bench.append("c")

    await work.until(3)
    await stage.stop(timeout_s=1)
    await running
    assert sorted(work.done) == ["a.0", "b.1", "c.0"]


async def test_defect_belongs_to_its_entry_and_the_stage_goes_on(bench: Bench, work: Work) -> None:
    work.fails = lambda ref: ref == "a.0"
    await bench.append("a", "b", "c")
    stage = StageWorker(bench.journal, LANE, work.prepare)

    running = asyncio.create_task(stage.run())

    await work.until(2)
    await stage.stop(timeout_s=1)
    await running
    assert sorted(work.done) == ["b.1", "c.2"]
    assert await bench.database.read(count_jobs_by_state, LANE) == {JobState.OPEN: 1}


async def test_defect_in_getting_a_batch_ready_loses_nothing(bench: Bench, work: Work) -> None:
    fails = [True, False]

    async def prepare(entries: Sequence[Job]) -> PreparedJobs:
        if fails.pop(0):
            raise ValueError("not ready")
        return await work.prepare(entries)

    await bench.append("a", "b")
    stage = StageWorker(bench.journal, LANE, prepare)
    running = asyncio.create_task(stage.run())
    await until(lambda: len(fails) == 1 and not stage.active_jobs)

    bench.clock.advance(ms=1_000)

    await work.until(2)
    await stage.stop(timeout_s=1)
    await running


async def test_stop_waits_for_what_is_being_worked(bench: Bench, work: Work) -> None:
    work.may_go.clear()
    await bench.append("a")
    stage = StageWorker(bench.journal, LANE, work.prepare)
    running = asyncio.create_task(stage.run())
    await until(lambda: stage.active_jobs)
    stopping = asyncio.create_task(stage.stop(timeout_s=5))
    await asyncio.sleep(0.01)
    assert not stopping.done()

    work.may_go.set()

    await stopping
    await running
    assert work.done == ["a.0"]


async def test_stop_cuts_off_what_takes_too_long(bench: Bench, work: Work) -> None:
    work.may_go.clear()
    await bench.append("a")
    stage = StageWorker(bench.journal, LANE, work.prepare)
    running = asyncio.create_task(stage.run())
    await until(lambda: work.most_at_once)

    await stage.stop(timeout_s=0.01)

    await running
    assert work.done == []
    assert await bench.database.read(count_jobs_by_state, LANE) == {JobState.OPEN: 1}


async def until(is_so: Callable[[], object]) -> None:
    """Return once the claim holds."""

    async def ask() -> object:
        return is_so()

    await patiently(ask)
