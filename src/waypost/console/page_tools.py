"""Simulator state in the layout of every page: armed faults, and a clock that was moved."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from starlette.responses import HTMLResponse, Response

from waypost.base.clock import Clock
from waypost.client.api_client import ApiResponseError, ApiUnreachable
from waypost.console import rendering
from waypost.console.api_clients import ControlClient
from waypost.console.services import ConsoleServices
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import ElementRenderer, PageElement, StreamRunner
from waypost.store.database import StoreResult

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


SHELL_MACROS: Final = "shell.html"


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
    """Navigation, tabs, commands and texts that pages take from the table of pages.

    Attributes:
        tabs: by the section's name: group, label and path of each tab.
        audited_actions: what each action did, by method and path template.
    """

    navigation: Sequence[tuple[str, str, str, str]] = ()  # name, label, path and condition of each section
    tabs: Mapping[str, Sequence[tuple[str, str, str]]] = field(
        default_factory=dict[str, Sequence[tuple[str, str, str]]]
    )
    commands: Sequence[Command] = ()  # of the palette
    audited_actions: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class PageTools:
    """First argument of every endpoint: services, streams and common responses."""

    services: ConsoleServices
    stream_runner: StreamRunner
    context_reader: PageContextReader
    table: PageTable = PageTable()

    async def page(self, page_request: PageRequest, name: str, status: int = 200, **values: Any) -> Response:
        """Return a whole page with the layout."""
        shell, is_demo = await self.context_reader.read(), self.services.demo_partner_id is not None
        shown = {"is_administrator": self.is_administrator(page_request), "is_demo": is_demo, **values}
        return self.services.pages.respond(name, page_request, status, shell=shell, **shown)

    def read_own(
        self, page_request: PageRequest, query: Callable[..., StoreResult], *args: Any
    ) -> Awaitable[StoreResult]:
        """Read what belongs to the app in the path: the ids of its partner and the app precede the other arguments."""
        return self.services.database.read(query, page_request.partner.id, page_request.app.id, *args)

    def fragment(self, page_request: PageRequest, name: str, status: int = 200, **values: Any) -> Response:
        """Return a page fragment that has its own template file."""
        return HTMLResponse(self.services.pages.render(name, page_request, **values), status)

    def redirect(self, path: str, notice: str = "", *, hint: str = "", kind: str = "good") -> Response:
        """Redirect to a page after an action, with a notice."""
        return rendering.redirect(path, notice=notice, hint=hint, kind=kind, secure=self.services.is_secure)

    def set_cookie(
        self, response: Response, name: str, value: str, max_age_s: int = 31_536_000, *, httponly: bool = True
    ) -> None:
        """Set a cookie of the console, by default for a year."""
        secure = self.services.is_secure
        response.set_cookie(name, value, max_age_s, path="/", httponly=httponly, samesite="lax", secure=secure)

    def live(self, page_request: PageRequest, render: ElementRenderer, **pace: float) -> Response:
        """Return a live stream of the rendered elements and of the layout's badges."""

        async def render_all() -> Sequence[PageElement]:
            return [*await render(), *await self._badge_elements(page_request)]

        return self.stream_runner.respond(page_request, render_all, **pace)

    def is_administrator(self, page_request: PageRequest) -> bool:
        """True if the user may change what all partners share; in a demo everybody may."""
        if self.services.demo_partner_id is not None:
            return True
        return page_request.session is not None and page_request.session.admin_until_ms is not None

    async def _badge_elements(self, page_request: PageRequest) -> list[PageElement]:
        shell = await self.context_reader.read_cached()
        part = self.services.pages.render_macro
        return [
            PageElement("shell-faults", part(SHELL_MACROS, "faults_badge", page_request, shell)),
            PageElement("shell-clock", part(SHELL_MACROS, "clock_badge", page_request, shell)),
        ]
