"""Thread pools for the event loop: order, results, errors, and a shutdown that waits."""

import asyncio
import threading

import pytest

from tests.support.polling import HANGS_AFTER_S
from waypost.base.threads import ThreadPool


async def test_calls_on_one_thread_are_run_in_their_order_and_give_their_results() -> None:
    threads = ThreadPool(1, "one")
    ran: list[int] = []

    def record(number: int) -> int:
        ran.append(number)
        return number * 2

    results = await asyncio.gather(*(threads.run(record, number) for number in range(100)))
    threads.shutdown()

    assert ran == list(range(100))
    assert results == [number * 2 for number in range(100)]


async def test_error_of_a_call_reaches_its_caller_and_the_thread_continues() -> None:
    threads = ThreadPool(1, "one")

    with pytest.raises(ZeroDivisionError):
        await threads.run(divmod, 1, 0)

    assert await threads.run(divmod, 7, 2) == (3, 1)
    threads.shutdown()


async def test_two_threads_work_concurrently() -> None:
    threads = ThreadPool(2, "pair")
    meeting = threading.Barrier(2)

    indexes = await asyncio.gather(*(threads.run(meeting.wait, 5) for _ in range(2)))
    threads.shutdown()

    assert sorted(indexes) == [0, 1]


async def test_cancelled_call_does_not_affect_other_calls() -> None:
    threads = ThreadPool(1, "one")
    hold = threading.Event()
    waiting = threads.run(hold.wait, 5)
    cancelled = threads.run(divmod, 7, 2)
    cancelled.cancel()
    hold.set()

    assert await waiting
    assert await threads.run(divmod, 9, 2) == (4, 1)
    threads.shutdown()


async def test_shutdown_waits_for_submitted_calls_and_accepts_no_more() -> None:
    threads = ThreadPool(1, "one")
    ran: list[int] = []
    for number in range(50):
        threads.submit(ran.append, number)

    threads.shutdown()

    assert ran == list(range(50))
    with pytest.raises(RuntimeError, match="after the end"):
        threads.submit(ran.append, 51)


async def test_shutdown_may_run_on_another_thread_while_calls_are_submitted() -> None:
    """Each call is run or rejected: none is left waiting, and no thread is joined before it has started."""

    async def call_until_shutdown(threads: ThreadPool) -> None:
        while True:
            await asyncio.wait_for(threads.run(divmod, 7, 2), HANGS_AFTER_S)

    for _ in range(200):
        threads = ThreadPool(2, "pair")
        stopping = asyncio.create_task(asyncio.to_thread(threads.shutdown))
        with pytest.raises(RuntimeError, match="after the end"):
            await call_until_shutdown(threads)
        await stopping
