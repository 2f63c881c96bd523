"""Services and common responses for every endpoint of the console."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import HTMLResponse, Response

from waypost.console import rendering
from waypost.console.page_context import Around, Shell
from waypost.console.services import Parts
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import Look, Piece, Watch, stream

SHELL: Final = "shell.html"


@dataclass(frozen=True, slots=True)
class PageTools:
    """First argument of every endpoint: services, streams and common responses."""

    parts: Parts
    watch: Watch
    around: Around

    async def page(self, visit: PageRequest, name: str, status: int = 200, **values: Any) -> Response:
        """Return a whole page with the layout."""
        shell = await self.shell()
        return self.parts.pages.answer(name, visit, status, shell=shell, **values)

    def fragment(self, visit: PageRequest, name: str, status: int = 200, **values: Any) -> Response:
        """Return a page fragment that has its own template file."""
        return HTMLResponse(self.parts.pages.render(name, visit, **values), status)

    def go(self, path: str, said: str = "", *, remedy: str = "", kind: str = "good") -> Response:
        """Redirect to a page after an action, with a notice."""
        return rendering.go(path, said=said, remedy=remedy, kind=kind, secure=self.parts.is_secure)

    def live(self, visit: PageRequest, look: Look, **pace: float) -> Response:
        """Return a live stream of the rendered elements and of the layout's badges."""

        async def render_all() -> Sequence[Piece]:
            return [*await look(), *await self._shell_pieces(visit)]

        return stream(visit, render_all, watch=self.watch, **pace)

    def administrates(self, visit: PageRequest) -> bool:
        """True if the user may change what all partners share; in a demo everybody may."""
        if self.parts.demo_partner_id is not None:
            return True
        return visit.session is not None and visit.session.administers_until_ms is not None

    async def shell(self) -> Shell:
        """Return the page context."""
        return await self.around.shell()

    async def _shell_pieces(self, visit: PageRequest) -> list[Piece]:
        shell = await self.around.lately()
        part = self.parts.pages.part
        return [
            Piece("shell-faults", part(SHELL, "faults_badge", visit, shell)),
            Piece("shell-clock", part(SHELL, "clock_badge", visit, shell)),
        ]
