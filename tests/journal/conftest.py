"""A journal on a store of its own, and on a clock that stands still."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest
from sqlalchemy import Connection

from tests.support.stores import ENGINES, Place
from waypost.base.clock import Clock, ManualClock
from waypost.queue.job import Entry
from waypost.queue.plans import PLANS, LanePlan
from waypost.queue.queue import Journal
from waypost.store.database import Database
from waypost.store.queue.jobs import Lane, NewEntry, append_entries, settle_entries, subject_of

LANE = Lane.SUBMISSIONS
LEASE_MS = 15_000
WITHOUT_REST: Final = {lane: replace(plan, rests_ms=0) for lane, plan in PLANS.items()}
"""What has changed hands is worked at once, on a clock that stands still."""


@dataclass
class Bench:
    """One process's journal, with short words for what tests do."""

    database: Database
    journal: Journal
    clock: Any
    place: Place

    def pass_lease(self, *, ms: int) -> None:
        """Let time pass, for leases too: on PostgreSQL they follow the server's clock."""
        self.clock.advance(ms=ms)
        self.place.pass_lease(ms=ms)

    async def append(self, *keys: str, group: str = "g", lane: Lane = LANE, due_ms: int = 0) -> None:
        """One entry for each key, in this order; its ref is the key with a number that counts up."""
        new = [NewEntry(lane, group, key, subject_of(lane, f"{key}.{at}"), due_ms) for at, key in enumerate(keys)]
        await self.database.write(append_entries, new)

    async def claim(self, at_most: int = 1000, lane: Lane = LANE) -> list[Entry]:
        """What may be worked now."""
        return await self.journal.claim(lane, at_most=at_most)

    async def refs(self, at_most: int = 1000, lane: Lane = LANE) -> list[str]:
        """What may be worked now, by ref."""
        return [entry.subject.ref for entry in await self.claim(at_most, lane)]

    async def settle(self, entry: Entry) -> None:
        """End an entry."""
        await self.journal.settle(entry, settle, entry.position)

    async def work_all(self, lane: Lane = LANE) -> list[str]:
        """Claim and settle until nothing is due; the refs in the order in which they were worked."""
        worked: list[str] = []
        while entries := await self.claim(7, lane):
            for entry in entries:
                worked.append(entry.subject.ref)
                await self.settle(entry)
        return worked


def settle(connection: Connection, positions: Sequence[int]) -> list[None]:
    """Delete settled entries, as every stage's own write does."""
    settle_entries(connection, positions)
    return [None] * len(positions)


async def open_bench(
    place: Place,
    clock: Clock,
    holder: str,
    *,
    sole: bool = True,
    lease_ms: int = LEASE_MS,
    plans: Mapping[Lane, LanePlan] = WITHOUT_REST,
    lanes: Sequence[Lane] = tuple(Lane),
) -> Bench:
    """Open a process's journal."""
    database = Database(place.engine(sole=sole))
    await database.open()
    journal = Journal(database, clock, holder=holder, lease_ms=lease_ms, plans=plans, lanes=lanes)
    await journal.open()
    return Bench(database, journal, clock, place)


async def die(bench: Bench) -> None:
    """End it as a crash does: nothing is given back, and in the end its leases run out."""
    if not bench.database.sole:
        keeper = bench.journal.shards._keeper  # pyright: ignore[reportPrivateUsage]
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
