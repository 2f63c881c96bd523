"""A process works the jobs that it enqueued without reading them, and reads them where order requires it."""

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection

from benchmarks.statements import Statements
from tests.queue.conftest import OUTBOUND, QueueHarness, close_harness, open_harness
from tests.support.manual_clock import ManualClock
from tests.support.store_locations import SqliteLocation, StoreLocation
from waypost.store.contract import StoreEngine, StoreUnavailable
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.queue.depths import reopen_dead_letter
from waypost.store.queue.jobs import NewJob, enqueue_jobs, read_subject


class CommitErrorEngine(SqliteEngine):
    """Commit, and then report that the disk failed, as often as `failures` says."""

    failures = 0

    @contextmanager
    def write(self, nth: int = 0) -> Generator[Connection]:
        with super().write(nth) as connection:
            yield connection
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("the disk failed while the commit was flushed")


class CommitErrorPlace(SqliteLocation):
    def engine(self, *, sole: bool = True) -> StoreEngine:
        return CommitErrorEngine(self.folder / "waypost.db", exclusive=sole)


@pytest.fixture
def engine() -> str:
    """Use the engine on which one process has the store to itself."""
    return "sqlite"


@pytest.fixture
async def failing_harness(tmp_path: Path, clock: ManualClock) -> AsyncIterator[QueueHarness]:
    harness = await open_harness(CommitErrorPlace(tmp_path), clock, "only")
    yield harness
    await close_harness(harness)


@pytest.fixture
def statements(store_location: StoreLocation) -> Iterator[Statements]:
    statements = Statements(store_location.name)
    yield statements
    statements.end()


def enqueue_batch(connection: Connection, jobs: Sequence[NewJob]) -> list[None]:
    enqueue_jobs(connection, jobs)
    return [None] * len(jobs)


def reads_of_jobs(statements: Statements) -> list[str]:
    return [statement.text for statement in statements.all() if statement.text.startswith("SELECT queue_jobs.position")]


async def test_jobs_enqueued_after_a_queue_was_read_to_its_end_are_worked_without_reading_them(
    harness: QueueHarness, statements: Statements
) -> None:
    assert await harness.work_all() == []

    await harness.enqueue("a", "b", "a")
    await harness.enqueue("a", group="other")
    first = await harness.work_all()
    await harness.enqueue("b")
    second = await harness.work_all()

    assert sorted(first) == ["a.0", "a.0", "a.2", "b.1"]
    assert second == ["b.0"]
    assert not reads_of_jobs(statements)


async def test_jobs_of_an_earlier_process_are_worked_first(store_location: StoreLocation, clock: ManualClock) -> None:
    before = await open_harness(store_location, clock, "before")
    await before.enqueue(*["a"] * 3)
    await close_harness(before)

    after = await open_harness(store_location, clock, "after")
    await after.enqueue("a")
    worked = await after.work_all()
    await close_harness(after)

    assert worked == ["a.0", "a.1", "a.2", "a.0"]


async def test_order_is_kept_when_memory_fills_up_and_has_room_again(
    harness: QueueHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waypost.queue.concurrency_groups.MAX_JOBS_PER_READ", 4)
    await harness.work_all()
    numbers = iter(range(1000))

    async def enqueue(count: int) -> None:
        new = [NewJob(OUTBOUND, "g", "a", read_subject(OUTBOUND, str(next(numbers))), 0) for _ in range(count)]
        await harness.database.write(enqueue_jobs, new)

    worked: list[str] = []
    for count in (2, 9, 1, 5, 1, 1, 30, 1):
        await enqueue(count)
        for _ in range(count // 2):
            for job in await harness.claim():
                worked.append(job.subject.ref)
                await harness.complete(job)
    worked += await harness.work_all()

    assert worked == [str(number) for number in range(50)]


async def add_dead_letter(harness: QueueHarness) -> int:
    """Enqueue a job on which our own code fails until it is a dead letter; return its position."""
    await harness.enqueue("a")
    position = 0
    for _ in range(5):
        [job] = await harness.claim()
        position = job.position
        await harness.queue.retry_after_defect(job, ValueError("ours"))
        harness.clock.advance(ms=130_000)
    assert await harness.work_all() == []
    return position


async def test_reopened_dead_letter_is_worked_with_the_jobs_that_are_handed_on_in_memory(harness: QueueHarness) -> None:
    position = await add_dead_letter(harness)

    await harness.enqueue("a", "b")
    assert await harness.database.write(reopen_dead_letter, position, 0)
    await harness.enqueue("b", "c")

    assert sorted(await harness.work_all()) == ["a.0", "a.0", "b.0", "b.1", "c.1"]


async def test_reopened_dead_letter_is_worked_before_a_job_enqueued_in_the_same_transaction(
    harness: QueueHarness,
) -> None:
    position = await add_dead_letter(harness)

    await asyncio.gather(  # in one transaction
        harness.database.write(reopen_dead_letter, position, 0),
        harness.database.join(enqueue_batch, NewJob(OUTBOUND, "g", "a", read_subject(OUTBOUND, "later"), 0)),
    )

    assert await harness.work_all() == ["a.0", "later"]


async def test_jobs_of_a_commit_that_was_reported_as_failed_are_worked_in_order(failing_harness: QueueHarness) -> None:
    await failing_harness.work_all()
    engine = failing_harness.database._engine  # pyright: ignore[reportPrivateUsage]
    assert isinstance(engine, CommitErrorEngine)

    engine.failures = 1
    with pytest.raises(StoreUnavailable):
        await failing_harness.enqueue("a", "a")
    await failing_harness.enqueue("a")

    assert await failing_harness.work_all() == ["a.0", "a.1", "a.0"]


async def test_jobs_of_a_transaction_that_failed_are_not_handed_on(harness: QueueHarness) -> None:
    def enqueue_and_fail(connection: Connection, jobs: Sequence[NewJob]) -> None:
        enqueue_jobs(connection, jobs)
        raise ValueError("not this time")

    await harness.work_all()
    with pytest.raises(ValueError, match="not this time"):
        await harness.database.write(enqueue_and_fail, [NewJob(OUTBOUND, "g", "a", read_subject(OUTBOUND, "never"), 0)])
    await harness.enqueue("a")

    assert await harness.work_all() == ["a.0"]
