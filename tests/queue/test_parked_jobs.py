"""Parked jobs, which wait for something in their own process, such as an upload."""

from tests.queue.conftest import QueueHarness
from waypost.store.queue.job_subjects import QueueName


async def test_parked_job_blocks_its_key_and_no_other(harness: QueueHarness) -> None:
    await harness.enqueue("a", "a", "b")
    [parked, other] = await harness.claim()
    harness.queue.park(parked)
    await harness.complete(other)
    await harness.enqueue("c")

    refs = await harness.claim_refs()

    assert refs == ["c.0"]


async def test_parked_jobs_do_not_count_toward_the_share_of_their_group(harness: QueueHarness) -> None:
    share = harness.queue.plans[QueueName.OUTBOUND].share
    await harness.enqueue(*(f"k{at}" for at in range(share)))
    for job in await harness.claim():
        harness.queue.park(job)
    await harness.enqueue("text")

    refs = await harness.claim_refs()

    assert refs == ["text.0"]


async def test_unparked_job_is_claimed_once_with_the_same_number_of_attempts(harness: QueueHarness) -> None:
    await harness.enqueue("a")
    [parked] = await harness.claim()
    harness.queue.park(parked)

    was_parked = harness.queue.unpark(parked)

    [again] = await harness.claim()
    assert was_parked
    assert again is parked
    assert (again.attempt, await harness.claim()) == (0, [])
