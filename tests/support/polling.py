"""Waiting for states that send no notification."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

Value = TypeVar("Value")

HANGS_AFTER_S: Final = 120
"""After this time a wait fails; long enough for a busy machine."""


async def poll_until(
    read: Callable[[], Awaitable[Value]], is_so: Callable[[Value], object] = bool, *, within_s: float = HANGS_AFTER_S
) -> Value:
    """Call `read` until the condition holds of its result, and return the result.

    Raises:
        TimeoutError: the condition did not hold in time.
    """
    async with asyncio.timeout(within_s):
        while True:
            value = await read()
            if is_so(value):
                return value
            await asyncio.sleep(0.005)
