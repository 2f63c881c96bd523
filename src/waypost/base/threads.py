"""Threads that run plain functions for the loop.

The pool of the standard library guards a count of idle threads by a lock of its own, and makes a
future with a condition for each call. A worker that has that lock and waits for the interpreter stops
the loop, which waits for the lock: that took a tenth of the street's processor time. Here a call is one
put to a queue, and its result one call back to the loop.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

Result = TypeVar("Result")


class Executor(Protocol):
    """Runs functions elsewhere; what they give is not waited for."""

    def submit(self, work: Callable[..., Any], /, *args: Any) -> object:
        """Run it, after what was submitted before."""
        ...


class Threads:
    """So many threads, which take the oldest call that waits; begun with the first call.

    Args:
        count: how many.
        name: how the threads' names begin.
    """

    def __init__(self, count: int, name: str) -> None:
        self._count = count
        self._name = name
        self._calls: SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._is_down = False
        self._door = threading.Lock()  # no thread waits for it: only whoever submits, and the end

    def submit(self, work: Callable[..., Any], /, *args: Any) -> None:
        """Run it, after what was submitted before; it may not raise."""
        with self._door:
            if self._is_down:
                raise RuntimeError("no calls are taken after the end")
            if not self._threads:
                self._begin()
            self._calls.put((work, args))

    def run(self, work: Callable[..., Result], *args: Any) -> "asyncio.Future[Result]":
        """Run it; the future, of the running loop, has what it gives or raises."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self.submit(_run, loop, future, work, args)
        return future

    def shutdown(self) -> None:
        """Return when every call has been run; may be called from a thread beside the loop's."""
        with self._door:
            self._is_down = True
            threads, self._threads = self._threads, []
            for _ in threads:
                self._calls.put(None)
        for thread in threads:
            thread.join()

    def _begin(self) -> None:
        for nth in range(self._count):
            thread = threading.Thread(target=self._work, name=f"{self._name}_{nth}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            work, args = call
            work(*args)
            del call, work, args  # nothing is kept alive until the next call


def _run(
    loop: asyncio.AbstractEventLoop, future: "asyncio.Future[Any]", work: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    try:
        result, error = work(*args), None
    except BaseException as raised:  # noqa: BLE001  it is the caller's
        result, error = None, raised
    with suppress(RuntimeError):  # the loop has ended: nobody waits
        loop.call_soon_threadsafe(_tell, future, result, error)


def _tell(future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
    if future.done():  # its caller went away
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
