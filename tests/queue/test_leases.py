"""Several processes on one store: each shard is one process's at a time."""

from collections.abc import AsyncIterator

import pytest

from tests.queue.conftest import LEASE_MS, Bench, close_bench, open_bench
from tests.support.stores import Place
from waypost.base.clock import ManualClock


@pytest.fixture
async def one(place: Place, clock: ManualClock) -> AsyncIterator[Bench]:
    """A process; it claims first, so the shards are its own."""
    bench = await open_bench(place, clock, "one", sole=False)
    yield bench
    await bench.database.close()


@pytest.fixture
async def two(place: Place, clock: ManualClock, one: Bench) -> AsyncIterator[Bench]:
    """Another process on the same file."""
    await one.claim()
    bench = await open_bench(place, clock, "two", sole=False)
    yield bench
    await close_bench(bench)


async def test_entry_is_claimed_by_one_process_only(one: Bench, two: Bench) -> None:
    await one.append("a", "b", "c")
    await two.append("d", group="another")
    one.clock.advance(ms=5_000)  # the poll: what another process appends wakes nobody here

    claimed = [*await two.claim(), *await one.claim()]
    for _ in range(3):  # in which the second gets its part
        one.clock.advance(ms=5_000)
        claimed += [*await one.claim(), *await two.claim()]

    assert sorted(job.ordering_key for job in claimed) == ["a", "b", "c", "d"]


async def test_lease_that_is_renewed_does_not_run_out(one: Bench, two: Bench) -> None:
    await one.append("a")
    for _ in range(6):
        one.pass_lease(ms=LEASE_MS // 3)
        await one.claim(at_most=0)

    by_two = await two.claim()

    assert by_two == []


async def test_lease_that_is_not_renewed_runs_out(one: Bench, two: Bench) -> None:
    await one.append("a", "b")
    [job, _] = await one.claim()
    await one.journal.mark_in_flight([job])

    one.pass_lease(ms=LEASE_MS)

    found = {job.subject.ref: job.was_in_flight for job in await two.claim()}
    assert found == {"a.0": True, "b.1": False}


async def test_process_that_lost_its_leases_claims_nothing_more(one: Bench, two: Bench) -> None:
    await one.append("a", "a", "b")
    [job, other] = await one.claim()
    one.pass_lease(ms=LEASE_MS)
    await two.claim()

    await one.settle(job)
    await one.settle(other)

    assert await one.claim() == []


async def test_leases_are_given_back_at_the_end(one: Bench, two: Bench) -> None:
    await one.append("a")
    assert await two.claim() == []

    await one.journal.close()
    two.clock.advance(ms=LEASE_MS // 3)

    assert await two.refs() == ["a.0"]


async def test_settled_entry_is_not_worked_by_the_next_holder(one: Bench, two: Bench) -> None:
    await one.append("a", "b")
    [job, _] = await one.claim()
    await one.settle(job)

    one.pass_lease(ms=LEASE_MS)

    assert await two.refs() == ["b.1"]


async def test_entries_held_from_before_a_lease_was_lost_and_taken_again_are_not_worked(
    place: Place, one: Bench
) -> None:
    """As after a machine was suspended: its own clock does not know of the time that has passed."""
    await one.append("a", "b")
    assert await one.claim(at_most=0) == []  # they have been read, and are held
    place.pass_lease(ms=LEASE_MS)
    two = await open_bench(place, ManualClock(one.clock.now_ms() + LEASE_MS), "two", sole=False)
    worked = await two.work_all()
    await close_bench(two)

    one.clock.advance(ms=LEASE_MS // 3 + 1)  # the next renewal, which takes everything again

    assert (sorted(worked), await one.refs()) == (["a.0", "b.1"], [])
