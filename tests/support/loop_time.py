"""The time of an event loop, which a test may let pass: what waits for a timeout does not take the time."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final
from weakref import WeakKeyDictionary

import pytest

_PASSED_S: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, float]] = WeakKeyDictionary()


def pass_time(seconds: float) -> None:
    """Let time pass for the timers of the running loop; those that are due run in its next turn."""
    loop = asyncio.get_running_loop()
    if loop not in _PASSED_S:
        _PASSED_S[loop] = 0
        pytest.MonkeyPatch().setattr(loop, "time", lambda: type(loop).time(loop) + _PASSED_S[loop])
    _PASSED_S[loop] += seconds
    loop.call_soon(lambda: None)  # a loop that waits for its next timer would not look at the time


@contextmanager
def time_passes(seconds: float, *, when: Callable[[], object]) -> Generator[None]:
    """Let time pass in this context whenever a condition holds; it is checked every few milliseconds."""

    async def watch() -> None:
        while True:
            if when():
                pass_time(seconds)
            await asyncio.sleep(0.005)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
