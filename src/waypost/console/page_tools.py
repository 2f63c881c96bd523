"""Parts of the console that all requests share: services, streams, commands, and the simulator in the layout."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from waypost.base.clock import Clock
from waypost.client.api_client import ApiResponseError, ApiUnreachable
from waypost.console.api_clients import ControlClient
from waypost.console.services import ConsoleServices
from waypost.console.web.streams import StreamRunner

CONTEXT_TIMEOUT_S: Final = 2.0
"""A page does not wait longer for the simulator: it is shown without these badges."""
CONTEXT_CACHE_S: Final = 1.0
"""How long live streams share one reading."""


@dataclass(frozen=True, slots=True)
class PageContext:
    """State of the simulator that the layout shows on every page."""

    has_simulator: bool  # True if there are simulated phones
    faults: list[dict[str, Any]]  # armed faults as the control API returns them, each with `id`, `kind` and more
    now_ms: int  # time of the service's clock
    rate: float = 1  # speed of that clock relative to real time; 0: stopped
    ahead_ms: int = 0  # difference to the machine's time


class PageContextReader:
    """Reads the page context from the simulator; live streams share a reading for a second.

    Args:
        control: None without a simulator.
    """

    def __init__(self, control: ControlClient | None, clock: Clock) -> None:
        self._control = control
        self._clock = clock
        self._cached: tuple[float, PageContext] | None = None

    async def read(self) -> PageContext:
        """Return the current page context; without badges if the simulator does not respond in time."""
        shell = PageContext(self._control is not None, [], self._clock.now_ms())
        if self._control is None:
            return shell
        with contextlib.suppress(ApiResponseError, ApiUnreachable, TimeoutError):
            async with asyncio.timeout(CONTEXT_TIMEOUT_S):
                listed = (await self._control.call("GET /control/faults"))["faults"]
                faults = [fault for fault in listed if fault["is_armed"]]  # spent ones are listed too
                shell = replace(shell, faults=faults)
                clock = await self._control.call("GET /control/clock")  # one on its own may follow the machine's clock
                shell = PageContext(True, faults, clock["now_ms"], clock.get("factor", 1), clock.get("ahead_ms", 0))
                self._cached = (asyncio.get_running_loop().time(), shell)
        return shell

    async def read_cached(self) -> PageContext:
        """Return a page context that is at most one second old."""
        cached = self._cached
        if cached is None or asyncio.get_running_loop().time() - cached[0] > CONTEXT_CACHE_S:
            return await self.read()
        return replace(cached[1], now_ms=self._clock.now_ms())


@dataclass(frozen=True, slots=True)
class Command:
    """One page to open, or one action."""

    name: str  # displayed and searched text
    section: str  # part of the console that it belongs to
    path: str  # of the page or action; `{app_id}` stands for the current app
    posts: Mapping[str, str] | None = None  # form fields of an action; None for a page
    stays: bool = False  # True if the open page stays and shows a notice
    confirmation: str = ""  # question to confirm first; empty: none


def action_command(
    name: str, section: str, path: str, *, stays: bool = True, confirmation: str = "", **fields: str
) -> Command:
    """Return a command that runs an action."""
    return Command(name, section, path, fields, stays, confirmation)


@dataclass(frozen=True, slots=True)
class PageTable:
    """Commands of the palette and texts of the audit log, from the table of pages."""

    commands: Sequence[Command]
    audited_actions: Mapping[str, str]  # what each did, by method and path template


@dataclass(frozen=True, slots=True)
class PageTools:
    """Parts that all requests share."""

    services: ConsoleServices
    stream_runner: StreamRunner
    context_reader: PageContextReader
    table: PageTable = PageTable((), {})
