"""Responses of the standard library's HTTP client within limits of headers, informational responses, body and time.

For programs that load nothing but the standard library: `waypost health`, and the pytest plugin, whose `client.py` has
a copy because it imports nothing of the service. The standard library itself limits the length of a header and the
number of headers.
"""

import http.client
import io
import socket
import time
from typing import Any, Final

MAX_INFORMATIONAL_RESPONSES: Final = 8
MAX_FRAMING_BYTES: Final = 64 * 1024
"""Of a response, all that comes before its body."""
MAX_BODY_BYTES: Final = 16 * 1024 * 1024
"""With the framing of its chunks."""


class BlockingResponseTooLarge(http.client.HTTPException):
    """A response exceeds a limit; the text names it."""


class BlockingResponse(http.client.HTTPResponse):
    """A response that ends with an error when it exceeds a limit.

    Its time is that of the connection's `timeout`, from its beginning to the end of its body.
    """

    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self._informational = 0
        self._raw = _BlockingReader(sock, self.fp.detach())
        self.fp = io.BufferedReader(self._raw)

    def begin(self) -> None:
        """Read up to the body.

        Raises:
            BlockingResponseTooLarge: the response exceeds a limit.
            TimeoutError: it has not arrived in time.
        """
        super().begin()
        if (self.length or 0) > MAX_BODY_BYTES:
            raise BlockingResponseTooLarge(f"the body of the response has more than {MAX_BODY_BYTES} bytes")
        self._raw.left_bytes = MAX_FRAMING_BYTES + MAX_BODY_BYTES

    def read(self, amt: int | None = None) -> bytes:
        """Return the body, or the beginning of it.

        Raises:
            HTTPException: it exceeds a limit, or a chunk has no valid size.
            TimeoutError: it has not arrived in time.
        """
        try:
            return super().read(amt)
        except (ValueError, MemoryError) as error:
            raise http.client.HTTPException("a chunk of the body has no valid size") from error

    def _read_status(self) -> Any:
        self._informational += 1
        if self._informational > MAX_INFORMATIONAL_RESPONSES + 1:
            raise BlockingResponseTooLarge(f"more than {MAX_INFORMATIONAL_RESPONSES} informational responses came")
        original: Any = super()
        version, status, reason = original._read_status()  # noqa: SLF001  it has no public name
        is_informational = status < 200 and status != http.HTTPStatus.SWITCHING_PROTOCOLS
        return version, http.HTTPStatus.CONTINUE if is_informational else status, reason  # it skips no other


class _BlockingReader(io.RawIOBase):
    """Reads from a socket, until a time and a number of bytes.

    Attributes:
        left_bytes: bytes that may still come.
    """

    def __init__(self, sock: socket.socket, raw: io.RawIOBase) -> None:
        self._socket = sock
        self._raw = raw
        timeout_s: float | None = sock.gettimeout()
        self._until_s = None if timeout_s is None else time.monotonic() + timeout_s
        self.left_bytes = MAX_FRAMING_BYTES + io.DEFAULT_BUFFER_SIZE

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read what has arrived.

        Raises:
            BlockingResponseTooLarge: too many bytes came.
            TimeoutError: the time is over.
        """
        if self._until_s is not None:
            left_s = self._until_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError("no complete response in time")
            self._socket.settimeout(left_s)
        size: int | None = self._raw.readinto(buffer)
        self.left_bytes -= size or 0
        if self.left_bytes < 0:
            raise BlockingResponseTooLarge(
                f"the response has more than {MAX_FRAMING_BYTES} bytes before its body, or {MAX_BODY_BYTES} in it"
            )
        return size

    def close(self) -> None:
        """Close the socket's file."""
        self._raw.close()
        super().close()
