"""Threads that run plain functions for the event loop.

The pool of the standard library protects a count of idle threads by a lock, and creates a future with
a condition for each call. A worker that has the lock and waits for the interpreter blocks the loop,
which waits for the lock: that cost a tenth of the pipeline's processor time. Here a call is one put to
a queue, and its result one callback to the loop.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

CallReturn = TypeVar("CallReturn")


class Executor(Protocol):
    """Runs functions on another thread; their results are ignored."""

    def submit(self, work: Callable[..., Any], /, *args: Any) -> object:
        """Run the function after those submitted before."""
        ...


class ThreadPool:
    """A fixed number of threads that run the oldest waiting call; started with the first call.

    Args:
        closed_error: the class of the error of a call after `shutdown`.
    """

    def __init__(self, count: int, name: str, closed_error: type[Exception] = RuntimeError) -> None:
        self._count = count
        self._closed_error = closed_error
        self._name = name
        self._calls: SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        self._lock = threading.Lock()  # the threads never wait for it: only `submit` and `shutdown` do

    def submit(self, work: Callable[..., Any], /, *args: Any) -> None:
        """Run the function after those submitted before; it must not raise."""
        with self._lock:
            if self._is_closed:
                raise self._closed_error("no calls are taken after the end")
            for index in range(0 if self._threads else self._count):
                thread = threading.Thread(target=self._work, name=f"{self._name}_{index}", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._calls.put((work, args))

    def run(self, work: Callable[..., CallReturn], *args: Any) -> "asyncio.Future[CallReturn]":
        """Run the function; the future, of the running loop, gets its result or exception."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[CallReturn] = loop.create_future()
        self.submit(_run, loop, future, work, args)
        return future

    def shutdown(self) -> None:
        """Return when every call has been run; may be called from a thread other than the loop's."""
        with self._lock:
            self._is_closed = True
            threads, self._threads = self._threads, []
            for _ in threads:
                self._calls.put(None)
        for thread in threads:
            thread.join()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            work, args = call
            work(*args)
            del call, work, args  # keeps nothing alive until the next call


def _run(
    loop: asyncio.AbstractEventLoop, future: "asyncio.Future[Any]", work: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    try:
        result, error = work(*args), None
    except BaseException as raised:  # noqa: BLE001  passed to the caller
        result, error = None, raised
    with suppress(RuntimeError):  # the loop has ended: no caller waits
        loop.call_soon_threadsafe(_resolve_future, future, result, error)
    del future, work, args, result, error  # the traceback of an error refers to this frame: a cycle otherwise


def _resolve_future(future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
    if future.done():  # its caller was cancelled
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
