"""A partner's receiver of callbacks: a real HTTP server that records every request and responds as configured."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from crashes.processes import free_port
from tests.support.polling import HANGS_AFTER_S

Callback = dict[str, Any]
StatusChooser = Callable[["ReceivedCallback"], int]
MAX_RECEIVED_BYTES = 8 * 1024 * 1024
"""More than the operator sends in one webhook: one part of a history may have 3 MB."""


@dataclass(frozen=True)
class ReceivedCallback:
    """One request as received, and the status of its response."""

    body: bytes
    headers: dict[str, str]
    path: str
    status: int = 0

    @property
    def value(self) -> Callback:
        return json.loads(self.body)

    @property
    def callback_id(self) -> str:
        return self.headers["Waypost-Callback-Id"]

    @property
    def sequence(self) -> int:
        return int(self.headers["Waypost-Sequence"])


def respond_always(status: int) -> StatusChooser:
    """Respond to every request with one status."""
    return lambda _: status


def respond_in_turn(*statuses: int) -> StatusChooser:
    """Respond with these statuses, one per request, and with the last one from then on."""
    remaining = list(statuses)
    return lambda _: remaining.pop(0) if len(remaining) > 1 else remaining[0]


class CallbackSink:
    """Records requests in the order in which they arrive.

    Attributes:
        requests: every request, whatever its response.
        choose_status: returns the status for a request.
        choose_headers: returns the headers of its response.
        gate: responses wait until it is set.
    """

    def __init__(self) -> None:
        self.requests: list[ReceivedCallback] = []
        self.choose_status: StatusChooser = respond_always(200)
        self.choose_headers: Callable[[ReceivedCallback], dict[str, str]] = lambda _: {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.port = free_port()  # below the ephemeral ports: no outgoing connection gets it while it is closed
        self._arrived = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """The URL for callbacks."""
        return f"http://127.0.0.1:{self.port}/callbacks"

    @property
    def accepted(self) -> list[ReceivedCallback]:
        """The requests whose response was 2xx."""
        return [request for request in self.requests if 200 <= request.status < 300]

    @property
    def callbacks(self) -> list[Callback]:
        """The bodies of the requests whose response was 2xx."""
        return [request.value for request in self.accepted]

    async def open(self) -> None:
        """Listen; after `close`, on the same port again."""
        application = web.Application(client_max_size=MAX_RECEIVED_BYTES)
        application.router.add_route("*", "/{path:.*}", self._receive)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()

    async def close(self) -> None:
        """Stop listening; the recorded requests stay."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def wait_for(
        self, predicate: Callable[[Callback], bool], *, count: int = 1, within_s: float = HANGS_AFTER_S
    ) -> list[Callback]:
        """Return the callbacks that match, once there are `count` of them.

        Raises:
            AssertionError: too few arrived in time; its text lists those that did.
        """

        def matches() -> list[Callback]:
            return [callback for callback in self.callbacks if predicate(callback)]

        await self.wait_until(lambda: len(matches()) >= count, within_s=within_s)
        return matches()

    async def wait_until(self, is_so: Callable[[], bool], *, within_s: float = HANGS_AFTER_S) -> None:
        """Return once the condition holds; it is checked after every request.

        Raises:
            AssertionError: it did not hold in time.
        """
        try:
            async with asyncio.timeout(within_s), self._arrived:
                await self._arrived.wait_for(is_so)
        except TimeoutError:
            received = "\n".join(f"  {request.status} {request.body.decode()}" for request in self.requests)
            raise AssertionError(f"not within {within_s} s; received:\n{received}") from None

    async def _receive(self, request: web.Request) -> web.Response:
        received = ReceivedCallback(await request.read(), dict(request.headers), request.path)
        status = self.choose_status(received)
        async with self._arrived:
            self.requests.append(ReceivedCallback(received.body, received.headers, received.path, status))
            self._arrived.notify_all()
        await self.gate.wait()
        headers = {"Location": "/elsewhere"} if 300 <= status < 400 else self.choose_headers(received)
        return web.Response(status=status, headers=headers)
