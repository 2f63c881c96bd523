"""One key, one at a time, oldest first; different keys side by side; no group beyond its share."""

import asyncio

import pytest

from tests.queue.conftest import Bench
from tests.support.waiting import HANGS_AFTER_S
from waypost.queue.plans import QUEUE_PLANS
from waypost.store.queue.jobs import QueueName


async def test_entries_of_one_key_are_worked_one_at_a_time_and_oldest_first(bench: Bench) -> None:
    await bench.append("a", "a", "a")

    [first] = await bench.claim()
    while_worked = await bench.claim()
    await bench.settle(first)
    [second] = await bench.claim()

    assert first.subject.ref == "a.0"
    assert while_worked == []
    assert second.subject.ref == "a.1"


async def test_different_keys_are_worked_side_by_side(bench: Bench) -> None:
    await bench.append("a", "b", "a", "c", "b")

    assert await bench.refs() == ["a.0", "b.1", "c.3"]


async def test_no_more_is_claimed_than_there_is_room_for(bench: Bench) -> None:
    await bench.append(*"abcde")

    first = await bench.refs(at_most=2)
    second = await bench.refs(at_most=2)

    assert (first, second) == (["a.0", "b.1"], ["c.2", "d.3"])


async def test_settled_entry_does_not_come_back(bench: Bench) -> None:
    await bench.append("a")
    [job] = await bench.claim()

    await bench.settle(job)

    assert await bench.claim() == []


async def test_group_holds_no_more_than_its_share(bench: Bench) -> None:
    share = QUEUE_PLANS[QueueName.OUTBOUND].share
    await bench.append(*(f"slow{n}" for n in range(share + 20)), group="slow")
    await bench.append("quick", group="quick")

    first = await bench.claim()
    second = await bench.claim()
    await bench.settle(next(job for job in first if job.concurrency_group == "slow"))
    third = await bench.claim()

    assert sum(job.concurrency_group == "slow" for job in first) == share
    assert sum(job.concurrency_group == "quick" for job in first) == 1
    assert second == []
    assert [job.concurrency_group for job in third] == ["slow"]


async def test_groups_take_turns(bench: Bench) -> None:
    await bench.append(*(f"a{n}" for n in range(9)), group="first")
    await bench.append(*(f"b{n}" for n in range(3)), group="second")

    claimed = await bench.claim(at_most=6)

    assert sorted(job.concurrency_group for job in claimed) == ["first"] * 3 + ["second"] * 3


async def test_lanes_do_not_see_each_other(bench: Bench) -> None:
    await bench.append("a", queue_name=QueueName.CALLBACKS)

    submissions = await bench.refs(queue_name=QueueName.OUTBOUND)
    callbacks = await bench.refs(queue_name=QueueName.CALLBACKS)

    assert (submissions, callbacks) == ([], ["a.0"])


async def test_entry_is_claimed_when_it_is_due_and_not_before(bench: Bench) -> None:
    await bench.append("a", due_ms=bench.clock.now_ms() + 1000)
    early = await bench.claim()
    bench.clock.advance(ms=999)
    still_early = await bench.claim()

    bench.clock.advance(ms=1)

    assert (early, still_early) == ([], [])
    assert await bench.refs() == ["a.0"]


async def test_head_that_is_not_due_holds_up_its_followers_and_nobody_else(bench: Bench) -> None:
    await bench.append("a", due_ms=bench.clock.now_ms() + 1000)
    await bench.append("a", "b")

    assert await bench.refs() == ["b.1"]


async def test_wait_ends_when_something_is_appended(bench: Bench) -> None:
    await bench.claim()
    waiting = asyncio.ensure_future(bench.journal.wait(QueueName.OUTBOUND))
    await asyncio.sleep(0.01)
    assert not waiting.done()

    await bench.append("a")

    await asyncio.wait_for(waiting, HANGS_AFTER_S)  # the clock stands still: no poll ends it
    assert await bench.refs() == ["a.0"]


async def test_wait_ends_when_the_next_entry_is_due(bench: Bench) -> None:
    await bench.append("a", due_ms=bench.clock.now_ms() + 1000)
    await bench.claim()
    waiting = asyncio.ensure_future(bench.journal.wait(QueueName.OUTBOUND))
    await asyncio.sleep(0.01)
    assert not waiting.done()

    bench.clock.advance(ms=1000)

    await asyncio.wait_for(waiting, HANGS_AFTER_S)


async def test_wait_ends_when_a_key_is_free_again(bench: Bench) -> None:
    await bench.append("a", "a")
    [job] = await bench.claim()
    await bench.claim()
    waiting = asyncio.ensure_future(bench.journal.wait(QueueName.OUTBOUND))
    await asyncio.sleep(0.01)
    assert not waiting.done()

    await bench.settle(job)

    await asyncio.wait_for(waiting, HANGS_AFTER_S)


async def test_more_entries_than_a_group_holds_in_memory_are_all_worked_in_order(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waypost.queue.concurrency_groups.MAX_JOBS_PER_READ", 4)
    keys = [f"k{n % 5}" for n in range(60)]
    await bench.append(*keys)

    worked = await bench.work_all()

    assert sorted(worked) == sorted(f"{key}.{at}" for at, key in enumerate(keys))
    for key in set(keys):
        numbers = [int(ref.partition(".")[2]) for ref in worked if ref.startswith(f"{key}.")]
        assert numbers == sorted(numbers)


async def test_one_key_longer_than_a_groups_memory_is_worked_in_order(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waypost.queue.concurrency_groups.MAX_JOBS_PER_READ", 4)
    await bench.append(*["a"] * 30)

    worked = await bench.work_all()

    assert worked == [f"a.{at}" for at in range(30)]


async def test_entries_appended_while_others_are_worked_are_worked_too(bench: Bench) -> None:
    await bench.append("a")
    [first] = await bench.claim()
    await bench.append("a", "b")

    beside = await bench.refs()
    await bench.settle(first)

    assert beside == ["b.1"]
    assert await bench.refs() == ["a.0"]  # the second of the key; its number counts anew
