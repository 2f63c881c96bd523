"""One job of a key at a time, oldest first; different keys concurrently; no group beyond its share."""

import asyncio

import pytest

from tests.queue.conftest import QueueHarness
from tests.support.polling import HANGS_AFTER_S
from waypost.queue.plans import QUEUE_PLANS
from waypost.store.queue.job_subjects import QueueName


async def test_jobs_of_one_key_are_worked_one_at_a_time_and_oldest_first(harness: QueueHarness) -> None:
    await harness.enqueue("a", "a", "a")

    [first] = await harness.claim()
    while_worked = await harness.claim()
    await harness.complete(first)
    [second] = await harness.claim()

    assert first.subject.ref == "a.0"
    assert while_worked == []
    assert second.subject.ref == "a.1"


async def test_jobs_of_different_keys_are_worked_concurrently(harness: QueueHarness) -> None:
    await harness.enqueue("a", "b", "a", "c", "b")

    assert await harness.claim_refs() == ["a.0", "b.1", "c.3"]


async def test_no_more_jobs_are_claimed_than_there_are_free_slots(harness: QueueHarness) -> None:
    await harness.enqueue(*"abcde")

    first = await harness.claim_refs(at_most=2)
    second = await harness.claim_refs(at_most=2)

    assert (first, second) == (["a.0", "b.1"], ["c.2", "d.3"])


async def test_completed_job_is_not_claimed_again(harness: QueueHarness) -> None:
    await harness.enqueue("a")
    [job] = await harness.claim()

    await harness.complete(job)

    assert await harness.claim() == []


async def test_group_holds_no_more_than_its_share(harness: QueueHarness) -> None:
    share = QUEUE_PLANS[QueueName.OUTBOUND].share
    await harness.enqueue(*(f"slow{n}" for n in range(share + 20)), group="slow")
    await harness.enqueue("quick", group="quick")

    first = await harness.claim()
    second = await harness.claim()
    await harness.complete(next(job for job in first if job.concurrency_group == "slow"))
    third = await harness.claim()

    assert sum(job.concurrency_group == "slow" for job in first) == share
    assert sum(job.concurrency_group == "quick" for job in first) == 1
    assert second == []
    assert [job.concurrency_group for job in third] == ["slow"]


async def test_groups_take_turns(harness: QueueHarness) -> None:
    await harness.enqueue(*(f"a{n}" for n in range(9)), group="first")
    await harness.enqueue(*(f"b{n}" for n in range(3)), group="second")

    claimed = await harness.claim(at_most=6)

    assert sorted(job.concurrency_group for job in claimed) == ["first"] * 3 + ["second"] * 3


async def test_queues_do_not_claim_jobs_of_each_other(harness: QueueHarness) -> None:
    await harness.enqueue("a", queue_name=QueueName.CALLBACKS)

    outbound = await harness.claim_refs(queue_name=QueueName.OUTBOUND)
    callbacks = await harness.claim_refs(queue_name=QueueName.CALLBACKS)

    assert (outbound, callbacks) == ([], ["a.0"])


async def test_job_is_claimed_when_it_is_due_and_not_before(harness: QueueHarness) -> None:
    await harness.enqueue("a", due_ms=harness.clock.now_ms() + 1000)
    early = await harness.claim()
    harness.clock.advance(ms=999)
    still_early = await harness.claim()

    harness.clock.advance(ms=1)

    assert (early, still_early) == ([], [])
    assert await harness.claim_refs() == ["a.0"]


async def test_job_that_is_not_due_blocks_later_jobs_of_its_key_and_no_others(harness: QueueHarness) -> None:
    await harness.enqueue("a", due_ms=harness.clock.now_ms() + 1000)
    await harness.enqueue("a", "b")

    assert await harness.claim_refs() == ["b.1"]


async def test_wait_ends_when_a_job_is_enqueued(harness: QueueHarness) -> None:
    await harness.claim()
    waiting = asyncio.ensure_future(harness.queue.wait(QueueName.OUTBOUND))
    await asyncio.sleep(0.01)
    assert not waiting.done()

    await harness.enqueue("a")

    await asyncio.wait_for(waiting, HANGS_AFTER_S)  # the clock does not advance: no poll ends it
    assert await harness.claim_refs() == ["a.0"]


async def test_wait_ends_when_the_next_job_is_due(harness: QueueHarness) -> None:
    await harness.enqueue("a", due_ms=harness.clock.now_ms() + 1000)
    await harness.claim()
    waiting = asyncio.ensure_future(harness.queue.wait(QueueName.OUTBOUND))
    await asyncio.sleep(0.01)
    assert not waiting.done()

    harness.clock.advance(ms=1000)

    await asyncio.wait_for(waiting, HANGS_AFTER_S)


async def test_wait_ends_when_a_key_is_free_again(harness: QueueHarness) -> None:
    await harness.enqueue("a", "a")
    [job] = await harness.claim()
    await harness.claim()
    waiting = asyncio.ensure_future(harness.queue.wait(QueueName.OUTBOUND))
    await asyncio.sleep(0.01)
    assert not waiting.done()

    await harness.complete(job)

    await asyncio.wait_for(waiting, HANGS_AFTER_S)


async def test_more_jobs_than_a_group_holds_in_memory_are_all_worked_in_order(
    harness: QueueHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waypost.queue.concurrency_groups.MAX_JOBS_PER_READ", 4)
    keys = [f"k{n % 5}" for n in range(60)]
    await harness.enqueue(*keys)

    worked = await harness.work_all()

    assert sorted(worked) == sorted(f"{key}.{at}" for at, key in enumerate(keys))
    for key in set(keys):
        numbers = [int(ref.partition(".")[2]) for ref in worked if ref.startswith(f"{key}.")]
        assert numbers == sorted(numbers)


async def test_key_with_more_jobs_than_a_group_holds_in_memory_is_worked_in_order(
    harness: QueueHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waypost.queue.concurrency_groups.MAX_JOBS_PER_READ", 4)
    await harness.enqueue(*["a"] * 30)

    worked = await harness.work_all()

    assert worked == [f"a.{at}" for at in range(30)]


async def test_jobs_enqueued_while_others_are_worked_are_worked_too(harness: QueueHarness) -> None:
    await harness.enqueue("a")
    [first] = await harness.claim()
    await harness.enqueue("a", "b")

    concurrent = await harness.claim_refs()
    await harness.complete(first)

    assert concurrent == ["b.1"]
    assert await harness.claim_refs() == ["a.0"]  # the second job of the key; each call numbers from 0
