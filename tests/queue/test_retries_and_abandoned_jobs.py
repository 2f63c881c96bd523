"""Entries that are given back: for later, with a defect, or by a process that is no more."""

import pytest

from tests.queue.conftest import Bench, close_bench, die, open_bench
from tests.support.stores import Place
from waypost.base.clock import ManualClock
from waypost.store.contract import StoreUnavailable
from waypost.store.database import Database
from waypost.store.queue.jobs import (
    JobState,
    QueueName,
    count_jobs_by_state,
    read_dead_letters,
    remove_dead_letter,
    reopen_dead_letter,
)

ERROR = ValueError("a defect")


async def test_released_entry_comes_back_when_it_is_due_with_its_tries_counted(bench: Bench) -> None:
    await bench.append("a")
    [job] = await bench.claim()
    await bench.journal.retry_later(job, due_ms=bench.clock.now_ms() + 500, note="not reached")
    early = await bench.claim()

    bench.clock.advance(ms=500)

    [again] = await bench.claim()
    assert early == []
    assert (again.subject.ref, again.attempt, again.was_in_flight) == ("a.0", 1, False)


async def test_released_entry_holds_up_its_followers(bench: Bench) -> None:
    await bench.append("a", "a", "b")
    [job, other] = await bench.claim()
    await bench.settle(other)

    await bench.journal.retry_later(job, due_ms=bench.clock.now_ms() + 500, note="not reached")

    assert await bench.claim() == []


async def test_entry_that_leaves_its_key_lets_the_followers_go(bench: Bench) -> None:
    await bench.append("a", "a")
    [job] = await bench.claim()

    await bench.journal.retry_later(job, due_ms=bench.clock.now_ms() + 500, note="refused", detach=True)

    [follower] = await bench.claim()
    assert follower.subject.ref == "a.1"
    bench.clock.advance(ms=500)
    [late] = await bench.claim()
    assert late.subject.ref == "a.0"
    assert late.attempt == 1


async def test_detached_entry_stays_detached_whoever_works_it(place: Place, clock: ManualClock) -> None:
    first = await open_bench(place, clock, "first")
    await first.append("a", "a")
    [job] = await first.claim()
    await first.journal.retry_later(job, due_ms=clock.now_ms() + 500, note="refused", detach=True)
    await die(first)

    second = await open_bench(place, clock, "second")
    [follower] = await second.claim()
    clock.advance(ms=500)
    [late] = await second.claim()  # beside its follower, which is still being worked
    await second.journal.retry_later(late, due_ms=clock.now_ms(), note="refused again")
    [again] = await second.claim()

    assert [one.subject.ref for one in (follower, late, again)] == ["a.1", "a.0", "a.0"]
    assert (follower.is_detached, late.is_detached, again.is_detached) == (False, True, True)
    assert again.ordering_key == "a"
    await close_bench(second)


async def test_detached_entry_that_was_set_aside_comes_back_detached(bench: Bench) -> None:
    await bench.append("a")
    [job] = await bench.claim()
    await bench.journal.retry_later(job, due_ms=bench.clock.now_ms(), note="refused", detach=True)
    await five_defects(bench)

    await bench.database.write(reopen_dead_letter, await is_dead_letter(bench.database), bench.clock.now_ms())

    [again] = await bench.claim()
    assert (again.subject.ref, again.ordering_key, again.is_detached) == ("a.0", "a", True)


async def test_release_outlives_the_process(place: Place, clock: ManualClock) -> None:
    first = await open_bench(place, clock, "first")
    await first.append("a", "a")
    [job] = await first.claim()
    await first.journal.retry_later(job, due_ms=clock.now_ms() + 500, note="not reached")
    await die(first)

    second = await open_bench(place, clock, "second")

    assert await second.claim() == []
    clock.advance(ms=500)
    [again] = await second.claim()
    assert (again.subject.ref, again.attempt) == ("a.0", 1)
    await close_bench(second)


async def test_entry_that_was_in_hand_says_so_after_a_crash(place: Place, clock: ManualClock) -> None:
    first = await open_bench(place, clock, "first")
    await first.append("sent", "claimed")
    jobs = await first.claim()
    await first.journal.mark_in_flight(jobs[:1])
    await die(first)

    second = await open_bench(place, clock, "second")

    found = {job.subject.ref: job.was_in_flight for job in await second.claim()}
    assert found == {"sent.0": True, "claimed.1": False}
    await close_bench(second)


async def test_entry_released_from_the_hand_is_no_longer_in_hand(place: Place, clock: ManualClock) -> None:
    first = await open_bench(place, clock, "first")
    await first.append("a")
    jobs = await first.claim()
    await first.journal.mark_in_flight(jobs)
    await first.journal.retry_later(jobs[0], due_ms=clock.now_ms(), note="not reached")
    await die(first)

    second = await open_bench(place, clock, "second")

    [again] = await second.claim()
    assert not again.was_in_flight
    await close_bench(second)


async def test_entry_that_is_let_go_comes_back_as_it_was(bench: Bench) -> None:
    await bench.append("a")
    [job] = await bench.claim()

    bench.journal.abandon(job)

    [again] = await bench.claim()
    assert (again.subject.ref, again.attempt, again.defects) == ("a.0", 0, 0)


async def test_entry_with_a_defect_comes_back_later_and_later(bench: Bench) -> None:
    await bench.append("a")

    for delay_s in (1, 5, 30, 120):
        [job] = await bench.claim()
        await bench.journal.retry_after_defect(job, ERROR)
        bench.clock.advance(ms=delay_s * 1000 - 1)
        assert await bench.claim() == []
        bench.clock.advance(ms=1)

    assert await bench.refs() == ["a.0"]


async def test_entry_with_five_defects_is_set_aside_and_its_key_goes_on(bench: Bench) -> None:
    await bench.append("a", "a")

    await five_defects(bench)

    assert await bench.refs() == ["a.1"]
    assert await bench.database.read(count_jobs_by_state, QueueName.OUTBOUND) == {
        JobState.OPEN: 1,
        JobState.DEAD_LETTER: 1,
    }
    [row] = await bench.database.read(read_dead_letters)
    assert (row.ref, row.defects) == ("a.0", 5)
    assert "a defect" in (row.note or "")


async def test_entry_set_aside_stays_so_after_a_restart(place: Place, clock: ManualClock) -> None:
    first = await open_bench(place, clock, "first")
    await first.append("a", "b")
    await five_defects(first)
    await die(first)

    second = await open_bench(place, clock, "second")

    assert await second.refs() == ["b.1"]
    await close_bench(second)


async def test_entry_set_aside_is_worked_again_when_a_person_returns_it(bench: Bench) -> None:
    await bench.append("a", "a")
    await five_defects(bench)
    position = await is_dead_letter(bench.database)

    returned = await bench.database.write(reopen_dead_letter, position, bench.clock.now_ms())

    assert returned
    assert await bench.work_all() == ["a.1", "a.0"]
    assert not await bench.database.write(reopen_dead_letter, position, bench.clock.now_ms())


async def test_entry_set_aside_is_gone_when_a_person_drops_it(bench: Bench) -> None:
    await bench.append("a")
    await five_defects(bench)
    position = await is_dead_letter(bench.database)

    assert await bench.database.write(remove_dead_letter, position)

    assert await bench.database.read(count_jobs_by_state, QueueName.OUTBOUND) == {}
    assert not await bench.database.write(remove_dead_letter, position)


async def test_entry_in_hand_with_a_defect_is_as_uncertain_as_after_a_crash(bench: Bench) -> None:
    await bench.append("a")
    jobs = await bench.claim()
    await bench.journal.mark_in_flight(jobs)

    await bench.journal.retry_after_defect(jobs[0], ERROR)

    bench.clock.advance(ms=1000)
    [again] = await bench.claim()
    assert again.was_in_flight


async def test_open_entry_is_neither_returned_nor_dropped(bench: Bench) -> None:
    await bench.append("a")
    [job] = await bench.claim()

    returned = await bench.database.write(reopen_dead_letter, job.position, 0)
    dropped = await bench.database.write(remove_dead_letter, job.position)

    assert (returned, dropped) == (False, False)


@pytest.mark.parametrize("times", [1, 4])
async def test_defects_are_counted_over_a_restart(place: Place, clock: ManualClock, times: int) -> None:
    first = await open_bench(place, clock, "first")
    await first.append("a")
    for _ in range(times):
        [job] = await first.claim()
        await first.journal.retry_after_defect(job, ERROR)
        clock.advance(ms=120_000)
    await die(first)

    second = await open_bench(place, clock, "second")

    [again] = await second.claim()
    assert again.defects == times
    await close_bench(second)


async def test_doubt_from_before_a_restart_outlives_a_defect(place: Place, clock: ManualClock) -> None:
    first = await open_bench(place, clock, "first")
    await first.append("a")
    await first.journal.mark_in_flight(await first.claim())
    await die(first)
    second = await open_bench(place, clock, "second")
    [job] = await second.claim()

    await second.journal.retry_after_defect(job, ERROR)

    await die(second)
    clock.advance(ms=1000)
    third = await open_bench(place, clock, "third")
    [again] = await third.claim()
    assert again.was_in_flight
    await close_bench(third)


async def test_entry_set_aside_in_hand_comes_back_in_hand(bench: Bench) -> None:
    await bench.append("a")
    [job] = await bench.journal.mark_in_flight(await bench.claim())
    bench.journal.abandon(job)
    await five_defects(bench)

    await bench.database.write(reopen_dead_letter, await is_dead_letter(bench.database), bench.clock.now_ms())

    [again] = await bench.claim()
    assert again.was_in_flight


async def test_store_that_is_away_is_no_defect_of_the_entry(place: Place, clock: ManualClock) -> None:
    bench = await open_bench(place, clock, "only")
    await bench.append("a")
    [job] = await bench.claim()
    await bench.journal.mark_in_flight([job])
    async with place.away(bench.database):
        with pytest.raises(StoreUnavailable):
            await bench.journal.retry_after_defect(job, ERROR)

    bench.journal.abandon(job)

    [again] = await bench.claim()
    assert (again.defects, again.was_in_flight) == (0, True)
    await close_bench(bench)


async def five_defects(bench: Bench) -> None:
    """Let the head of the key `a` fail until it is set aside; others are let go."""
    for _ in range(5):
        bench.clock.advance(ms=120_000)
        for job in await bench.claim():
            if job.subject.ref == "a.0":
                await bench.journal.retry_after_defect(job, ERROR)
            else:
                bench.journal.abandon(job)


async def is_dead_letter(database: Database) -> int:
    """The position of the one entry that is set aside."""
    [row] = await database.read(read_dead_letters)
    return row.position
