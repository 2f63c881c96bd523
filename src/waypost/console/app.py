"""The console as one route of the service; its pages are loaded with the first request."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from waypost.console.guard import guard_endpoint, method_not_allowed
from waypost.console.page_tools import PageContextReader, PageTools
from waypost.console.services import ConsoleServices
from waypost.console.web.assets import SECURITY_HEADERS
from waypost.console.web.streams import StreamRunner

ANY_METHOD: Final[tuple[str, ...]] = ()
"""Methods of a route that accepts every method; None would mean GET."""
_STATIC: Final = "/static/{digest}/{path:path}"
_MATCHED_ROUTE: Final = "waypost.console.route"


class Console:
    """Web pages for people."""

    def __init__(self, services: ConsoleServices) -> None:
        signal = services.change_signal

        async def wait(mark: asyncio.Event, rest_s: float, at_least_s: float) -> None:
            await signal.wait(mark, rest_s=rest_s, at_least_s=at_least_s)

        async def is_signed_in(request: Request) -> bool:
            return await services.sessions.find(request.cookies.get(services.session_cookie, "")) is not None

        self.services = services
        watch = StreamRunner(signal.listen, signal.next_event, wait, lambda: signal.is_closing, is_signed_in)
        self.tools = PageTools(services, watch, PageContextReader(services.apis.control, services.clock))

    def route(self) -> BaseRoute:
        """Return all pages as one route. Mount it last: its first lookup builds the pages."""
        return _LazyRoutes(self._routes)

    def _routes(self) -> list[Route]:
        """Return all routes; last the pages for a wrong method and for an unknown path."""
        from waypost.console.routes import (  # here: 60 ms of each start
            ELSEWHERE,
            NOT_FOUND_ROUTES,
            PAGES,
            SECTIONS,
            TABLE,
        )

        self.tools = replace(self.tools, table=TABLE)
        self.services.pages.add_globals(sections={section.name: section for section in SECTIONS})
        pages = [
            Route(row.path, guard_endpoint(row, self.tools), methods=[row.method])
            for row in PAGES
            if row not in NOT_FOUND_ROUTES
        ]

        def allowed_at(request: Request) -> set[str]:
            matches = [route for route in pages if route.matches(request.scope)[0] is not Match.NONE]
            return {method for route in matches for method in route.methods or ()}

        return [
            Route(_STATIC, self.services.assets.serve, methods=["GET"]),
            Route(_STATIC, _reject_static_method, methods=ANY_METHOD),
            *pages,
            *(
                Route(path, method_not_allowed(path, allowed_at, self.tools), methods=ANY_METHOD)
                for path in dict.fromkeys(route.path for route in pages)
            ),
            *(Route(row.path, guard_endpoint(row, self.tools), methods=ANY_METHOD) for row in NOT_FOUND_ROUTES),
            _BrowserRoute(ELSEWHERE.path, guard_endpoint(ELSEWHERE, self.tools)),
        ]

    def end_streams(self) -> None:
        """End live streams because the service is stopping; browsers reconnect later."""
        self.services.change_signal.close()


class _BrowserRoute(Route):
    """A route for browsers only; another client gets the service's JSON error."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return how well the route matches: not at all unless the client accepts HTML."""
        is_page = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        if not is_page or "text/html" not in Headers(scope=scope).get("accept", ""):
            return Match.NONE, {}
        return super().matches(scope)


class _LazyRoutes(BaseRoute):
    """Routes that are built when the first request is matched against them.

    The console has some three hundred. Building them took a seventh of a service's start time, and a process
    that only sends messages never shows a page.
    """

    def __init__(self, make: Callable[[], Sequence[Route]]) -> None:
        self._make = make

    @cached_property
    def _routes(self) -> Sequence[Route]:
        return self._make()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return the best match and its scope; the first route wins among equal matches."""
        best, best_scope = Match.NONE, dict[str, Any]()
        for route in self._routes:
            match, inner = route.matches(scope)
            if match.value > best.value:
                best, best_scope = match, {**inner, _MATCHED_ROUTE: route}
            if match is Match.FULL:
                break
        return best, best_scope

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request with the matched route."""
        await scope[_MATCHED_ROUTE].handle(scope, receive, send)


async def _reject_static_method(_request: Request) -> Response:
    headers = {**SECURITY_HEADERS, "Allow": "GET, HEAD"}
    return Response("Method not allowed. Use GET.", 405, headers, media_type="text/plain")
