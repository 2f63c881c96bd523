"""How several processes share the queues: who has what, and what happens to what is being worked meanwhile."""

from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace

import pytest

from tests.queue.conftest import LANE, LEASE_MS, Bench, close_bench, open_bench, settle
from tests.support.stores import Place
from waypost.base.clock import ManualClock
from waypost.queue.plans import QUEUE_PLANS, shard_of
from waypost.store.queue.jobs import (
    GroupCursor,
    JobState,
    NewJob,
    QueueName,
    enqueue_jobs,
    read_jobs_after,
    read_subject,
)
from waypost.store.queue.leases import SHARD_COUNT

Open = Callable[..., Coroutine[None, None, Bench]]
GROUPS = [f"group {number}" for number in range(220)]
"""So many that both halves of the shards have some."""
RESTING = {queue: replace(plan, cooldown_ms=60_000) for queue, plan in QUEUE_PLANS.items()}
"""For so long that no machine is too slow to see it."""


@pytest.fixture
async def opened(place: Place, clock: ManualClock) -> AsyncIterator[Open]:
    """Opens processes on one store, and closes them at the end."""
    benches: list[Bench] = []

    async def opens(holder: str, **wishes: object) -> Bench:
        bench = await open_bench(place, wishes.pop("on", clock), holder, sole=False, **wishes)  # pyright: ignore[reportArgumentType]
        benches.append(bench)
        return bench

    yield opens
    for bench in benches:
        await close_bench(bench)


def shards_of(bench: Bench, queue_name: QueueName = LANE) -> set[int]:
    """What a process may claim from."""
    return bench.journal.shards.held[queue_name]


async def turns(*benches: Bench, times: int = 3) -> None:
    """Let each renew its leases, so that they come to terms."""
    for _ in range(times):
        benches[0].clock.advance(ms=LEASE_MS // 3)
        for bench in benches:
            await bench.claim(at_most=0)


async def test_shares_are_fair_whoever_comes_and_goes(opened: Open) -> None:
    one = await opened("one")
    await turns(one)
    alone = len(shards_of(one))
    two, three = await opened("two"), await opened("three")
    await turns(one, two, three)
    of_three = [len(shards_of(bench)) for bench in (one, two, three)]
    overlap = shards_of(one) & shards_of(two) | shards_of(two) & shards_of(three)

    await three.journal.close()
    await turns(one, two)

    assert alone == SHARD_COUNT
    assert sorted(of_three) == [84, 86, 86]
    assert overlap == set()
    assert len(shards_of(one)) == len(shards_of(two)) == SHARD_COUNT // 2


async def test_what_is_being_worked_stays_until_its_end_when_another_process_comes(opened: Open) -> None:
    one = await opened("one")
    new = [NewJob(LANE, group, "a", read_subject(LANE, f"a.{at}"), 0) for group in GROUPS for at in (0, 1)]
    await one.database.write(enqueue_jobs, new)
    working = await one.claim()
    two = await opened("two")

    await turns(one, two)
    while_worked = await two.claim()
    for job in working:
        await one.settle(job)
    await turns(one, two)
    followers = [*await one.claim(), *await two.claim()]

    assert len(working) == len(GROUPS)
    assert while_worked == []
    assert sorted((job.concurrency_group, job.subject.ref) for job in followers) == sorted(
        (group, "a.1") for group in GROUPS
    )
    assert any(shard_of(job.concurrency_group) in shards_of(two) for job in followers)


async def test_shard_that_was_lost_is_not_worked_again_before_its_work_here_has_ended(opened: Open) -> None:
    one = await opened("one")
    await one.append("a", "a")
    [job] = await one.claim()

    one.pass_lease(ms=LEASE_MS)  # it could not renew, and nobody else was there to take over
    meanwhile = await one.claim()
    await one.settle(job)

    assert meanwhile == []
    assert await one.refs() == ["a.1"]


async def test_entry_that_cannot_be_marked_is_let_go_for_good(opened: Open, place: Place, clock: ManualClock) -> None:
    one = await opened("one")
    await one.append("a")
    [job] = await one.claim()
    place.pass_lease(ms=LEASE_MS)
    two = await opened("two", on=ManualClock(clock.now_ms() + LEASE_MS))
    by_two = await two.refs()

    marked = await one.journal.mark_in_flight([job])
    one.journal.abandon(job)

    assert by_two == ["a.0"]
    assert marked == []
    assert await one.claim() == []


async def test_entry_is_ours_while_the_lease_lasts_and_no_longer(opened: Open) -> None:
    one = await opened("one")
    await one.append("a")
    [job] = await one.claim()
    at_first = one.journal.is_lease_held(job)

    one.pass_lease(ms=LEASE_MS)
    too_late = one.journal.is_lease_held(job)
    await one.claim()  # leases again, and it is another claim's

    assert at_first
    assert not too_late
    assert one.journal.shards.are_leases_valid
    assert not one.journal.is_lease_held(job)


async def test_source_rests_for_a_while_when_its_shard_has_changed_hands(opened: Open, clock: ManualClock) -> None:
    one = await opened("one", plans=RESTING)
    await one.append("a", "b")
    [first, _] = await one.claim()  # a shard that nobody has had does not rest
    await one.settle(first)
    two = await opened("two", plans=RESTING)
    await one.journal.close()

    at_once = await two.claim()
    clock.advance(ms=60_000)

    assert QUEUE_PLANS[LANE].cooldown_ms == 1_000
    assert at_once == []
    assert await two.refs() == ["b.1"]


async def test_process_works_the_lanes_that_it_is_given_and_no_other(
    opened: Open, place: Place, clock: ManualClock
) -> None:
    both = await opened("both")
    sender = await opened("sender", queue_names=(QueueName.OUTBOUND,))
    await turns(both, sender)
    await sender.append("a", queue_name=QueueName.CALLBACKS)
    both.clock.advance(ms=5_000)

    by_sender = await sender.claim(queue_name=QueueName.CALLBACKS)

    assert by_sender == []
    assert len(shards_of(both, QueueName.CALLBACKS)) == SHARD_COUNT
    assert len(shards_of(both, QueueName.OUTBOUND)) == SHARD_COUNT // 2
    assert await both.refs(queue_name=QueueName.CALLBACKS) == ["a.0"]


async def test_settling_late_does_no_harm_to_the_next_holder(opened: Open, place: Place) -> None:
    one = await opened("one")
    await one.append("a", "a")
    [job] = await one.claim()
    one.pass_lease(ms=LEASE_MS)
    two = await opened("two")
    [same] = await two.claim()

    await one.settle(job)
    await two.settle(same)

    assert job.position == same.position
    assert await two.refs() == ["a.1"]
    assert await two.database.write(settle, [same.position]) == [None]


async def test_release_of_what_another_process_works_changes_nothing(opened: Open) -> None:
    one = await opened("one")
    await one.append("a")
    [job] = await one.claim()
    one.pass_lease(ms=LEASE_MS)
    two = await opened("two")
    [same] = await two.claim()
    await two.journal.mark_in_flight([same])

    await one.journal.retry_later(job, due_ms=one.clock.now_ms() + 3_600_000, note="too late")
    await one.journal.retry_after_defect(job, RuntimeError("too late as well"))

    kept = (await two.database.read(read_jobs_after, LANE, [GroupCursor("g", 0, (), 10)])).rows["g"]
    assert [(row.state, row.due_ms, row.attempt, row.defects) for row in kept] == [(JobState.IN_FLIGHT, 0, 0, 0)]
