"""Threads as greenlets: a plain function can wait, while the loop, in the same thread, takes other steps.

A greenlet that waits is resumed at a step of the loop, which the scheduler chooses as any other.
"""

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable
from queue import Empty
from typing import Any

from greenlet import getcurrent, greenlet

_asleep: set[greenlet] = set()
"""Those of a killed process stay here: one that is collected would run its `finally`."""
_idle: list["_Worker"] = []
"""Those whose work has ended; a new one would get new memory for its frames from the kernel."""


class _Worker(greenlet):
    """A greenlet that works one function after the other.

    Attributes:
        callbacks: runs those of its thread in their order; None: at any step.
    """

    callbacks: Any = None

    def run(  # pyright: ignore[reportIncompatibleMethodOverride]  its type says that it is a property
        self, work: Callable[..., Any], args: tuple[Any, ...]
    ) -> None:
        """Work until the process ends; each switch to it brings work, each from it the error, if there was one."""
        while True:
            error: BaseException | None = None
            try:
                work(*args)
            except BaseException as raised:  # noqa: BLE001  raised again in the loop
                error = raised
            self.callbacks = None
            _idle.append(self)
            del work, args
            loop: Any = self.parent
            work, args = loop.switch(error)


def start(work: Callable[..., Any], *args: Any) -> None:
    """Run a function in a greenlet until it waits for the first time, or ends."""
    worker = _idle.pop() if _idle else _Worker()
    worker.gr_context = contextvars.copy_context()
    _run(worker, work, args)


def _run(worker: greenlet, *brought: Any) -> None:
    """Run a greenlet until it waits or ends its work; raise the error of its work."""
    error = worker.switch(*brought)
    if error:
        raise error


def in_greenlet() -> bool:
    """Return True if the running function may wait: it is not a step of the loop itself."""
    return getcurrent().parent is not None


def pause() -> None:
    """Let the loop take other steps; in a step of the loop itself do nothing."""
    if in_greenlet():
        wait = _Wait()
        wait.schedule(True)
        wait.sleep()


def abandon() -> None:
    """Never return: the process of the running greenlet was killed. In a step of the loop itself do nothing."""
    current = getcurrent()
    if current.parent is not None:
        _asleep.add(current)
        current.parent.switch()


class _Wait:
    """One wait of the running greenlet."""

    def __init__(self) -> None:
        current = getcurrent()
        if current.parent is None:
            raise RuntimeError("a step of the loop cannot wait")
        self._greenlet, self._loop = current, current.parent
        self._context = contextvars.copy_context()  # a killed process's is never run again
        self._is_over = False

    def schedule(self, result: bool) -> None:
        asyncio.get_running_loop().call_soon(self._resume, result, context=self._context)

    def schedule_after(self, delay_s: float) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(delay_s, self._resume, False, context=self._context)

    def sleep(self) -> bool:
        _asleep.add(self._greenlet)
        return self._loop.switch()

    def _resume(self, result: bool) -> None:
        if not self._is_over:
            self._is_over = True
            _asleep.remove(self._greenlet)
            _run(self._greenlet, result)


class Condition:
    """Greenlets that wait until somebody wakes them."""

    def __init__(self) -> None:
        self._waits: list[_Wait] = []

    def wait(self, timeout_s: float | None = None) -> bool:
        """Return True when woken, False after the timeout, in virtual seconds."""
        wait = _Wait()
        self._waits.append(wait)
        timer = None if timeout_s is None else wait.schedule_after(timeout_s)
        result = wait.sleep()
        if timer is not None:
            timer.cancel()
        if wait in self._waits:  # otherwise it was woken, and the timer came first
            self._waits.remove(wait)
        return result

    def wake(self) -> None:
        """Wake all that wait now."""
        waits, self._waits = self._waits, []
        for wait in waits:
            wait.schedule(True)


class GreenThread:
    """`threading.Thread`."""

    def __init__(self, *, target: Callable[[], Any], name: str = "", daemon: bool = True) -> None:
        del name, daemon
        self._work = target
        self._has_ended = False
        self._ended = Condition()

    def start(self) -> None:
        """Begin at a later step."""
        asyncio.get_running_loop().call_soon(start, self._run)

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        if not self._has_ended:
            self._ended.wait(timeout)

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self._has_ended = True
            self._ended.wake()


class GreenEvent(Condition):
    """`threading.Event`."""

    def __init__(self) -> None:
        super().__init__()
        self._is_set = False

    def is_set(self) -> bool:
        """Return True once it was set."""
        return self._is_set

    def set(self) -> None:
        """Set it."""
        self._is_set = True
        self.wake()

    def wait(self, timeout: float | None = None) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return True when it is set, False after the timeout."""
        return self._is_set or super().wait(timeout)


class GreenQueue:
    """`queue.SimpleQueue`."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._added = Condition()

    def put(self, item: Any) -> None:
        """Add an item."""
        self._items.append(item)
        self._added.wake()

    def get(self) -> Any:
        """Return the oldest item, when there is one."""
        while not self._items:
            self._added.wait()
        return self._items.popleft()

    def get_nowait(self) -> Any:
        """Return the oldest item; raise `Empty` if there is none."""
        if not self._items:
            raise Empty
        return self._items.popleft()

    def empty(self) -> bool:
        """Return True if there is no item."""
        return not self._items

    def qsize(self) -> int:
        """Return the number of items."""
        return len(self._items)
