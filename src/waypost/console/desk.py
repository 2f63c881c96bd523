"""What every endpoint is given: the parts, and the answers that need several of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from waypost.client.door import DoorRefused, NotReached
from waypost.console import pages
from waypost.console.parts import Parts
from waypost.console.streams import Look, Piece, Watch, stream
from waypost.console.visit import Visit

SHELL: Final = "shell.html"


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


@dataclass(frozen=True, slots=True)
class Desk:
    """Handed to every endpoint."""

    parts: Parts
    watch: Watch

    async def page(self, visit: Visit, name: str, status: int = 200, **values: Any) -> Response:
        """A whole page."""
        shell = await self.shell()
        return self.parts.pages.answer(name, visit, status, shell=shell, **values)

    def fragment(self, visit: Visit, name: str, status: int = 200, **values: Any) -> Response:
        """A part of a page that is a file of its own."""
        from starlette.responses import HTMLResponse

        return HTMLResponse(self.parts.pages.render(name, visit, **values), status)

    def go(self, path: str, said: str = "", *, remedy: str = "", kind: str = "good") -> Response:
        """Lead on to a page after an act."""
        return pages.go(path, said=said, remedy=remedy, kind=kind, secure=self.parts.is_secure)

    def live(self, visit: Visit, look: Look, **pace: float) -> Response:
        """A stream of what `look` shows, and of what stands around the page."""

        async def with_shell() -> Sequence[Piece]:
            return [*await look(), *await self._shell_pieces(visit)]

        return stream(visit, with_shell, watch=self.watch, **pace)

    async def shell(self) -> Shell:
        """What stands around the page: read from the simulator where there is one."""
        parts = self.parts
        control = parts.doors.control
        if control is None:
            return Shell(False, [], parts.clock.now_ms(), 1, 0)
        try:
            faults = (await control.get("/control/faults"))["faults"]
            clock = await control.get("/control/clock")
        except (DoorRefused, NotReached):
            return Shell(True, [], parts.clock.now_ms(), 1, 0)
        return Shell(
            True, faults, clock["now_ms"], clock.get("factor", 1), clock.get("ahead_ms", 0)
        )

    async def _shell_pieces(self, visit: Visit) -> list[Piece]:
        shell = await self.shell()
        part = self.parts.pages.part
        return [
            Piece("shell-faults", part(SHELL, "faults_badge", visit, shell)),
            Piece("shell-clock", part(SHELL, "clock_badge", visit, shell)),
        ]
