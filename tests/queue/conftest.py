"""A queue on a store of its own, and on a clock that only the test advances."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest
from sqlalchemy import Connection

from tests.support.manual_clock import ManualClock
from tests.support.store_locations import ENGINES, StoreLocation
from waypost.base.clock import Clock
from waypost.queue.job import Job
from waypost.queue.plans import QUEUE_PLANS, QueuePlan
from waypost.queue.queue import JobQueue
from waypost.store.database import Database
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.jobs import NewJob, complete_jobs, enqueue_jobs, read_subject

OUTBOUND = QueueName.OUTBOUND
LEASE_MS = 15_000
WITHOUT_COOLDOWN: Final = {queue: replace(plan, cooldown_ms=0) for queue, plan in QUEUE_PLANS.items()}
"""Jobs of a shard that another process had can be claimed at once: the clock does not run by itself."""


@dataclass
class QueueHarness:
    """The queue of one process, with short methods for tests."""

    database: Database
    queue: JobQueue
    clock: Any
    store_location: StoreLocation

    def pass_lease(self, *, ms: int) -> None:
        """Let time pass, for leases too: on PostgreSQL they follow the server's clock."""
        self.clock.advance(ms=ms)
        self.store_location.pass_lease(ms=ms)

    async def enqueue(self, *keys: str, group: str = "g", queue_name: QueueName = OUTBOUND, due_ms: int = 0) -> None:
        """Enqueue one job for each key, in this order; its ref is the key and its index."""
        new = [
            NewJob(queue_name, group, key, read_subject(queue_name, f"{key}.{at}"), due_ms)
            for at, key in enumerate(keys)
        ]
        await self.database.write(enqueue_jobs, new)

    async def claim(self, at_most: int = 1000, queue_name: QueueName = OUTBOUND) -> list[Job]:
        """Claim the jobs that may be worked now."""
        return await self.queue.claim(queue_name, at_most=at_most)

    async def claim_refs(self, at_most: int = 1000, queue_name: QueueName = OUTBOUND) -> list[str]:
        """Claim the jobs that may be worked now, and return their refs."""
        return [job.subject.ref for job in await self.claim(at_most, queue_name)]

    async def complete(self, job: Job) -> None:
        """Complete a job."""
        await self.queue.complete(job, delete_completed, job.position)

    async def work_all(self, queue_name: QueueName = OUTBOUND) -> list[str]:
        """Claim and complete until nothing is due; return the refs in the order in which they were worked."""
        worked: list[str] = []
        while jobs := await self.claim(7, queue_name):
            for job in jobs:
                worked.append(job.subject.ref)
                await self.complete(job)
        return worked


def delete_completed(connection: Connection, positions: Sequence[int]) -> list[None]:
    """Delete completed jobs, as every stage's own write does."""
    complete_jobs(connection, positions)
    return [None] * len(positions)


async def open_harness(
    store_location: StoreLocation,
    clock: Clock,
    holder: str,
    *,
    sole: bool = True,
    lease_ms: int = LEASE_MS,
    plans: Mapping[QueueName, QueuePlan] = WITHOUT_COOLDOWN,
    queue_names: Sequence[QueueName] = tuple(QueueName),
) -> QueueHarness:
    """Open the queue of one process."""
    database = Database(store_location.engine(sole=sole))
    await database.open()
    queue = JobQueue(database, clock, holder=holder, lease_ms=lease_ms, plans=plans, queue_names=queue_names)
    await queue.open()
    return QueueHarness(database, queue, clock, store_location)


async def crash(harness: QueueHarness) -> None:
    """End the process as a crash does: no lease is released, and at the end its leases have expired."""
    if not harness.database.is_exclusive:
        renewal = harness.queue.shards._renewal_task  # pyright: ignore[reportPrivateUsage]
        if renewal is not None:
            renewal.cancel()
            await asyncio.gather(renewal, return_exceptions=True)
    await harness.database.close()
    harness.store_location.pass_lease(ms=LEASE_MS)


async def close_harness(harness: QueueHarness) -> None:
    """Close the queue as a stop does."""
    await harness.queue.close()
    await harness.database.close()


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Run each test once on each engine."""
    return request.param


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def harness(store_location: StoreLocation, clock: ManualClock) -> AsyncIterator[QueueHarness]:
    """Open the queue of the only process."""
    harness = await open_harness(store_location, clock, "only")
    yield harness
    await close_harness(harness)
