"""A partner's receiver of callbacks: a real server that keeps every try and answers as it is told."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from crashes.processes import free_port
from tests.support.waiting import HANGS_AFTER_S

Callback = dict[str, Any]
Answers = Callable[["Try"], int]


@dataclass(frozen=True)
class Try:
    """One request as it came, and what it was answered."""

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


def always(status: int) -> Answers:
    """Answer every try with one status."""
    return lambda _: status


def in_turn(*statuses: int) -> Answers:
    """Answer with these statuses, one a try, and with the last one from then on."""
    left = list(statuses)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


class CallbackSink:
    """Keeps what comes, in the order in which it came.

    Attributes:
        tries: every request, whatever it was answered.
        answers: which status a try gets.
        told: which headers its answer has.
        gate: answers wait until it is open.
    """

    def __init__(self) -> None:
        self.tries: list[Try] = []
        self.answers: Answers = always(200)
        self.told: Callable[[Try], dict[str, str]] = lambda _: {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.port = free_port()  # not one that an outgoing connection is given while it is closed
        self._came = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Where callbacks go."""
        return f"http://127.0.0.1:{self.port}/callbacks"

    @property
    def taken(self) -> list[Try]:
        """The tries that were answered with 2xx."""
        return [one for one in self.tries if 200 <= one.status < 300]

    @property
    def callbacks(self) -> list[Callback]:
        """The bodies that were taken."""
        return [one.value for one in self.taken]

    async def open(self) -> None:
        """Listen: on the port it had before, if it had."""
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._take)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()

    async def close(self) -> None:
        """Listen no longer; what came stays."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def wait_for(
        self, predicate: Callable[[Callback], bool], *, count: int = 1, within_s: float = HANGS_AFTER_S
    ) -> list[Callback]:
        """The callbacks that are meant, once there are as many as that.

        Raises:
            AssertionError: too few came in time; says what came instead.
        """

        def meant() -> list[Callback]:
            return [callback for callback in self.callbacks if predicate(callback)]

        await self.wait_until(lambda: len(meant()) >= count, within_s=within_s)
        return meant()

    async def wait_until(self, is_so: Callable[[], bool], *, within_s: float = HANGS_AFTER_S) -> None:
        """Return once the claim holds; it is asked again after every try.

        Raises:
            AssertionError: it did not hold in time.
        """
        try:
            async with asyncio.timeout(within_s), self._came:
                await self._came.wait_for(is_so)
        except TimeoutError:
            came = "\n".join(f"  {one.status} {one.body.decode()}" for one in self.tries)
            raise AssertionError(f"not within {within_s} s; what came:\n{came}") from None

    async def _take(self, request: web.Request) -> web.Response:
        came = Try(await request.read(), dict(request.headers), request.path)
        status = self.answers(came)
        async with self._came:
            self.tries.append(Try(came.body, came.headers, came.path, status))
            self._came.notify_all()
        await self.gate.wait()
        headers = {"Location": "/elsewhere"} if 300 <= status < 400 else self.told(came)
        return web.Response(status=status, headers=headers)
