"""An ASGI application that can be exchanged while its server goes on listening."""

import asyncio
import contextlib
from collections.abc import Callable, Generator
from typing import Any

from waypost.assembly.http.protocol import is_broken


class Gate:
    """Hands each request to the application of the moment; while there is none, requests wait."""

    def __init__(self) -> None:
        self._application: Any = None
        self._may_pass: Callable[[Any], bool] = _nobody
        self._is_open = asyncio.Event()
        self._inside = 0
        self._left = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, unless whoever asked has gone while it waited.

        What one side had on its way to the other when both were closed is of the old state.
        """
        if not self._is_open.is_set() and not self._may_pass(scope):
            await self._is_open.wait()
            if is_broken(scope):
                return
        passage = Passage(self)
        scope.setdefault("extensions", {})["waypost.gate"] = passage
        self._inside += 1
        try:
            await self._application(scope, receive, send)
        finally:
            passage.step_aside()

    def leave(self) -> None:
        """One of those inside need not be waited for any more."""
        self._inside -= 1
        self._left.set()

    @contextlib.contextmanager
    def paused(self, *, passing: Callable[[Any], bool]) -> Generator[None]:
        """Make new requests wait; the application stays, and answers those that are inside.

        Args:
            passing: says by its scope which request goes in all the same.
        """
        self._may_pass = passing
        self._is_open.clear()
        try:
            yield
        finally:
            self._may_pass = _nobody
            self._is_open.set()

    def open(self, application: Any) -> None:
        """Let requests in to this application from now on."""
        self._application = application
        self._is_open.set()

    async def shut(self, *, leaving: int, within_s: float) -> None:
        """Let nobody in any more; return when those inside have been answered, or the time is over.

        Args:
            leaving: how many need not be waited for: whoever asked for this is inside himself.
            within_s: real time. Who is still inside then finds a closed store.
        """
        self._is_open.clear()
        try:
            async with asyncio.timeout(within_s):
                while self._inside > leaving:
                    self._left.clear()
                    await self._left.wait()
        except TimeoutError:
            return


def _nobody(scope: Any) -> bool:
    del scope
    return False


class Passage:
    """One request's way through a gate: an extension of its scope, `waypost.gate`."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._is_aside = False

    def step_aside(self) -> None:
        """Be waited for no more: a stream that lasts as long as somebody looks, or whoever asks for the exchange."""
        if not self._is_aside:
            self._is_aside = True
            self._gate.leave()


async def out_of_order(scope: Any, receive: Any, send: Any) -> None:
    """What answers where an exchange has failed: that a restart is needed."""
    del scope, receive
    text = b'{"error":"the last change of state failed; restart waypost, which takes it to its end"}'
    head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": 503, "headers": head})
    await send({"type": "http.response.body", "body": text})
