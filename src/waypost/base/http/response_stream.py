"""A response that is read as it arrives, with little of its body in memory."""

import asyncio
from collections.abc import Callable
from typing import Final

ResponseHeaders = tuple[tuple[str, str], ...]
"""In order, with lower-case names."""

READ_AHEAD_BYTES: Final = 64 * 1024
"""Of a body; the connection is read no further until the reader has taken what there is."""


class ResponseStream:
    """The response to one request: filled by its connection, read and closed by the one who made the request.

    Args:
        has_body: the response may have one; False for HEAD.
        continue_reading: called when there is room for more of the body.
        close_connection: called if the response is closed before its end.

    Attributes:
        status: of the response; 0 before it arrives.
        has_ended: complete, or with an error.
        is_request_sent: the whole request has been written, so that the connection may be used again.
    """

    def __init__(
        self, *, has_body: bool, continue_reading: Callable[[], None], close_connection: Callable[[], None]
    ) -> None:
        self.has_body = has_body
        self.is_request_sent = False
        self.status = 0
        self.headers: ResponseHeaders = ()
        self._continue_reading = continue_reading
        self._close_connection = close_connection
        self._body = bytearray()
        self.has_ended = False
        self._error: Exception | None = None
        self._change: asyncio.Future[None] | None = None

    @property
    def is_full(self) -> bool:
        """True if no more of the body is to be read from the connection now."""
        return len(self._body) >= READ_AHEAD_BYTES

    async def wait_for_head(self) -> None:
        """Return when status and headers have arrived. Raises OSError: they do not arrive."""
        while not self.status:
            if self._error is not None:
                raise self._error
            await self._wait()

    async def read(self) -> bytes:
        """Return what has arrived of the body, once there is some; empty at its end.

        Raises:
            OSError: the response ends early, or exceeds a limit.
        """
        while not self._body:
            if self._error is not None:
                raise self._error
            if self.has_ended:
                return b""
            await self._wait()
        was_full, chunk = self.is_full, bytes(self._body)
        self._body.clear()
        if was_full and not self.has_ended:
            self._continue_reading()
        return chunk

    def close(self) -> None:
        """End the use of the connection, unless the response has ended."""
        if not self.has_ended:
            self.has_ended = True
            self._close_connection()

    # Called by the connection.

    def begin(self, status: int, headers: ResponseHeaders) -> None:
        """Take status and headers."""
        self.status, self.headers = status, headers
        self._wake()

    def add(self, body: bytes) -> None:
        """Take a part of the body."""
        self._body += body
        self._wake()

    def end(self, error: Exception | None) -> None:
        """Take the end of the response, or why there is none."""
        self.has_ended = True
        self._error = error
        self._wake()

    async def _wait(self) -> None:
        self._change = asyncio.get_running_loop().create_future()
        await self._change

    def _wake(self) -> None:
        if self._change is not None and not self._change.done():
            self._change.set_result(None)
