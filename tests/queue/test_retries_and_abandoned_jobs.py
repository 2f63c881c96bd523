"""Jobs that are retried later, met a defect, or were left by a process that ended."""

import asyncio

import pytest

from tests.queue.conftest import OUTBOUND, QueueHarness, close_harness, crash, open_harness
from tests.support.builders import AT_MS
from tests.support.manual_clock import ManualClock
from tests.support.store_locations import StoreLocation
from waypost.store.contract import StoreUnavailable
from waypost.store.database import Database
from waypost.store.queue.depths import read_dead_letters, remove_dead_letter, reopen_dead_letter
from waypost.store.queue.job_subjects import JobState, QueueName
from waypost.store.queue.jobs import count_jobs_by_state

ERROR = ValueError("a defect")


async def test_retried_job_is_claimed_when_it_is_due_with_its_attempts_counted(harness: QueueHarness) -> None:
    await harness.enqueue("a")
    [job] = await harness.claim()
    await harness.queue.retry_later(job, due_ms=harness.clock.now_ms() + 500, note="not reached")
    early = await harness.claim()

    harness.clock.advance(ms=500)

    [again] = await harness.claim()
    assert early == []
    assert (again.subject.ref, again.attempt, again.was_in_flight) == ("a.0", 1, False)


async def test_job_that_waits_for_a_retry_blocks_later_jobs_of_its_key(harness: QueueHarness) -> None:
    await harness.enqueue("a", "a", "b")
    [job, other] = await harness.claim()
    await harness.complete(other)

    await harness.queue.retry_later(job, due_ms=harness.clock.now_ms() + 500, note="not reached")

    assert await harness.claim() == []


async def test_detached_job_does_not_block_later_jobs_of_its_key(harness: QueueHarness) -> None:
    await harness.enqueue("a", "a")
    [job] = await harness.claim()

    await harness.queue.retry_later(job, due_ms=harness.clock.now_ms() + 500, note="rejected", detach=True)

    [follower] = await harness.claim()
    assert follower.subject.ref == "a.1"
    harness.clock.advance(ms=500)
    [late] = await harness.claim()
    assert late.subject.ref == "a.0"
    assert late.attempt == 1


@pytest.mark.parametrize("with_detached", [False, True])
async def test_detached_job_keeps_its_schedule_when_the_others_are_made_due(
    harness: QueueHarness, with_detached: bool
) -> None:
    """It failed while others succeeded: unless a person asks, an outage that ends is no reason to try it earlier."""
    await harness.enqueue("a", "b")
    alone, other = await harness.claim()
    due_ms = harness.clock.now_ms() + 500
    await harness.queue.retry_later(alone, due_ms=due_ms, note="rejected", detach=True)
    await harness.queue.retry_later(other, due_ms=due_ms, note="away")

    harness.queue.make_retries_due(OUTBOUND, "g", with_detached=with_detached)

    assert await harness.claim_refs() == ["a.0", "b.1"][not with_detached :]


@pytest.mark.parametrize("is_back", [False, True])
async def test_retry_that_is_being_written_is_due_at_once_if_the_others_are_made_due(
    harness: QueueHarness, is_back: bool
) -> None:
    await harness.enqueue("a")
    [job] = await harness.claim()
    made_due, due_ms = harness.queue.times_made_due(job), harness.clock.now_ms() + 500

    written = asyncio.create_task(harness.queue.retry_later(job, due_ms=due_ms, note="away", made_due=made_due))
    await asyncio.sleep(0)  # it waits for the commit
    if is_back:
        harness.queue.make_retries_due(OUTBOUND, "g", with_detached=False)
    await written

    assert await harness.claim_refs() == ["a.0"][not is_back :]


async def test_detached_job_stays_detached_in_another_process_and_after_another_retry(
    store_location: StoreLocation, clock: ManualClock
) -> None:
    first = await open_harness(store_location, clock, "first")
    await first.enqueue("a", "a")
    [job] = await first.claim()
    await first.queue.retry_later(job, due_ms=clock.now_ms() + 500, note="rejected", detach=True)
    await crash(first)

    second = await open_harness(store_location, clock, "second")
    [follower] = await second.claim()
    clock.advance(ms=500)
    [late] = await second.claim()  # while its follower is still being worked
    await second.queue.retry_later(late, due_ms=clock.now_ms(), note="rejected again")
    [again] = await second.claim()

    assert [job.subject.ref for job in (follower, late, again)] == ["a.1", "a.0", "a.0"]
    assert (follower.is_detached, late.is_detached, again.is_detached) == (False, True, True)
    assert again.ordering_key == "a"
    await close_harness(second)


async def test_detached_dead_letter_is_still_detached_when_it_is_reopened(harness: QueueHarness) -> None:
    await harness.enqueue("a")
    [job] = await harness.claim()
    await harness.queue.retry_later(job, due_ms=harness.clock.now_ms(), note="rejected", detach=True)
    await fail_five_times(harness)

    await harness.database.write(
        reopen_dead_letter, await read_dead_letter_position(harness.database), harness.clock.now_ms()
    )

    [again] = await harness.claim()
    assert (again.subject.ref, again.ordering_key, again.is_detached) == ("a.0", "a", True)


async def test_retry_time_and_attempts_survive_a_crash(store_location: StoreLocation, clock: ManualClock) -> None:
    first = await open_harness(store_location, clock, "first")
    await first.enqueue("a", "a")
    [job] = await first.claim()
    await first.queue.retry_later(job, due_ms=clock.now_ms() + 500, note="not reached")
    await crash(first)

    second = await open_harness(store_location, clock, "second")

    assert await second.claim() == []
    clock.advance(ms=500)
    [again] = await second.claim()
    assert (again.subject.ref, again.attempt) == ("a.0", 1)
    await close_harness(second)


async def test_job_that_was_in_flight_is_marked_so_after_a_crash(
    store_location: StoreLocation, clock: ManualClock
) -> None:
    first = await open_harness(store_location, clock, "first")
    await first.enqueue("sent", "claimed")
    jobs = await first.claim()
    await first.queue.mark_in_flight(jobs[:1])
    await crash(first)

    second = await open_harness(store_location, clock, "second")

    was_in_flight = {job.subject.ref: job.was_in_flight for job in await second.claim()}
    assert was_in_flight == {"sent.0": True, "claimed.1": False}
    await close_harness(second)


async def test_job_that_is_retried_later_is_no_longer_in_flight(
    store_location: StoreLocation, clock: ManualClock
) -> None:
    first = await open_harness(store_location, clock, "first")
    await first.enqueue("a")
    jobs = await first.claim()
    await first.queue.mark_in_flight(jobs)
    await first.queue.retry_later(jobs[0], due_ms=clock.now_ms(), note="not reached")
    await crash(first)

    second = await open_harness(store_location, clock, "second")

    [again] = await second.claim()
    assert not again.was_in_flight
    await close_harness(second)


async def test_abandoned_job_is_claimed_again_unchanged(harness: QueueHarness) -> None:
    await harness.enqueue("a")
    [job] = await harness.claim()

    harness.queue.abandon(job)

    [again] = await harness.claim()
    assert (again.subject.ref, again.attempt, again.defects) == ("a.0", 0, 0)


async def test_job_with_defects_is_retried_after_growing_delays(harness: QueueHarness) -> None:
    await harness.enqueue("a")

    for delay_s in (1, 5, 30, 120):
        [job] = await harness.claim()
        await harness.queue.retry_after_defect(job, ERROR)
        harness.clock.advance(ms=delay_s * 1000 - 1)
        assert await harness.claim() == []
        harness.clock.advance(ms=1)

    assert await harness.claim_refs() == ["a.0"]


async def test_job_with_five_defects_becomes_a_dead_letter_and_frees_its_key(harness: QueueHarness) -> None:
    await harness.enqueue("a", "a")

    await fail_five_times(harness)

    assert await harness.claim_refs() == ["a.1"]
    assert await harness.database.read(count_jobs_by_state, QueueName.OUTBOUND) == {
        JobState.OPEN: 1,
        JobState.DEAD_LETTER: 1,
    }
    [row] = await harness.database.read(read_dead_letters)
    assert (row.ref, row.defects) == ("a.0", 5)
    assert "a defect" in (row.note or "")


async def test_dead_letter_stays_one_after_a_restart(store_location: StoreLocation, clock: ManualClock) -> None:
    first = await open_harness(store_location, clock, "first")
    await first.enqueue("a", "b")
    await fail_five_times(first)
    await crash(first)

    second = await open_harness(store_location, clock, "second")

    assert await second.claim_refs() == ["b.1"]
    await close_harness(second)


async def test_reopened_dead_letter_is_worked_again(harness: QueueHarness) -> None:
    await harness.enqueue("a", "a")
    await fail_five_times(harness)
    position = await read_dead_letter_position(harness.database)

    reopened = await harness.database.write(reopen_dead_letter, position, harness.clock.now_ms())

    assert reopened
    assert await harness.work_all() == ["a.1", "a.0"]
    assert not await harness.database.write(reopen_dead_letter, position, harness.clock.now_ms())


async def test_removed_dead_letter_is_deleted(harness: QueueHarness) -> None:
    await harness.enqueue("a")
    await fail_five_times(harness)
    position = await read_dead_letter_position(harness.database)

    assert await harness.database.write(remove_dead_letter, position, AT_MS)

    assert await harness.database.read(count_jobs_by_state, QueueName.OUTBOUND) == {}
    assert not await harness.database.write(remove_dead_letter, position, AT_MS)


async def test_job_in_flight_with_a_defect_is_as_uncertain_as_after_a_crash(harness: QueueHarness) -> None:
    await harness.enqueue("a")
    jobs = await harness.claim()
    await harness.queue.mark_in_flight(jobs)

    await harness.queue.retry_after_defect(jobs[0], ERROR)

    harness.clock.advance(ms=1000)
    [again] = await harness.claim()
    assert again.was_in_flight


async def test_open_job_can_be_neither_reopened_nor_removed_as_a_dead_letter(harness: QueueHarness) -> None:
    await harness.enqueue("a")
    [job] = await harness.claim()

    reopened = await harness.database.write(reopen_dead_letter, job.position, 0)
    removed = await harness.database.write(remove_dead_letter, job.position, AT_MS)

    assert (reopened, removed) == (False, False)


@pytest.mark.parametrize("times", [1, 4])
async def test_defects_are_counted_across_a_restart(
    store_location: StoreLocation, clock: ManualClock, times: int
) -> None:
    first = await open_harness(store_location, clock, "first")
    await first.enqueue("a")
    for _ in range(times):
        [job] = await first.claim()
        await first.queue.retry_after_defect(job, ERROR)
        clock.advance(ms=120_000)
    await crash(first)

    second = await open_harness(store_location, clock, "second")

    [again] = await second.claim()
    assert again.defects == times
    await close_harness(second)


async def test_job_in_flight_before_a_restart_stays_marked_so_after_a_defect(
    store_location: StoreLocation, clock: ManualClock
) -> None:
    first = await open_harness(store_location, clock, "first")
    await first.enqueue("a")
    await first.queue.mark_in_flight(await first.claim())
    await crash(first)
    second = await open_harness(store_location, clock, "second")
    [job] = await second.claim()

    await second.queue.retry_after_defect(job, ERROR)

    await crash(second)
    clock.advance(ms=1000)
    third = await open_harness(store_location, clock, "third")
    [again] = await third.claim()
    assert again.was_in_flight
    await close_harness(third)


async def test_dead_letter_that_was_in_flight_is_still_marked_so_when_it_is_reopened(harness: QueueHarness) -> None:
    await harness.enqueue("a")
    [job] = await harness.queue.mark_in_flight(await harness.claim())
    harness.queue.abandon(job)
    await fail_five_times(harness)

    await harness.database.write(
        reopen_dead_letter, await read_dead_letter_position(harness.database), harness.clock.now_ms()
    )

    [again] = await harness.claim()
    assert again.was_in_flight


async def test_unavailable_store_does_not_count_as_a_defect_of_the_job(
    store_location: StoreLocation, clock: ManualClock
) -> None:
    harness = await open_harness(store_location, clock, "only")
    await harness.enqueue("a")
    [job] = await harness.claim()
    await harness.queue.mark_in_flight([job])
    async with store_location.make_unavailable(harness.database):
        with pytest.raises(StoreUnavailable):
            await harness.queue.retry_after_defect(job, ERROR)

    harness.queue.abandon(job)

    [again] = await harness.claim()
    assert (again.defects, again.was_in_flight) == (0, True)
    await close_harness(harness)


async def fail_five_times(harness: QueueHarness) -> None:
    """Let the first job of the key `a` fail until it is a dead letter; abandon the others."""
    for _ in range(5):
        harness.clock.advance(ms=120_000)
        for job in await harness.claim():
            if job.subject.ref == "a.0":
                await harness.queue.retry_after_defect(job, ERROR)
            else:
                harness.queue.abandon(job)


async def read_dead_letter_position(database: Database) -> int:
    """Return the position of the only dead letter."""
    [row] = await database.read(read_dead_letters)
    return row.position
