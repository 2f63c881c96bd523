"""Calls a function until its value is complete."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from waypost.base.clock import SystemClock

Value = TypeVar("Value")

POLL_INTERVAL_S: Final = 0.1


async def poll(
    read: Callable[[], Awaitable[Value]],
    is_complete: Callable[[Value], object],
    within_s: float,
    interval_s: float = POLL_INTERVAL_S,
) -> Value:
    """Call `read` until its value is complete or the time has passed, and return the last value."""
    clock = SystemClock()
    deadline_ms = clock.now_ms() + within_s * 1000
    while True:
        value = await read()
        if is_complete(value) or clock.now_ms() >= deadline_ms:
            return value
        await asyncio.sleep(interval_s)
