"""Streamed responses: however large one is, only a chunk of it is in memory."""

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

from waypost.client.responses import ApiUnreachable

STREAM_CHUNK_BYTES: Final = 64 * 1024

ClientRequestBody = bytes | AsyncIterable[bytes] | None
"""The body of a request: complete, or in chunks that are produced while they are sent."""

AsgiMessage = MutableMapping[str, Any]
"""A message to or from an ASGI application."""

_BODILESS: Final = (204, 304)


class StreamedResponse:
    """A response in chunks; its opener closes it, read to its end or not.

    Attributes:
        status: of the response.
        headers: names in lower case.
    """

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        chunks: AsyncIterator[bytes],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self.status = status
        self.headers = headers
        self._chunks = chunks
        self._close = close

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Return the body; each chunk is requested from the source when the one before has been read.

        Raises:
            ApiUnreachable: the response ends early.
        """
        return self._chunks

    async def aclose(self) -> None:
        """Close the source: what has not been read is not sent any more."""
        await self._close()


class InProcessCall:
    """One request to an application in this process; the application continues when its output has been read."""

    def __init__(self, body: ClientRequestBody) -> None:
        self._complete_body: list[bytes] = []
        self._body_chunks: AsyncIterator[bytes] | None = None
        if body is None or isinstance(body, bytes):
            self._complete_body = [body or b""]
        else:
            self._body_chunks = aiter(body)
        self._disconnected = asyncio.Event()
        self._sent: deque[AsgiMessage] = deque()
        self._message_ready, self._message_read = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, work: Awaitable[None]) -> None:
        """Run the application concurrently with the reader."""
        self._task = asyncio.ensure_future(_await_work(work))
        self._task.add_done_callback(lambda _: self._message_ready.set())

    async def receive(self) -> AsgiMessage:
        """Return the next message for the application: the body, then the disconnect."""
        if self._complete_body:
            return {"type": "http.request", "body": self._complete_body.pop(), "more_body": False}
        if self._body_chunks is not None:
            chunk = await anext(self._body_chunks, None)
            if chunk is None:
                self._body_chunks = None
            return {"type": "http.request", "body": chunk or b"", "more_body": chunk is not None}
        await self._disconnected.wait()  # a streamed response meanwhile waits for a disconnect
        return {"type": "http.disconnect"}

    async def send(self, message: AsgiMessage) -> None:
        """Send a message of the application; return when it has been read.

        Raises:
            OSError: the reader has disconnected.
        """
        self._sent.append(message)
        self._message_ready.set()
        while self._sent and not self._disconnected.is_set():
            self._message_read.clear()
            await self._message_read.wait()
        if self._disconnected.is_set():
            raise OSError("the reader has disconnected")

    async def next_message(self) -> AsgiMessage | None:
        """Return the application's next message, None if it has ended; raise its exception if it has failed."""
        while not self._sent:
            if self._task is not None and self._task.done():
                self._task.result()
                return None
            self._message_ready.clear()
            await self._message_ready.wait()
        self._message_read.set()
        return self._sent.popleft()

    async def response_chunks(self, size_bytes: int | None) -> AsyncIterator[bytes]:
        """Yield the body of the response.

        Args:
            size_bytes: of the header Content-Length; None: not sent.

        Raises:
            ApiUnreachable: the response ends early.
        """
        read_bytes, has_more = 0, True
        while has_more:
            try:
                message = await self.next_message()
            except Exception as error:
                raise ApiUnreachable("the response breaks off: the application has failed") from error
            if message is None:
                raise ApiUnreachable("the response breaks off: the application has ended")
            has_more = message.get("more_body", False)
            chunk: bytes = message.get("body", b"")
            read_bytes += len(chunk)
            if chunk:
                yield chunk
        if size_bytes is not None and read_bytes != size_bytes:
            raise ApiUnreachable(f"the response has {read_bytes} bytes instead of the announced {size_bytes}")

    async def disconnect(self) -> None:
        """Disconnect the reader and cancel the application."""
        self._disconnected.set()
        self._message_read.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def expected_size(method: str, status: int, headers: Mapping[str, str]) -> int | None:
    """Return the size of a response's body by its headers; None if they do not state it."""
    if method == "HEAD" or status in _BODILESS:
        return 0
    length = headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() else None


async def _await_work(work: Awaitable[None]) -> None:
    await work
