"""An ASGI application that can be replaced while its server goes on listening."""

import asyncio
import contextlib
from collections.abc import Callable, Generator
from typing import Any

from waypost.assembly.http.protocol import is_disconnected


class SwappableApp:
    """Passes each request to the current application; while there is none, requests wait."""

    def __init__(self) -> None:
        self._application: Any = None
        self._is_exempt: Callable[[Any], bool] = _never_exempt
        self._is_open = asyncio.Event()
        self.open_requests = 0
        self.request_ended = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request, unless its client has disconnected while it waited.

        A request between both sides that was waiting when they were closed belongs to the old state.
        """
        if not self._is_open.is_set() and not self._is_exempt(scope):
            await self._is_open.wait()
            if is_disconnected(scope):
                return
        request = OpenRequest(self)
        scope.setdefault("extensions", {})["waypost.open_request"] = request
        self.open_requests += 1
        try:
            await self._application(scope, receive, send)
        finally:
            request.exclude_from_drain()

    @contextlib.contextmanager
    def pause(self, *, is_exempt: Callable[[Any], bool]) -> Generator[None]:
        """Make new requests wait; the application stays, and completes open ones.

        Args:
            is_exempt: returns whether a request with this scope passes nevertheless.
        """
        self._is_exempt = is_exempt
        self._is_open.clear()
        try:
            yield
        finally:
            self._is_exempt = _never_exempt
            self._is_open.set()

    def set_application(self, application: Any) -> None:
        """Pass requests to this application from now on."""
        self._application = application
        self._is_open.set()

    async def close(self, *, ignored: int, timeout_s: float) -> None:
        """Make new requests wait; return when open ones are complete, or after the timeout.

        Args:
            ignored: number of open requests that are not waited for, such as the one that causes this.
            timeout_s: real time. Requests that are still open then find a closed store.
        """
        self._is_open.clear()
        try:
            async with asyncio.timeout(timeout_s):
                while self.open_requests > ignored:
                    self.request_ended.clear()
                    await self.request_ended.wait()
        except TimeoutError:
            return


def _never_exempt(scope: Any) -> bool:
    del scope
    return False


class OpenRequest:
    """One open request of a `SwappableApp`: an extension of its scope, `waypost.application`."""

    def __init__(self, application: SwappableApp) -> None:
        self._application = application
        self._is_ended = False

    def exclude_from_drain(self) -> None:
        """Stop waiting for this request: a stream that lasts until its client leaves, or the cause of the swap."""
        if not self._is_ended:
            self._is_ended = True
            self._application.open_requests -= 1
            self._application.request_ended.set()


async def respond_swap_failed(scope: Any, receive: Any, send: Any) -> None:
    """Respond 503 after a failed swap, which needs a restart."""
    del scope, receive
    text = b'{"error":"the last change of state failed; restart waypost, which takes it to its end"}'
    head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": 503, "headers": head})
    await send({"type": "http.response.body", "body": text})
