"""An answer that is read as it comes: however large it is, only a piece of it is held."""

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

from waypost.client.responses import NotReached

PIECE_BYTES: Final = 64 * 1024

Body = bytes | AsyncIterable[bytes] | None
"""Of a request: whole, or in pieces that are asked for as they are sent."""

Message = MutableMapping[str, Any]
"""What an application of ASGI reads or says."""

_BODILESS: Final = (204, 304)


class Pieces:
    """An answer in pieces; whoever has opened it closes it, read to its end or not.

    Attributes:
        status: of the answer.
        headers: names in lower case.

    Args:
        status: of the answer.
        headers: names in lower case.
        pieces: the body; raises NotReached where it breaks off.
        close: lets go of its source.
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
        """The body; the next piece is asked of the source when this one has been read.

        Raises:
            NotReached: the answer breaks off before its end.
        """
        return self._pieces

    async def aclose(self) -> None:
        """Let go: what has not been read is not sent any more."""
        await self._close()


class Handover:
    """One request to an application in this process: it goes on when what it has sent has been taken.

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
        """Have the application work beside whoever reads."""
        self._working = asyncio.ensure_future(_done(work))
        self._working.add_done_callback(lambda _: self._news.set())

    async def receive(self) -> Message:
        """What the application reads: the body, and whether somebody hangs up."""
        if self._whole:
            return {"type": "http.request", "body": self._whole.pop(), "more_body": False}
        if self._coming is not None:
            piece = await anext(self._coming, None)
            if piece is None:
                self._coming = None
            return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}
        await self._gone.wait()  # an answer in pieces listens meanwhile whether somebody hangs up
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """What the application says; it waits until that has been taken.

        Raises:
            OSError: nobody reads any more.
        """
        self._sent.append(message)
        self._news.set()
        while self._sent and not self._gone.is_set():
            self._room.clear()
            await self._room.wait()
        if self._gone.is_set():
            raise OSError("nobody reads the answer any more")

    async def next(self) -> Message | None:
        """What comes next; None: the application has ended.

        Raises:
            Exception: it has ended so.
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
        """The body of the answer.

        Args:
            size_bytes: as the answer has said; None: it has not.

        Raises:
            NotReached: it breaks off.
        """
        read_bytes, has_more = 0, True
        while has_more:
            try:
                message = await self.next()
            except Exception as error:
                raise NotReached("the answer breaks off: the door has failed") from error
            if message is None:
                raise NotReached("the answer breaks off: the door has left")
            has_more = message.get("more_body", False)
            piece: bytes = message.get("body", b"")
            read_bytes += len(piece)
            if piece:
                yield piece
        if size_bytes is not None and read_bytes != size_bytes:
            raise NotReached(f"the answer has {read_bytes} bytes and not {size_bytes}, as it said")

    async def end(self) -> None:
        """Nobody reads any more: the application hears so, and is cut off."""
        self._gone.set()
        self._room.set()
        if self._working is not None:
            self._working.cancel()
            await asyncio.gather(self._working, return_exceptions=True)


def size_of(method: str, status: int, headers: Mapping[str, str]) -> int | None:
    """How many bytes an answer's body has, as it says; None where it does not say."""
    if method == "HEAD" or status in _BODILESS:
        return 0
    told = headers.get("content-length", "")
    return int(told) if told.isascii() and told.isdigit() else None


async def _done(work: Awaitable[None]) -> None:
    await work
