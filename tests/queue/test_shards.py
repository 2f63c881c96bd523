"""Shards of the queues between several processes, and the jobs that are being worked when a shard moves."""

from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace

import pytest

from tests.queue.conftest import LEASE_MS, OUTBOUND, QueueHarness, close_harness, delete_completed, open_harness
from tests.support.manual_clock import ManualClock
from tests.support.store_locations import StoreLocation
from waypost.queue.plans import QUEUE_PLANS, shard_of
from waypost.store.queue.job_subjects import JobState, QueueName
from waypost.store.queue.jobs import GroupCursor, NewJob, enqueue_jobs, read_jobs_after, read_subject
from waypost.store.queue.leases import SHARD_COUNT

ProcessOpener = Callable[..., Coroutine[None, None, QueueHarness]]
GROUPS = [f"group {number}" for number in range(220)]
"""Enough groups that both halves of the shards have some."""
WITH_COOLDOWN = {queue: replace(plan, cooldown_ms=60_000) for queue, plan in QUEUE_PLANS.items()}
"""A cooldown so long that even a slow machine notices it."""


@pytest.fixture
async def open_process(store_location: StoreLocation, clock: ManualClock) -> AsyncIterator[ProcessOpener]:
    """Open processes on one store, and close them at the end."""
    harnesses: list[QueueHarness] = []

    async def open_next(holder: str, **options: object) -> QueueHarness:
        harness = await open_harness(store_location, options.pop("clock", clock), holder, sole=False, **options)  # pyright: ignore[reportArgumentType]
        harnesses.append(harness)
        return harness

    yield open_next
    for harness in harnesses:
        await close_harness(harness)


def held_shards(harness: QueueHarness, queue_name: QueueName = OUTBOUND) -> set[int]:
    """Return the shards that a process may claim from."""
    return harness.queue.shards.held[queue_name]


async def renew_leases(*harnesses: QueueHarness, times: int = 3) -> None:
    """Let each process renew its leases, until the shards are divided."""
    for _ in range(times):
        harnesses[0].clock.advance(ms=LEASE_MS // 3)
        for harness in harnesses:
            await harness.claim(at_most=0)


async def test_shards_are_divided_evenly_when_processes_start_and_stop(open_process: ProcessOpener) -> None:
    first_process = await open_process("one")
    await renew_leases(first_process)
    alone = len(held_shards(first_process))
    second_process, third_process = await open_process("two"), await open_process("three")
    await renew_leases(first_process, second_process, third_process)
    shard_counts = [len(held_shards(harness)) for harness in (first_process, second_process, third_process)]
    overlap = held_shards(first_process) & held_shards(second_process) | held_shards(second_process) & held_shards(
        third_process
    )

    await third_process.queue.close()
    await renew_leases(first_process, second_process)

    assert alone == SHARD_COUNT
    assert sorted(shard_counts) == [84, 86, 86]
    assert overlap == set()
    assert len(held_shards(first_process)) == len(held_shards(second_process)) == SHARD_COUNT // 2


async def test_jobs_in_work_keep_their_shards_when_another_process_starts(open_process: ProcessOpener) -> None:
    first_process = await open_process("one")
    new = [NewJob(OUTBOUND, group, "a", read_subject(OUTBOUND, f"a.{at}"), 0) for group in GROUPS for at in (0, 1)]
    await first_process.database.write(enqueue_jobs, new)
    working = await first_process.claim()
    second_process = await open_process("two")

    await renew_leases(first_process, second_process)
    while_worked = await second_process.claim()
    for job in working:
        await first_process.complete(job)
    await renew_leases(first_process, second_process)
    followers = [*await first_process.claim(), *await second_process.claim()]

    assert len(working) == len(GROUPS)
    assert while_worked == []
    assert sorted((job.concurrency_group, job.subject.ref) for job in followers) == sorted(
        (group, "a.1") for group in GROUPS
    )
    assert any(shard_of(job.concurrency_group) in held_shards(second_process) for job in followers)


async def test_lost_shard_is_not_worked_again_before_its_job_in_this_process_has_ended(
    open_process: ProcessOpener,
) -> None:
    first_process = await open_process("one")
    await first_process.enqueue("a", "a")
    [job] = await first_process.claim()

    first_process.pass_lease(ms=LEASE_MS)  # it could not renew, and no other process was there to take over
    meanwhile = await first_process.claim()
    await first_process.complete(job)

    assert meanwhile == []
    assert await first_process.claim_refs() == ["a.1"]


async def test_job_that_cannot_be_marked_in_flight_is_not_claimed_again(
    open_process: ProcessOpener, store_location: StoreLocation, clock: ManualClock
) -> None:
    first_process = await open_process("one")
    await first_process.enqueue("a")
    [job] = await first_process.claim()
    store_location.pass_lease(ms=LEASE_MS)
    second_process = await open_process("two", clock=ManualClock(clock.now_ms() + LEASE_MS))
    by_second = await second_process.claim_refs()

    marked = await first_process.queue.mark_in_flight([job])
    first_process.queue.abandon(job)

    assert by_second == ["a.0"]
    assert marked == []
    assert await first_process.claim() == []


async def test_lease_of_a_job_is_held_until_it_expires_and_not_after_a_new_one(open_process: ProcessOpener) -> None:
    first_process = await open_process("one")
    await first_process.enqueue("a")
    [job] = await first_process.claim()
    was_held = first_process.queue.is_lease_held(job)

    first_process.pass_lease(ms=LEASE_MS)
    is_held_after_expiry = first_process.queue.is_lease_held(job)
    await first_process.claim()  # leases the shard again, under a new fence

    assert was_held
    assert not is_held_after_expiry
    assert first_process.queue.shards.are_leases_valid
    assert not first_process.queue.is_lease_held(job)


async def test_group_cools_down_when_its_shard_has_moved_to_another_process(
    open_process: ProcessOpener, clock: ManualClock
) -> None:
    first_process = await open_process("one", plans=WITH_COOLDOWN)
    await first_process.enqueue("a", "b")
    [job, _] = await first_process.claim()  # a shard that no process has had needs no cooldown
    await first_process.complete(job)
    second_process = await open_process("two", plans=WITH_COOLDOWN)
    await first_process.queue.close()

    at_once = await second_process.claim()
    clock.advance(ms=60_000)

    assert QUEUE_PLANS[OUTBOUND].cooldown_ms == 1_000
    assert at_once == []
    assert await second_process.claim_refs() == ["b.1"]


async def test_process_works_only_the_queues_that_it_is_given(
    open_process: ProcessOpener, store_location: StoreLocation, clock: ManualClock
) -> None:
    both = await open_process("both")
    sender = await open_process("sender", queue_names=(QueueName.OUTBOUND,))
    await renew_leases(both, sender)
    await sender.enqueue("a", queue_name=QueueName.CALLBACKS)
    both.clock.advance(ms=5_000)

    by_sender = await sender.claim(queue_name=QueueName.CALLBACKS)

    assert by_sender == []
    assert len(held_shards(both, QueueName.CALLBACKS)) == SHARD_COUNT
    assert len(held_shards(both, QueueName.OUTBOUND)) == SHARD_COUNT // 2
    assert await both.claim_refs(queue_name=QueueName.CALLBACKS) == ["a.0"]


async def test_late_completion_does_not_affect_the_next_holder(
    open_process: ProcessOpener, store_location: StoreLocation
) -> None:
    first_process = await open_process("one")
    await first_process.enqueue("a", "a")
    [job] = await first_process.claim()
    first_process.pass_lease(ms=LEASE_MS)
    second_process = await open_process("two")
    [same] = await second_process.claim()

    await first_process.complete(job)
    await second_process.complete(same)

    assert job.position == same.position
    assert await second_process.claim_refs() == ["a.1"]
    assert await second_process.database.write(delete_completed, [same.position]) == [None]


async def test_retry_of_a_job_that_another_process_works_changes_nothing(open_process: ProcessOpener) -> None:
    first_process = await open_process("one")
    await first_process.enqueue("a")
    [job] = await first_process.claim()
    first_process.pass_lease(ms=LEASE_MS)
    second_process = await open_process("two")
    [same] = await second_process.claim()
    await second_process.queue.mark_in_flight([same])

    await first_process.queue.retry_later(job, due_ms=first_process.clock.now_ms() + 3_600_000, note="too late")
    await first_process.queue.retry_after_defect(job, RuntimeError("too late as well"))

    rows = (await second_process.database.read(read_jobs_after, OUTBOUND, [GroupCursor("g", 0, (), 10)])).rows["g"]
    assert [(row.state, row.due_ms, row.attempt, row.defects) for row in rows] == [(JobState.IN_FLIGHT, 0, 0, 0)]
