"""A stage that works as many entries as it may waits for one to end, whatever else is due or appended."""

import asyncio
from collections.abc import Sequence

from tests.queue.conftest import LANE, Bench
from tests.support.waiting import patiently
from waypost.queue.job import Job
from waypost.queue.plans import QUEUE_PLANS
from waypost.queue.worker import JobWork, PreparedJobs, StageWorker

MOST = QUEUE_PLANS[LANE].in_flight


class Held:
    """Holds every entry until it may go."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.may_go = asyncio.Event()
        self.begun = 0
        self.ended = 0

    async def prepare(self, jobs: Sequence[Job]) -> PreparedJobs:
        return [(job, self._work_of(job)) for job in jobs]

    def _work_of(self, job: Job) -> JobWork:
        async def work() -> None:
            self.begun += 1
            await self.may_go.wait()
            await self._bench.settle(job)
            self.ended += 1

        return work

    async def how_many(self) -> tuple[int, int]:
        return self.begun, self.ended


async def test_full_stage_leaves_the_loop_to_others(bench: Bench) -> None:
    held = Held(bench)
    for group in ("one", "other"):  # two, because neither may take all the room there is
        await bench.append(*(f"{group} {at}" for at in range(MOST)), group=group)
    stage = StageWorker(bench.journal, LANE, held.prepare)
    running = asyncio.create_task(stage.run())
    await patiently(held.how_many, lambda found: found == (MOST, 0))

    await bench.append("late", group="one")  # wakes the queue, in which there is no room

    held.may_go.set()
    await patiently(held.how_many, lambda found: found == (2 * MOST + 1, 2 * MOST + 1))
    await stage.stop(timeout_s=1)
    await running
