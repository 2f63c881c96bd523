"""Entries that wait for something of their own process, such as an upload."""

from tests.queue.conftest import Bench
from waypost.store.queue.jobs import QueueName


async def test_parked_entry_holds_up_its_key_and_nothing_else(bench: Bench) -> None:
    await bench.append("a", "a", "b")
    [parked, other] = await bench.claim()
    bench.journal.park(parked)
    await bench.settle(other)
    await bench.append("c")

    refs = await bench.refs()

    assert refs == ["c.0"]


async def test_parked_entries_take_nothing_of_their_groups_share(bench: Bench) -> None:
    share = bench.journal.plans[QueueName.OUTBOUND].share
    await bench.append(*(f"k{at}" for at in range(share)))
    for job in await bench.claim():
        bench.journal.park(job)
    await bench.append("text")

    refs = await bench.refs()

    assert refs == ["text.0"]


async def test_parked_entry_comes_back_once_with_its_tries_as_they_were(bench: Bench) -> None:
    await bench.append("a")
    [parked] = await bench.claim()
    bench.journal.park(parked)

    is_ours = bench.journal.unpark(parked)

    [again] = await bench.claim()
    assert is_ours
    assert again is parked
    assert (again.attempt, await bench.claim()) == (0, [])
