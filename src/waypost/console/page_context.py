"""What stands around every page: armed faults, and a clock that somebody has moved."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any, Final

from waypost.base.clock import Clock
from waypost.client.api_client import ApiResponseError, NotReached
from waypost.console.api_clients import Control

WITHIN_S: Final = 2.0
"""A simulator that does not answer holds no page up: then nothing stands around it."""
FRESH_S: Final = 1.0
"""How long streams may show what another one has just asked for."""


@dataclass(frozen=True, slots=True)
class Shell:
    """What stands around every page.

    Attributes:
        has_simulator: whether there are phones.
        faults: armed ones, each with `id`, `kind` and more as the control door shows them.
        now_ms: by the clock that rules follow.
        rate: how many times as fast as real time it runs; 0 stands still.
        ahead_ms: of the machine's time.
    """

    has_simulator: bool
    faults: list[dict[str, Any]]
    now_ms: int
    rate: float
    ahead_ms: int


class Around:
    """Asks the simulator what stands around pages; streams share an answer for a second.

    Args:
        control: None where there is no simulator.
        clock: what rules follow.
    """

    def __init__(self, control: Control | None, clock: Clock) -> None:
        self._control = control
        self._clock = clock
        self._known: tuple[float, Shell] | None = None

    async def shell(self) -> Shell:
        """As it is now."""
        now_ms = self._clock.now_ms()
        if self._control is None:
            return Shell(False, [], now_ms, 1, 0)
        try:
            async with asyncio.timeout(WITHIN_S):
                return await self._asked(self._control, now_ms)
        except TimeoutError:
            return Shell(True, [], now_ms, 1, 0)

    async def lately(self) -> Shell:
        """As it was within the last second."""
        known = self._known
        if known is None or asyncio.get_running_loop().time() - known[0] > FRESH_S:
            return await self.shell()
        return replace(known[1], now_ms=self._clock.now_ms()) if self._control else known[1]

    async def _asked(self, control: Control, now_ms: int) -> Shell:
        try:
            known = (await control.get("/control/faults"))["faults"]
            faults = [one for one in known if one["is_armed"]]  # spent ones are listed too
        except (ApiResponseError, NotReached):
            return Shell(True, [], now_ms, 1, 0)
        try:
            clock = await control.get("/control/clock")
        except (ApiResponseError, NotReached):  # one that stands alone may follow the machine's
            return Shell(True, faults, now_ms, 1, 0)
        shell = Shell(True, faults, clock["now_ms"], clock.get("factor", 1), clock.get("ahead_ms", 0))
        self._known = (asyncio.get_running_loop().time(), shell)
        return shell
