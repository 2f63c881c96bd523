"""Time that passes for a service under test, in steps."""

import asyncio
from collections.abc import Callable
from typing import Final

from tests.support.manual_clock import ManualClock
from tests.support.polling import HANGS_AFTER_S
from waypost.assembly.service import Waypost

_TURNS: Final = 20
"""Turns of the event loop within which every wait that ended has begun its work."""


async def advance_until(clock: ManualClock, waypost: Waypost, is_so: Callable[[], bool], *, step_ms: int) -> None:
    """Advance a manual clock in steps until the condition holds.

    Before each step the service finishes what is due, however slow the machine is: a step longer than a lease, with an
    attempt in flight, would make that attempt count as cut short.
    """
    async with asyncio.timeout(HANGS_AFTER_S):
        while not is_so():
            clock.advance(ms=step_ms)
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            while waypost.busy and not is_so():  # noqa: ASYNC110  what it waits for has no event
                await asyncio.sleep(0.005)
