"""The console as routes of the service; opened with the first page, closed before the doors."""

import asyncio

from starlette.routing import Route

from waypost.console.around import Around
from waypost.console.desk import Desk
from waypost.console.guard import cookie_name, guarded
from waypost.console.parts import Parts
from waypost.console.routes import PAGES
from waypost.console.streams import Watch
from waypost.console.visit import Visit


class Console:
    """Pages for people.

    Args:
        parts: what endpoints use.
    """

    def __init__(self, parts: Parts) -> None:
        pulse = parts.pulse

        async def wait(mark: asyncio.Event, rest_s: float, at_least_s: float) -> None:
            await pulse.next(mark, rest_s=rest_s, at_least_s=at_least_s)

        async def is_signed_in(visit: Visit) -> bool:
            token = visit.request.cookies.get(cookie_name(self.desk), "")
            return await parts.sessions.find(token) is not None

        self.parts = parts
        watch = Watch(pulse.watch, pulse.mark, wait, lambda: pulse.is_closing, is_signed_in)
        self.desk = Desk(parts, watch, Around(parts.doors.control, parts.clock))

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/static/{digest}/{path:path}", self.parts.assets.show, methods=["GET"]),
            *(Route(row.path, guarded(row, self.desk), methods=[row.method]) for row in PAGES),
        ]

    def end_streams(self) -> None:
        """Doors are about to close: whoever looks at something live connects again later."""
        self.parts.pulse.close()
