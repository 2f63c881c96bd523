"""Streamed responses: however large one is, only a chunk of it is in memory."""

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

from waypost.client.responses import NotReached

PIECE_BYTES: Final = 64 * 1024

Body = bytes | AsyncIterable[bytes] | None
"""The body of a request: complete, or in chunks that are produced while they are sent."""

Message = MutableMapping[str, Any]
"""A message to or from an ASGI application."""

_BODILESS: Final = (204, 304)


class Pieces:
    """A response in chunks; its opener closes it, read to its end or not.

    Attributes:
        status: of the response.
        headers: names in lower case.

    Args:
        status: of the response.
        headers: names in lower case.
        pieces: the body; raises ApiUnreachable if it ends early.
        close: closes its source.
    """

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        pieces: AsyncIterator[bytes],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self.status = status
        self.headers = headers
        self._pieces = pieces
        self._close = close

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Return the body; each chunk is requested from the source when the one before has been read.

        Raises:
            ApiUnreachable: the response ends early.
        """
        return self._pieces

    async def aclose(self) -> None:
        """Close the source: what has not been read is not sent any more."""
        await self._close()


class Handover:
    """One request to an application in this process; the application continues when its output has been read.

    Args:
        body: of the request.
    """

    def __init__(self, body: Body) -> None:
        self._whole: list[bytes] = []
        self._coming: AsyncIterator[bytes] | None = None
        if body is None or isinstance(body, bytes):
            self._whole = [body or b""]
        else:
            self._coming = aiter(body)
        self._gone = asyncio.Event()
        self._sent: deque[Message] = deque()
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._working: asyncio.Task[None] | None = None

    def begin(self, work: Awaitable[None]) -> None:
        """Run the application concurrently with the reader."""
        self._working = asyncio.ensure_future(_done(work))
        self._working.add_done_callback(lambda _: self._news.set())

    async def receive(self) -> Message:
        """Return the next message for the application: the body, then the disconnect."""
        if self._whole:
            return {"type": "http.request", "body": self._whole.pop(), "more_body": False}
        if self._coming is not None:
            chunk = await anext(self._coming, None)
            if chunk is None:
                self._coming = None
            return {"type": "http.request", "body": chunk or b"", "more_body": chunk is not None}
        await self._gone.wait()  # a streamed response meanwhile waits for a disconnect
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Send a message of the application; return when it has been read.

        Raises:
            OSError: the reader has disconnected.
        """
        self._sent.append(message)
        self._news.set()
        while self._sent and not self._gone.is_set():
            self._room.clear()
            await self._room.wait()
        if self._gone.is_set():
            raise OSError("the reader has disconnected")

    async def next(self) -> Message | None:
        """Return the application's next message; None if it has ended.

        Raises:
            Exception: the exception of the application.
        """
        while not self._sent:
            if self._working is not None and self._working.done():
                self._working.result()
                return None
            self._news.clear()
            await self._news.wait()
        self._room.set()
        return self._sent.popleft()

    async def pieces(self, size_bytes: int | None) -> AsyncIterator[bytes]:
        """Yield the body of the response.

        Args:
            size_bytes: of the header Content-Length; None: not sent.

        Raises:
            ApiUnreachable: the response ends early.
        """
        read_bytes, has_more = 0, True
        while has_more:
            try:
                message = await self.next()
            except Exception as error:
                raise NotReached("the response breaks off: the application has failed") from error
            if message is None:
                raise NotReached("the response breaks off: the application has ended")
            has_more = message.get("more_body", False)
            chunk: bytes = message.get("body", b"")
            read_bytes += len(chunk)
            if chunk:
                yield chunk
        if size_bytes is not None and read_bytes != size_bytes:
            raise NotReached(f"the response has {read_bytes} bytes instead of the announced {size_bytes}")

    async def end(self) -> None:
        """Disconnect the reader and cancel the application."""
        self._gone.set()
        self._room.set()
        if self._working is not None:
            self._working.cancel()
            await asyncio.gather(self._working, return_exceptions=True)


def size_of(method: str, status: int, headers: Mapping[str, str]) -> int | None:
    """Return the size of a response's body by its headers; None if they do not state it."""
    if method == "HEAD" or status in _BODILESS:
        return 0
    length = headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() else None


async def _done(work: Awaitable[None]) -> None:
    await work
