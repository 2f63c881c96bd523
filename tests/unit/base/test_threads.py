"""Threads for the loop: order, results, errors, and an end that waits."""

import asyncio
import threading

import pytest

from tests.support.waiting import HANGS_AFTER_S
from waypost.base.threads import ThreadPool


async def test_calls_on_one_thread_are_run_in_their_order_and_give_their_results() -> None:
    threads = ThreadPool(1, "one")
    ran: list[int] = []

    def note(number: int) -> int:
        ran.append(number)
        return number * 2

    results = await asyncio.gather(*(threads.run(note, number) for number in range(100)))
    threads.shutdown()

    assert ran == list(range(100))
    assert results == [number * 2 for number in range(100)]


async def test_what_a_call_raises_is_its_callers_and_the_thread_goes_on() -> None:
    threads = ThreadPool(1, "one")

    with pytest.raises(ZeroDivisionError):
        await threads.run(divmod, 1, 0)

    assert await threads.run(divmod, 7, 2) == (3, 1)
    threads.shutdown()


async def test_two_threads_work_side_by_side() -> None:
    threads = ThreadPool(2, "pair")
    meeting = threading.Barrier(2)

    places = await asyncio.gather(*(threads.run(meeting.wait, 5) for _ in range(2)))
    threads.shutdown()

    assert sorted(places) == [0, 1]


async def test_whoever_goes_away_disturbs_nobody() -> None:
    threads = ThreadPool(1, "one")
    hold = threading.Event()
    waiting = threads.run(hold.wait, 5)
    gone = threads.run(divmod, 7, 2)
    gone.cancel()
    hold.set()

    assert await waiting
    assert await threads.run(divmod, 9, 2) == (4, 1)
    threads.shutdown()


async def test_the_end_waits_for_what_was_handed_in_and_takes_no_more() -> None:
    threads = ThreadPool(1, "one")
    ran: list[int] = []
    for number in range(50):
        threads.submit(ran.append, number)

    threads.shutdown()

    assert ran == list(range(50))
    with pytest.raises(RuntimeError, match="after the end"):
        threads.submit(ran.append, 51)


async def test_the_end_may_come_from_another_thread_while_calls_are_handed_in() -> None:
    """Each call is either run or refused: none is left waiting, and no thread is joined before it has begun."""

    async def until_refused(threads: ThreadPool) -> None:
        while True:
            await asyncio.wait_for(threads.run(divmod, 7, 2), HANGS_AFTER_S)

    for _ in range(200):
        threads = ThreadPool(2, "pair")
        end = asyncio.create_task(asyncio.to_thread(threads.shutdown))
        with pytest.raises(RuntimeError, match="after the end"):
            await until_refused(threads)
        await end
