"""Simulator state in the layout of every page: armed faults, and a clock that was moved."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any, Final

from waypost.base.clock import Clock
from waypost.client.api_client import ApiResponseError, ApiUnreachable
from waypost.console.api_clients import ControlClient

CONTEXT_TIMEOUT_S: Final = 2.0
"""A page does not wait longer for the simulator: it is shown without these badges."""
CONTEXT_CACHE_S: Final = 1.0
"""How long live streams share one reading."""


@dataclass(frozen=True, slots=True)
class PageContext:
    """State of the simulator that the layout shows on every page.

    Attributes:
        has_simulator: True if there are simulated phones.
        faults: armed faults as the control API returns them, each with `id`, `kind` and more.
        now_ms: time of the service's clock.
        rate: speed of that clock relative to real time; 0: stopped.
        ahead_ms: difference to the machine's time.
    """

    has_simulator: bool
    faults: list[dict[str, Any]]
    now_ms: int
    rate: float
    ahead_ms: int


class PageContextReader:
    """Reads the page context from the simulator; live streams share a reading for a second.

    Args:
        control: None without a simulator.
        clock: the service's clock.
    """

    def __init__(self, control: ControlClient | None, clock: Clock) -> None:
        self._control = control
        self._clock = clock
        self._cached: tuple[float, PageContext] | None = None

    async def read(self) -> PageContext:
        """Return the current page context."""
        now_ms = self._clock.now_ms()
        if self._control is None:
            return PageContext(False, [], now_ms, 1, 0)
        try:
            async with asyncio.timeout(CONTEXT_TIMEOUT_S):
                return await self._fetch(self._control, now_ms)
        except TimeoutError:
            return PageContext(True, [], now_ms, 1, 0)

    async def read_cached(self) -> PageContext:
        """Return a page context that is at most one second old."""
        cached = self._cached
        if cached is None or asyncio.get_running_loop().time() - cached[0] > CONTEXT_CACHE_S:
            return await self.read()
        return replace(cached[1], now_ms=self._clock.now_ms()) if self._control else cached[1]

    async def _fetch(self, control: ControlClient, now_ms: int) -> PageContext:
        try:
            listed = (await control.get("/control/faults"))["faults"]
            faults = [fault for fault in listed if fault["is_armed"]]  # spent ones are listed too
        except (ApiResponseError, ApiUnreachable):
            return PageContext(True, [], now_ms, 1, 0)
        try:
            clock = await control.get("/control/clock")
        except (ApiResponseError, ApiUnreachable):  # a simulator on its own may follow the machine's clock
            return PageContext(True, faults, now_ms, 1, 0)
        shell = PageContext(True, faults, clock["now_ms"], clock.get("factor", 1), clock.get("ahead_ms", 0))
        self._cached = (asyncio.get_running_loop().time(), shell)
        return shell
