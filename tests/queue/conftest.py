"""A journal on a store of its own, and on a clock that stands still."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest
from sqlalchemy import Connection

from tests.support.stores import ENGINES, Place
from waypost.base.clock import Clock, ManualClock
from waypost.queue.job import Job
from waypost.queue.plans import QUEUE_PLANS, QueuePlan
from waypost.queue.queue import JobQueue
from waypost.store.database import Database
from waypost.store.queue.jobs import NewJob, QueueName, complete_jobs, enqueue_jobs, read_subject

LANE = QueueName.OUTBOUND
LEASE_MS = 15_000
WITHOUT_REST: Final = {queue: replace(plan, cooldown_ms=0) for queue, plan in QUEUE_PLANS.items()}
"""What has changed hands is worked at once, on a clock that stands still."""


@dataclass
class Bench:
    """One process's journal, with short words for what tests do."""

    database: Database
    journal: JobQueue
    clock: Any
    place: Place

    def pass_lease(self, *, ms: int) -> None:
        """Let time pass, for leases too: on PostgreSQL they follow the server's clock."""
        self.clock.advance(ms=ms)
        self.place.pass_lease(ms=ms)

    async def append(self, *keys: str, group: str = "g", queue_name: QueueName = LANE, due_ms: int = 0) -> None:
        """One entry for each key, in this order; its ref is the key with a number that counts up."""
        new = [
            NewJob(queue_name, group, key, read_subject(queue_name, f"{key}.{at}"), due_ms)
            for at, key in enumerate(keys)
        ]
        await self.database.write(enqueue_jobs, new)

    async def claim(self, at_most: int = 1000, queue_name: QueueName = LANE) -> list[Job]:
        """What may be worked now."""
        return await self.journal.claim(queue_name, at_most=at_most)

    async def refs(self, at_most: int = 1000, queue_name: QueueName = LANE) -> list[str]:
        """What may be worked now, by ref."""
        return [job.subject.ref for job in await self.claim(at_most, queue_name)]

    async def settle(self, job: Job) -> None:
        """End an entry."""
        await self.journal.complete(job, settle, job.position)

    async def work_all(self, queue_name: QueueName = LANE) -> list[str]:
        """Claim and settle until nothing is due; the refs in the order in which they were worked."""
        worked: list[str] = []
        while jobs := await self.claim(7, queue_name):
            for job in jobs:
                worked.append(job.subject.ref)
                await self.settle(job)
        return worked


def settle(connection: Connection, positions: Sequence[int]) -> list[None]:
    """Delete settled entries, as every stage's own write does."""
    complete_jobs(connection, positions)
    return [None] * len(positions)


async def open_bench(
    place: Place,
    clock: Clock,
    holder: str,
    *,
    sole: bool = True,
    lease_ms: int = LEASE_MS,
    plans: Mapping[QueueName, QueuePlan] = WITHOUT_REST,
    queue_names: Sequence[QueueName] = tuple(QueueName),
) -> Bench:
    """Open a process's journal."""
    database = Database(place.engine(sole=sole))
    await database.open()
    queue = JobQueue(database, clock, holder=holder, lease_ms=lease_ms, plans=plans, queue_names=queue_names)
    await queue.open()
    return Bench(database, queue, clock, place)


async def die(bench: Bench) -> None:
    """End it as a crash does: nothing is given back, and in the end its leases run out."""
    if not bench.database.is_exclusive:
        keeper = bench.journal.shards._renewal_task  # pyright: ignore[reportPrivateUsage]
        if keeper is not None:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)
    await bench.database.close()
    bench.place.pass_lease(ms=LEASE_MS)


async def close_bench(bench: Bench) -> None:
    """Close it as a stop does."""
    await bench.journal.close()
    await bench.database.close()


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Each test runs once on each."""
    return request.param


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def bench(place: Place, clock: ManualClock) -> AsyncIterator[Bench]:
    """The only process."""
    bench = await open_bench(place, clock, "only")
    yield bench
    await close_bench(bench)
