"""What every endpoint is given: the parts, and the answers that need several of them."""

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
    """Handed to every endpoint."""

    parts: Parts
    watch: Watch
    around: Around

    async def page(self, visit: PageRequest, name: str, status: int = 200, **values: Any) -> Response:
        """A whole page."""
        shell = await self.shell()
        return self.parts.pages.answer(name, visit, status, shell=shell, **values)

    def fragment(self, visit: PageRequest, name: str, status: int = 200, **values: Any) -> Response:
        """A part of a page that is a file of its own."""
        return HTMLResponse(self.parts.pages.render(name, visit, **values), status)

    def go(self, path: str, said: str = "", *, remedy: str = "", kind: str = "good") -> Response:
        """Lead on to a page after an act."""
        return rendering.go(path, said=said, remedy=remedy, kind=kind, secure=self.parts.is_secure)

    def live(self, visit: PageRequest, look: Look, **pace: float) -> Response:
        """A stream of what `look` shows, and of what stands around the page."""

        async def with_shell() -> Sequence[Piece]:
            return [*await look(), *await self._shell_pieces(visit)]

        return stream(visit, with_shell, watch=self.watch, **pace)

    def administrates(self, visit: PageRequest) -> bool:
        """True where the visitor may change what all partners share: at a demonstration everybody may."""
        if self.parts.demo_partner_id is not None:
            return True
        return visit.session is not None and visit.session.administers_until_ms is not None

    async def shell(self) -> Shell:
        """What stands around the page."""
        return await self.around.shell()

    async def _shell_pieces(self, visit: PageRequest) -> list[Piece]:
        shell = await self.around.lately()
        part = self.parts.pages.part
        return [
            Piece("shell-faults", part(SHELL, "faults_badge", visit, shell)),
            Piece("shell-clock", part(SHELL, "clock_badge", visit, shell)),
        ]
