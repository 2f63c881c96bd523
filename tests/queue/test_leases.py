"""Leases of several processes on one store: one process at a time has a shard."""

from collections.abc import AsyncIterator

import pytest

from tests.queue.conftest import LEASE_MS, QueueHarness, close_harness, open_harness
from tests.support.manual_clock import ManualClock
from tests.support.store_locations import StoreLocation


@pytest.fixture
async def first_process(store_location: StoreLocation, clock: ManualClock) -> AsyncIterator[QueueHarness]:
    """Open a process; it claims first, so it has every shard."""
    harness = await open_harness(store_location, clock, "one", sole=False)
    yield harness
    await harness.database.close()


@pytest.fixture
async def second_process(
    store_location: StoreLocation, clock: ManualClock, first_process: QueueHarness
) -> AsyncIterator[QueueHarness]:
    """Open another process on the same store."""
    await first_process.claim()
    harness = await open_harness(store_location, clock, "two", sole=False)
    yield harness
    await close_harness(harness)


async def test_job_is_claimed_by_one_process_only(first_process: QueueHarness, second_process: QueueHarness) -> None:
    await first_process.enqueue("a", "b", "c")
    await second_process.enqueue("d", group="another")
    first_process.clock.advance(ms=5_000)  # the poll: a job of another process wakes no worker here

    claimed = [*await second_process.claim(), *await first_process.claim()]
    for _ in range(3):  # in which the second process gets its share
        first_process.clock.advance(ms=5_000)
        claimed += [*await first_process.claim(), *await second_process.claim()]

    assert sorted(job.ordering_key for job in claimed) == ["a", "b", "c", "d"]


async def test_lease_that_is_renewed_does_not_expire(first_process: QueueHarness, second_process: QueueHarness) -> None:
    await first_process.enqueue("a")
    for _ in range(6):
        first_process.pass_lease(ms=LEASE_MS // 3)
        await first_process.claim(at_most=0)

    claimed = await second_process.claim()

    assert claimed == []


async def test_lease_that_is_not_renewed_expires(first_process: QueueHarness, second_process: QueueHarness) -> None:
    await first_process.enqueue("a", "b")
    [job, _] = await first_process.claim()
    await first_process.queue.mark_in_flight([job])

    first_process.pass_lease(ms=LEASE_MS)

    was_in_flight = {job.subject.ref: job.was_in_flight for job in await second_process.claim()}
    assert was_in_flight == {"a.0": True, "b.1": False}


async def test_process_that_lost_its_leases_claims_nothing_more(
    first_process: QueueHarness, second_process: QueueHarness
) -> None:
    await first_process.enqueue("a", "a", "b")
    [job, other] = await first_process.claim()
    first_process.pass_lease(ms=LEASE_MS)
    await second_process.claim()

    await first_process.complete(job)
    await first_process.complete(other)

    assert await first_process.claim() == []


async def test_leases_are_released_when_a_process_closes(
    first_process: QueueHarness, second_process: QueueHarness
) -> None:
    await first_process.enqueue("a")
    assert await second_process.claim() == []

    await first_process.queue.close()
    second_process.clock.advance(ms=LEASE_MS // 3)

    assert await second_process.claim_refs() == ["a.0"]


async def test_completed_job_is_not_worked_by_the_next_holder(
    first_process: QueueHarness, second_process: QueueHarness
) -> None:
    await first_process.enqueue("a", "b")
    [job, _] = await first_process.claim()
    await first_process.complete(job)

    first_process.pass_lease(ms=LEASE_MS)

    assert await second_process.claim_refs() == ["b.1"]


async def test_jobs_in_memory_from_before_a_lease_was_lost_and_acquired_again_are_not_worked(
    store_location: StoreLocation, first_process: QueueHarness
) -> None:
    """The process resumes like a suspended machine: its own clock has not advanced."""
    await first_process.enqueue("a", "b")
    assert await first_process.claim(at_most=0) == []  # they have been read, and are in memory
    store_location.pass_lease(ms=LEASE_MS)
    second_process = await open_harness(
        store_location, ManualClock(first_process.clock.now_ms() + LEASE_MS), "two", sole=False
    )
    worked = await second_process.work_all()
    await close_harness(second_process)

    first_process.clock.advance(ms=LEASE_MS // 3 + 1)  # the next renewal, which leases everything again

    assert (sorted(worked), await first_process.claim_refs()) == (["a.0", "b.1"], [])
