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

    Before each step, the first too, the service finishes what is due, however slow the machine is: a time limit of
    what is in flight would otherwise pass with the step.
    """
    async with asyncio.timeout(HANGS_AFTER_S):
        while True:
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            while waypost.busy and not is_so():  # noqa: ASYNC110  what it waits for has no event
                await asyncio.sleep(0.005)
            if is_so():
                return
            clock.advance(ms=step_ms)
