"""A journal on a store of its own, and on a clock that stands still."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import Connection

from waypost.base.clock import ManualClock
from waypost.journal.entry import Entry
from waypost.journal.in_store import Journal
from waypost.store.database import Database
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.journal import Lane, NewEntry, append_entries, settle_entries

LANE = Lane.SUBMISSIONS


@dataclass
class Bench:
    """One process's journal, with short words for what tests do."""

    database: Database
    journal: Journal
    clock: ManualClock

    async def append(
        self, *keys: str, group: str = "g", lane: Lane = LANE, due_ms: int = 0
    ) -> None:
        """One entry for each key, in this order; its ref is the key with a number that counts up."""
        new = [NewEntry(lane, group, key, f"{key}.{at}", due_ms) for at, key in enumerate(keys)]
        await self.database.write(append_entries, new)

    async def claim(self, at_most: int = 1000, lane: Lane = LANE) -> list[Entry]:
        """What may be worked now."""
        return await self.journal.claim(lane, at_most=at_most)

    async def refs(self, at_most: int = 1000, lane: Lane = LANE) -> list[str]:
        """What may be worked now, by ref."""
        return [entry.ref for entry in await self.claim(at_most, lane)]

    async def settle(self, entry: Entry) -> None:
        """End an entry."""
        await self.journal.settle(entry, settle, entry.position)

    async def work_all(self, lane: Lane = LANE) -> list[str]:
        """Claim and settle until nothing is due; the refs in the order in which they were worked."""
        worked: list[str] = []
        while entries := await self.claim(7, lane):
            for entry in entries:
                worked.append(entry.ref)
                await self.settle(entry)
        return worked


def settle(connection: Connection, positions: Sequence[int]) -> list[None]:
    """Delete settled entries, as every stage's own write does."""
    settle_entries(connection, positions)
    return [None] * len(positions)


async def open_bench(path: Path, clock: ManualClock, holder: str, *, sole: bool = True) -> Bench:
    """Open a process's journal."""
    database = Database(SqliteEngine(path, sole=sole))
    await database.open()
    journal = Journal(database, clock, holder=holder)
    await journal.open()
    return Bench(database, journal, clock)


async def close_bench(bench: Bench) -> None:
    """Close it as a stop does."""
    await bench.journal.close()
    await bench.database.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def bench(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Bench]:
    """The only process."""
    bench = await open_bench(tmp_path / "waypost.db", clock, "only")
    yield bench
    await close_bench(bench)
