"""A stage at capacity waits for a job to end, whatever else is due or enqueued."""

import asyncio
from collections.abc import Sequence

from tests.queue.conftest import OUTBOUND, QueueHarness
from tests.support.polling import poll_until
from waypost.queue.job import Job
from waypost.queue.plans import QUEUE_PLANS
from waypost.queue.worker import JobWork, PreparedJobs, StageWorker

CAPACITY = QUEUE_PLANS[OUTBOUND].in_flight


class HeldWork:
    """Hold every job until the test lets it end."""

    def __init__(self, harness: QueueHarness) -> None:
        self._harness = harness
        self.may_go = asyncio.Event()
        self.started = 0
        self.ended = 0

    async def prepare(self, jobs: Sequence[Job]) -> PreparedJobs:
        return [(job, self._make_work(job)) for job in jobs]

    def _make_work(self, job: Job) -> JobWork:
        async def work() -> None:
            self.started += 1
            await self.may_go.wait()
            await self._harness.complete(job)
            self.ended += 1

        return work

    async def count(self) -> tuple[int, int]:
        return self.started, self.ended


async def test_stage_at_capacity_does_not_block_the_event_loop(harness: QueueHarness) -> None:
    work = HeldWork(harness)
    for group in ("one", "other"):  # two, because neither may use the whole capacity
        await harness.enqueue(*(f"{group} {at}" for at in range(CAPACITY)), group=group)
    stage = StageWorker(harness.queue, OUTBOUND, work.prepare)
    running = asyncio.create_task(stage.run())
    await poll_until(work.count, lambda counts: counts == (CAPACITY, 0))

    await harness.enqueue("late", group="one")  # wakes the queue, which is at capacity

    work.may_go.set()
    await poll_until(work.count, lambda counts: counts == (2 * CAPACITY + 1, 2 * CAPACITY + 1))
    await stage.stop(timeout_s=1)
    await running
