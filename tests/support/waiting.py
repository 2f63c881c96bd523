"""Waiting for what nobody tells us of."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from waypost.base.clock import Clock

Found = TypeVar("Found")

HANGS_AFTER_S: Final = 120
"""A state that has not come after so long does not come, however busy the machine is."""


async def patiently(
    ask: Callable[[], Awaitable[Found]], is_so: Callable[[Found], object] = bool, *, within_s: float = HANGS_AFTER_S
) -> Found:
    """Ask again and again until the answer will do, and give it.

    Raises:
        TimeoutError: it did not in time.
    """
    async with asyncio.timeout(within_s):
        while True:
            found = await ask()
            if is_so(found):
                return found
            await asyncio.sleep(0.005)


async def next_second(clock: Clock) -> None:
    """The operator's news has whole seconds, and the same news of one second is one: wait for the next."""
    await asyncio.sleep(1 - clock.now_ms() % 1000 / 1000)
