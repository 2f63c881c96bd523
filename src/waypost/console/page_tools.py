"""Services and common responses for every endpoint of the console."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import HTMLResponse, Response

from waypost.console import rendering
from waypost.console.page_context import PageContext, PageContextReader
from waypost.console.services import ConsoleServices
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import ElementRenderer, PageElement, StreamRunner, stream_elements

SHELL_MACROS: Final = "shell.html"


@dataclass(frozen=True, slots=True)
class PageTools:
    """First argument of every endpoint: services, streams and common responses."""

    services: ConsoleServices
    stream_runner: StreamRunner
    context_reader: PageContextReader

    async def page(self, page_request: PageRequest, name: str, status: int = 200, **values: Any) -> Response:
        """Return a whole page with the layout."""
        shell = await self.page_context()
        shown = {"is_administrator": self.is_administrator(page_request), **values}
        return self.services.pages.respond(name, page_request, status, shell=shell, **shown)

    def fragment(self, page_request: PageRequest, name: str, status: int = 200, **values: Any) -> Response:
        """Return a page fragment that has its own template file."""
        return HTMLResponse(self.services.pages.render(name, page_request, **values), status)

    def redirect(self, path: str, notice: str = "", *, hint: str = "", kind: str = "good") -> Response:
        """Redirect to a page after an action, with a notice."""
        return rendering.redirect(path, notice=notice, hint=hint, kind=kind, secure=self.services.is_secure)

    def live(self, page_request: PageRequest, render: ElementRenderer, **pace: float) -> Response:
        """Return a live stream of the rendered elements and of the layout's badges."""

        async def render_all() -> Sequence[PageElement]:
            return [*await render(), *await self._badge_elements(page_request)]

        return stream_elements(page_request, render_all, runner=self.stream_runner, **pace)

    def is_administrator(self, page_request: PageRequest) -> bool:
        """True if the user may change what all partners share; in a demo everybody may."""
        if self.services.demo_partner_id is not None:
            return True
        return page_request.session is not None and page_request.session.admin_until_ms is not None

    async def page_context(self) -> PageContext:
        """Return the page context."""
        return await self.context_reader.read()

    async def _badge_elements(self, page_request: PageRequest) -> list[PageElement]:
        shell = await self.context_reader.read_cached()
        part = self.services.pages.render_macro
        return [
            PageElement("shell-faults", part(SHELL_MACROS, "faults_badge", page_request, shell)),
            PageElement("shell-clock", part(SHELL_MACROS, "clock_badge", page_request, shell)),
        ]
