"""The console as a route of the service; opened with the first page, closed before the doors."""

import asyncio
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from waypost.console.guard import cookie_name, guarded, not_allowed
from waypost.console.page_context import Around
from waypost.console.page_tools import PageTools
from waypost.console.services import Parts
from waypost.console.web.headers import SECURE
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import Watch

ANY: Final[tuple[str, ...]] = ()
"""Methods of a route that answers to all; None would be GET."""
_STATIC: Final = "/static/{digest}/{path:path}"
_FOUND: Final = "waypost.console.route"


class Console:
    """Pages for people.

    Args:
        parts: what endpoints use.
    """

    def __init__(self, parts: Parts) -> None:
        pulse = parts.pulse

        async def wait(mark: asyncio.Event, rest_s: float, at_least_s: float) -> None:
            await pulse.next(mark, rest_s=rest_s, at_least_s=at_least_s)

        async def is_signed_in(visit: PageRequest) -> bool:
            token = visit.request.cookies.get(cookie_name(self.desk), "")
            return await parts.sessions.find(token) is not None

        self.parts = parts
        watch = Watch(pulse.watch, pulse.mark, wait, lambda: pulse.is_closing, is_signed_in)
        self.desk = PageTools(parts, watch, Around(parts.apis.control, parts.clock))

    def route(self) -> BaseRoute:
        """All of its addresses as one route; to be asked last, because its first look makes them."""
        return _LateRoutes(self._routes)

    def _routes(self) -> list[Route]:
        """All of them; last those that say, on a page, what an address does not take, or that nothing is there."""
        from waypost.console.routes import LOST, PAGES  # here: every page, 60 ms of each start

        taken = [Route(row.path, guarded(row, self.desk), methods=[row.method]) for row in PAGES if row not in LOST]

        def allowed_at(request: Request) -> set[str]:
            return _methods(taken, request)

        return [
            Route(_STATIC, self.parts.assets.show, methods=["GET"]),
            Route(_STATIC, _no_such_method, methods=ANY),
            *taken,
            *(
                Route(path, not_allowed(path, allowed_at, self.desk), methods=ANY)
                for path in dict.fromkeys(route.path for route in taken)
            ),
            *(Route(row.path, guarded(row, self.desk), methods=ANY) for row in LOST),
        ]

    def end_streams(self) -> None:
        """Doors are about to close: whoever looks at something live connects again later."""
        self.parts.pulse.close()


class _LateRoutes(BaseRoute):
    """Several routes that are made when an address is first looked for among them.

    The console has some three hundred, which took a seventh of the time in which a service is put together,
    and a process that only carries messages never shows a page.

    Args:
        make: makes them.
    """

    def __init__(self, make: Callable[[], Sequence[Route]]) -> None:
        self._make = make

    @cached_property
    def _routes(self) -> Sequence[Route]:
        return self._make()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """How well the best of them fits; the first of those that fit alike."""
        best, found = Match.NONE, dict[str, Any]()
        for route in self._routes:
            match, inner = route.matches(scope)
            if match.value > best.value:
                best, found = match, {**inner, _FOUND: route}
            if match is Match.FULL:
                break
        return best, found

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer by the one that was found."""
        await scope[_FOUND].handle(scope, receive, send)


def _methods(routes: Sequence[Route], request: Request) -> set[str]:
    """The methods of all routes at the address of a request."""
    there = [one for one in routes if one.matches(request.scope)[0] is not Match.NONE]
    return {method for one in there for method in one.methods or ()}


async def _no_such_method(request: Request) -> Response:
    del request
    told = {**SECURE, "Allow": "GET, HEAD"}
    return Response("Files are read by GET.", 405, told, media_type="text/plain")
