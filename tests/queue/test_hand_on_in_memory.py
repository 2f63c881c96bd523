"""What a process appends it works without reading it again, and finds by reading where that may not be."""

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection

from benchmarks.statements import Statements
from tests.queue.conftest import LANE, Bench, close_bench, open_bench
from tests.support.stores import Place, SqlitePlace
from waypost.base.clock import ManualClock
from waypost.store.contract import StoreEngine, StoreUnavailable
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.queue.jobs import NewJob, enqueue_jobs, read_subject, reopen_dead_letter


class Unsaid(SqliteEngine):
    """Commits, and then says that the disk failed, as often as it is told to."""

    failures = 0

    @contextmanager
    def write(self, nth: int = 0) -> Generator[Connection]:
        with super().write(nth) as connection:
            yield connection
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("the disk failed while the commit was flushed")


class UnsaidPlace(SqlitePlace):
    def engine(self, *, sole: bool = True) -> StoreEngine:
        return Unsaid(self.folder / "waypost.db", exclusive=sole)


@pytest.fixture
def engine() -> str:
    """Only where one process has the store to itself."""
    return "sqlite"


@pytest.fixture
async def unsure(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Bench]:
    bench = await open_bench(UnsaidPlace(tmp_path), clock, "only")
    yield bench
    await close_bench(bench)


@pytest.fixture
def statements(place: Place) -> Iterator[Statements]:
    statements = Statements(place.name)
    yield statements
    statements.end()


def append_one(connection: Connection, jobs: Sequence[NewJob]) -> list[None]:
    enqueue_jobs(connection, jobs)
    return [None] * len(jobs)


def reads_of_entries(statements: Statements) -> list[str]:
    return [one.text for one in statements.all() if one.text.startswith("SELECT journal.position")]


async def test_what_is_appended_to_a_lane_that_was_looked_through_is_worked_unread(
    bench: Bench, statements: Statements
) -> None:
    assert await bench.work_all() == []

    await bench.append("a", "b", "a")
    await bench.append("a", group="other")
    first = await bench.work_all()
    await bench.append("b")
    second = await bench.work_all()

    assert sorted(first) == ["a.0", "a.0", "a.2", "b.1"]
    assert second == ["b.0"]
    assert not reads_of_entries(statements)


async def test_what_an_earlier_process_left_comes_first(place: Place, clock: ManualClock) -> None:
    before = await open_bench(place, clock, "before")
    await before.append(*["a"] * 3)
    await close_bench(before)

    after = await open_bench(place, clock, "after")
    await after.append("a")
    worked = await after.work_all()
    await close_bench(after)

    assert worked == ["a.0", "a.1", "a.2", "a.0"]


async def test_order_is_kept_when_memory_is_full_and_has_room_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waypost.queue.concurrency_groups.MAX_JOBS_PER_READ", 4)
    await bench.work_all()
    at = iter(range(1000))

    async def append(count: int) -> None:
        new = [NewJob(LANE, "g", "a", read_subject(LANE, str(next(at))), 0) for _ in range(count)]
        await bench.database.write(enqueue_jobs, new)

    worked: list[str] = []
    for count in (2, 9, 1, 5, 1, 1, 30, 1):
        await append(count)
        for _ in range(count // 2):
            for job in await bench.claim():
                worked.append(job.subject.ref)
                await bench.settle(job)
    worked += await bench.work_all()

    assert worked == [str(number) for number in range(50)]


async def one_set_aside(bench: Bench) -> int:
    """Append an entry on which our own code fails until it is set aside; give its position."""
    await bench.append("a")
    position = 0
    for _ in range(5):
        [job] = await bench.claim()
        position = job.position
        await bench.journal.retry_after_defect(job, ValueError("ours"))
        bench.clock.advance(ms=130_000)
    assert await bench.work_all() == []
    return position


async def test_entry_that_is_put_back_is_found_among_those_that_are_handed_on(bench: Bench) -> None:
    position = await one_set_aside(bench)

    await bench.append("a", "b")
    assert await bench.database.write(reopen_dead_letter, position, 0)
    await bench.append("b", "c")

    assert sorted(await bench.work_all()) == ["a.0", "a.0", "b.0", "b.1", "c.1"]


async def test_entry_that_is_put_back_comes_before_what_is_appended_with_it(bench: Bench) -> None:
    position = await one_set_aside(bench)

    await asyncio.gather(  # in one transaction
        bench.database.write(reopen_dead_letter, position, 0),
        bench.database.join(append_one, NewJob(LANE, "g", "a", read_subject(LANE, "later"), 0)),
    )

    assert await bench.work_all() == ["a.0", "later"]


async def test_what_was_committed_and_not_said_is_worked_in_its_turn(unsure: Bench) -> None:
    await unsure.work_all()
    engine = unsure.database._engine  # pyright: ignore[reportPrivateUsage]
    assert isinstance(engine, Unsaid)

    engine.failures = 1
    with pytest.raises(StoreUnavailable):
        await unsure.append("a", "a")
    await unsure.append("a")

    assert await unsure.work_all() == ["a.0", "a.1", "a.0"]


async def test_nothing_of_a_transaction_that_failed_is_handed_on(bench: Bench) -> None:
    def append_and_fail(connection: Connection, entries: Sequence[NewJob]) -> None:
        enqueue_jobs(connection, entries)
        raise ValueError("not this time")

    await bench.work_all()
    with pytest.raises(ValueError, match="not this time"):
        await bench.database.write(append_and_fail, [NewJob(LANE, "g", "a", read_subject(LANE, "never"), 0)])
    await bench.append("a")

    assert await bench.work_all() == ["a.0"]
