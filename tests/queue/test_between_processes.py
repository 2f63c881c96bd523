"""What processes on one PostgreSQL tell each other, and what happens when they cannot."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from typing import Any

import psycopg
import pytest

from tests.queue.conftest import LANE, Bench, close_bench, die, open_bench
from tests.support.stores import PostgresPlace
from tests.support.waiting import HANGS_AFTER_S
from waypost.base.batching import GroupCommitClosed
from waypost.base.clock import ManualClock, SystemClock
from waypost.queue import queue, reader
from waypost.queue.plans import shard_of
from waypost.store.queue.leases import SHARD_COUNT

Open = Callable[..., Coroutine[None, None, Bench]]
POLL_S = 5
"""What would be found by looking now and then; what is told is found sooner."""


@pytest.fixture
def engine() -> str:
    """The one that several processes share."""
    return "postgresql"


@pytest.fixture
def without_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be found by looking now and then: what is found is found by a notification."""
    for module in (reader, queue):
        monkeypatch.setattr(module, "POLL_MS", 60 * 60 * 1000)


@pytest.fixture
async def opened(place: PostgresPlace) -> AsyncIterator[Open]:
    """Opens processes on one store, which keep their leases by themselves; closes them at the end."""
    benches: list[Bench] = []

    async def opens(holder: str, *, lease_ms: int = 60_000) -> Bench:
        bench = await open_bench(place, SystemClock(), holder, lease_ms=lease_ms)
        bench.journal.start()
        benches.append(bench)
        return bench

    yield opens
    for bench in benches:
        with contextlib.suppress(GroupCommitClosed):  # it has died
            await close_bench(bench)


@contextlib.contextmanager
def somebody(place: PostgresPlace) -> Generator[psycopg.Connection[Any]]:
    """A connection of a process that does what the test says, and no more."""
    with psycopg.connect(place.url) as connection:
        yield connection


def held(bench: Bench) -> set[int]:
    """The shards that a process may claim from."""
    return bench.journal.shards.held[LANE]


async def until(is_so: Callable[[], bool]) -> None:
    """Return when it is so."""
    async with asyncio.timeout(HANGS_AFTER_S):
        while not is_so():  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.005)


async def share(one: Bench, two: Bench) -> None:
    """Return when each has its half."""
    await until(lambda: len(held(one)) == len(held(two)) == SHARD_COUNT // 2)


def group_in(shards: set[int]) -> str:
    """A group of one of these shards."""
    return next(f"g{n}" for n in range(10_000) if shard_of(f"g{n}") in shards)


async def worked_by(bench: Bench) -> list[str]:
    """Wait once for something to do, and say what it is."""
    if found := await bench.refs():
        return found
    await bench.journal.wait(LANE)
    return await bench.refs()


async def insert(connection: psycopg.Connection[Any], ref: str) -> None:
    """An entry of another process's, its transaction still open, of which nobody is told."""
    await asyncio.to_thread(
        connection.execute,
        "INSERT INTO queue_jobs (queue, concurrency_group, ordering_key, ref, due_ms) VALUES (%s, 'g', %s, %s, 0)",
        (int(LANE), ref, ref),
    )


@pytest.mark.usefixtures("without_polls")
async def test_entry_that_another_process_appends_is_heard_of_at_once(opened: Open) -> None:
    one, two = await opened("one"), await opened("two")
    await share(one, two)
    assert await two.claim() == []

    await one.append("a", group=group_in(held(two)))

    assert await worked_by(two) == ["a.0"]


async def test_leases_that_are_given_back_are_taken_up_at_once(opened: Open) -> None:
    hour_ms = 60 * 60 * 1000  # much longer than is waited for
    one, two = await opened("one", lease_ms=hour_ms), await opened("two", lease_ms=hour_ms)
    await share(one, two)

    await one.journal.close()

    await until(lambda: len(held(two)) == SHARD_COUNT)


async def test_work_of_a_killed_process_is_taken_over_when_its_leases_have_run_out(opened: Open) -> None:
    one, two = await opened("one", lease_ms=1_000), await opened("two", lease_ms=1_000)
    await share(one, two)
    group = group_in(held(one))
    await one.append("a", "b", group=group)
    [job, _] = await until_claimed(one, 2)
    await one.journal.mark_in_flight([job])

    await die(one)

    await until(lambda: len(held(two)) == SHARD_COUNT)
    found = {job.subject.ref: job.was_in_flight for job in await until_claimed(two, 2)}
    assert found == {"a.0": True, "b.1": False}


async def until_claimed(bench: Bench, count: int) -> list[Any]:
    """Claim until there are so many."""
    found = await bench.claim()
    while len(found) < count:
        await bench.journal.wait(LANE)
        found += await bench.claim()
    return found


async def test_process_that_is_cut_off_works_nothing_and_goes_on_when_the_store_is_back(
    opened: Open, place: PostgresPlace
) -> None:
    one = await opened("one", lease_ms=1_000)
    await until(lambda: len(held(one)) == SHARD_COUNT)
    await one.append("a", "b")
    [job, _] = await until_claimed(one, 2)

    async with place.away(one.database):
        await until(lambda: not one.journal.shards.are_leases_valid)
        ours_meanwhile = one.journal.is_lease_held(job)

    assert not ours_meanwhile
    await until(lambda: len(held(one)) >= SHARD_COUNT - 1)  # but what is being worked still


@pytest.mark.usefixtures("without_polls")
async def test_what_was_told_during_a_gap_is_looked_for_after_it(opened: Open, place: PostgresPlace) -> None:
    one = await opened("one")
    await until(lambda: len(held(one)) == SHARD_COUNT)
    assert await one.claim() == []
    with somebody(place) as other:
        other.autocommit = True
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE query LIKE 'LISTEN%' AND datname = current_database()"
        )

        await insert(other, "told into the void")

    assert await worked_by(one) == ["told into the void"]


async def test_entry_that_is_committed_after_a_later_one_is_not_missed(place: PostgresPlace) -> None:
    clock = ManualClock()
    one = await open_bench(place, clock, "one")
    with somebody(place) as slow:
        await insert(slow, "earlier")
        await one.append("later")
        first = await one.claim()
        for job in first:
            await one.settle(job)
        clock.advance(ms=POLL_S * 1000)
        between = await one.refs()
        await asyncio.to_thread(slow.commit)
    await one.append("last")  # whatever wakes the group: nobody told of the slow one

    found = await one.claim()

    assert [job.subject.ref for job in first] == ["later.0"]
    assert between == []
    assert [job.subject.ref for job in found] == ["earlier", "last.0"]
    assert found[0].position < first[0].position
    await close_bench(one)


async def test_entry_is_found_however_late_in_its_bounds_its_transaction_ends(place: PostgresPlace) -> None:
    """The mark below which everything is taken as read moves on, but never past what may still come."""
    clock = ManualClock()
    one = await open_bench(place, clock, "one")
    seen: list[str] = []
    for number in range(4):
        with somebody(place) as slow:
            await insert(slow, f"slow {number}")
            for step in range(3):
                await one.append(f"quick {number} {step}")
                seen += await one.work_all()
                clock.advance(ms=4_900)  # three of them: nearly what a transaction may last
            await asyncio.to_thread(slow.commit)
        await one.append(f"next {number}")
        seen += await one.work_all()

    wanted = [f"slow {number}" for number in range(4)]
    assert [ref for ref in seen if ref.startswith("slow")] == wanted
    assert len(seen) == len(set(seen)) == 4 * 5
    await close_bench(one)


async def test_notification_that_was_lost_costs_a_poll(place: PostgresPlace) -> None:
    clock = ManualClock()
    one = await open_bench(place, clock, "one")
    assert await one.claim() == []
    with somebody(place) as other:
        await insert(other, "nobody said a word")
        other.commit()
    at_once = await one.refs()

    clock.advance(ms=POLL_S * 1000)

    assert at_once == []
    assert await one.refs() == ["nobody said a word"]
    await close_bench(one)


async def test_process_that_was_stopped_within_a_transaction_holds_up_no_other(
    opened: Open, place: PostgresPlace
) -> None:
    one, two = await opened("one", lease_ms=3_000), await opened("two", lease_ms=3_000)
    await share(one, two)
    half = set(held(two))
    await die(one)
    with somebody(place) as stopped:  # as `one` would be, stopped while it renewed or marked

        def seen_ms() -> int:
            [row] = stopped.execute("SELECT seen_ms FROM processes WHERE holder = 'two'")
            return row[0]

        stopped.execute("SELECT * FROM leases WHERE holder = 'one' FOR UPDATE")
        stopped.execute("SELECT * FROM processes WHERE holder = 'one' FOR UPDATE")
        over_ms = seen_ms() + 3_000  # then the lease of `one` is

        await until(lambda: seen_ms() > over_ms)
        kept = two.journal.shards.are_leases_valid
        meanwhile = set(held(two))

    assert kept
    assert meanwhile == half
    await until(lambda: len(held(two)) == SHARD_COUNT)
