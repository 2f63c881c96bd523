"""One pooled HTTP/1.1 connection: one request at a time, and its response, which keeps to limits.

The other side may be hostile: a header, a trailer, a chunk's extension or informational responses without
end cost neither memory nor the turn of anybody else. A response that exceeds a limit ends its connection.
Source: decision 0048.
"""

import asyncio
import math
import sys
from collections import deque
from typing import Any, Final, NamedTuple, Protocol

import httptools

from waypost.base.error_texts import error_text
from waypost.base.http.response_stream import ResponseHeaders, ResponseStream

MIN_FINAL_STATUS: Final = 200
"""Lower statuses announce a response, and are not final."""
MAX_FRAMING_BYTES: Final = 64 * 1024
"""Of a response, all that is not body: status lines, headers, trailers, sizes and extensions of chunks. Chunks may
have as many bytes of framing as they have of body in addition."""
MAX_RESPONSE_HEADERS: Final = 200
"""Of a response with its informational responses and its trailers."""
MAX_INFORMATIONAL_RESPONSES: Final = 8
SLICE_BYTES: Final = 16 * 1024
"""Bytes of one connection that are parsed in one turn of the loop: much data delays no one else."""


class NotConnected(OSError):
    """No connection was made, so nothing was sent; the cause has the reason."""


class ResponseLost(OSError):
    """The request may have arrived; no complete response did."""


class InvalidHttpResponse(ResponseLost):
    """The response is not HTTP."""


class ResponseTooLarge(ResponseLost):
    """The response exceeds a limit; the text names it."""


class ResponseTimeout(ResponseLost):
    """No response arrived in time."""


class HttpResponse(NamedTuple):
    """A response."""

    status: int
    headers: ResponseHeaders
    body: bytes  # up to the size that is kept


class Deadlines:
    """The requests that wait for a response, and one timer for all: each would cost more than the rest of its entry.

    Attributes:
        until_s: the time of the loop at which `time_out` of a connection is called.
        next_s: when the timer runs out; infinity without one.
    """

    __slots__ = ("_timer", "next_s", "until_s")

    def __init__(self) -> None:
        self.until_s: dict[PooledConnection, float] = {}
        self.next_s = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def set_timer(self, at_s: float, loop: asyncio.AbstractEventLoop) -> None:
        """Let the timer run out at this time of the loop: the earliest of all."""
        if self._timer is not None:
            self._timer.cancel()
        self.next_s = at_s
        self._timer = loop.call_at(at_s, self._expire, loop)

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer, self.next_s = None, math.inf
        now_s = loop.time()
        for connection in [connection for connection, until_s in self.until_s.items() if until_s <= now_s]:
            connection.time_out()
        if self.until_s:
            self.set_timer(min(self.until_s.values()), loop)


class PoolOfConnection(Protocol):
    """The pool of a connection, as the connection uses it."""

    free_slots: int
    idle: "list[PooledConnection]"
    waiting: "deque[asyncio.Future[None]]"

    def release(self) -> None:
        """Return a slot."""
        ...


class PooledConnection(asyncio.Protocol):
    """One connection: one request at a time, and its response.

    It is created with a slot of its pool, and has one until its request has ended.
    """

    __slots__ = (
        "_body", "_body_bytes", "_can_send", "_deadlines", "_has_length", "_header_count", "_headers", "_informational",
        "_is_final", "_is_used", "_loop", "_max_body_bytes", "_parser", "_pool", "_response", "_status", "_stream",
        "_unparsed", "_wire_bytes", "has_slot", "idle_since_s", "transport",
    )  # fmt: skip

    def __init__(self, pool: PoolOfConnection, loop: asyncio.AbstractEventLoop, deadlines: Deadlines) -> None:
        self._pool = pool
        self.has_slot = True
        self._loop = loop
        self._deadlines = deadlines
        self._parser = httptools.HttpResponseParser(self)
        self._response: asyncio.Future[HttpResponse] | None = None
        self._stream: ResponseStream | None = None
        self._is_used = False
        self._unparsed = memoryview(b"")
        self._can_send: asyncio.Future[None] | None = None
        self._is_final = self._has_length = False
        self.idle_since_s = 0.0
        self.transport: Any = None

    def exchange(self, request: bytes, until_s: float, max_body_bytes: int) -> "asyncio.Future[HttpResponse]":
        """Send a request; the future gets its response, of whose body only so much is read, although it may be longer.

        A caller that is cancelled closes the connection: the rest of the response has no reader.
        """
        response = self._response = self._loop.create_future()
        self._begin(until_s, max_body_bytes)
        self.transport.write(request)
        return response

    def open_stream(self, until_s: float | None, max_body_bytes: int | None, *, has_body: bool) -> ResponseStream:
        """Begin a request whose response is read as it arrives; its opener sends the request, and closes the stream.

        Args:
            until_s: time of the loop for the whole response; None: no limit.
            max_body_bytes: a longer body is an error; None: no limit.
            has_body: the response may have one; False for HEAD.
        """
        stream = self._stream = ResponseStream(
            has_body=has_body, continue_reading=self.continue_reading, close_connection=self.close
        )
        self._begin(math.inf if until_s is None else until_s, sys.maxsize if max_body_bytes is None else max_body_bytes)
        return stream

    async def drain(self) -> None:
        """Return when more may be written: the other side takes it, or the connection is closed."""
        if self._can_send is not None:
            await self._can_send

    def close(self) -> None:
        """Close the connection."""
        self._end_use()
        self.transport.abort()

    def fail(self, error: Exception) -> None:
        """End the request with an error, and close the connection."""
        future, stream = self._response, self._stream
        self.close()
        if future is not None and not future.done():
            future.set_exception(error)
        if stream is not None:
            stream.end(error)

    def time_out(self) -> None:
        """End a request that has no complete response in time."""
        if self._is_final and self._stream is None:  # the status has arrived and is final
            self._finish(keep=False)
        else:
            self.fail(ResponseTimeout("no response in time"))

    def continue_reading(self) -> None:
        """Parse what has arrived, then read on: one slice in a turn of the loop, while the body's reader keeps up."""
        if not self._is_used or (self._stream is not None and self._stream.is_full):
            return  # the reader of the body continues
        if self._unparsed:
            part, self._unparsed = self._unparsed[:SLICE_BYTES], self._unparsed[SLICE_BYTES:]
            self._parse(part)
        if self.transport.is_closing():
            return
        if self._unparsed:
            if self._is_used:
                self._loop.call_soon(self.continue_reading)
            else:  # what follows a response belongs to none
                self.close()
        elif self._stream is None or not self._stream.is_full:
            self.transport.resume_reading()

    def _begin(self, until_s: float, max_body_bytes: int) -> None:
        self._is_used = True
        self._max_body_bytes = max_body_bytes
        self._wire_bytes = self._body_bytes = self._header_count = self._informational = self._status = 0
        self._headers: list[tuple[str, str]] = []
        self._body: bytes | bytearray = b""
        self._has_length = False
        if until_s < math.inf:
            deadlines = self._deadlines
            deadlines.until_s[self] = until_s
            if until_s < deadlines.next_s:
                deadlines.set_timer(until_s, self._loop)

    def _end_use(self) -> None:
        self._is_used = self._is_final = False
        self._response = self._stream = None
        self._deadlines.until_s.pop(self, None)
        if self.has_slot:
            self.has_slot = False
            if self._pool.waiting:
                self._pool.release()
            else:
                self._pool.free_slots += 1

    def _parse(self, data: bytes | memoryview) -> None:
        self._wire_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if isinstance(error.__context__, ResponseTooLarge):  # raised in a callback
                self.fail(error.__context__)
            else:
                self.fail(InvalidHttpResponse("the response is not HTTP"))
            return
        if self._is_used and self._wire_bytes - 2 * self._body_bytes > MAX_FRAMING_BYTES:
            self.fail(ResponseTooLarge(
                f"the response has more than {MAX_FRAMING_BYTES} bytes of status line, headers, trailers and framing"
            ))  # fmt: skip

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived, a slice of it in a turn of the loop."""
        if not self._is_used:  # there is no request
            self.close()
        elif len(data) > SLICE_BYTES or self._unparsed:
            self.transport.pause_reading()
            self._unparsed = memoryview(bytes(self._unparsed) + data if self._unparsed else data)
            self.continue_reading()
        else:
            self._parse(data)
            if self._stream is not None and self._stream.is_full:
                self.transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the response: a response without a length ends so."""
        if exc is None and self._is_final and not self._has_length:
            self._finish(keep=False)  # a response without a length ends with its connection
        else:
            cause = f": {error_text(exc)}" if exc else ""
            self.fail(ResponseLost(f"the connection was closed before the response{cause}"))
        if self in self._pool.idle:
            self._pool.idle.remove(self)
        self.resume_writing()
        del self._parser  # it refers to this connection
        self._unparsed = memoryview(b"")

    def pause_writing(self) -> None:
        """Let the sender of a body wait."""
        self._can_send = self._loop.create_future()

    def resume_writing(self) -> None:
        """Let the sender of a body continue."""
        if self._can_send is not None and not self._can_send.done():
            self._can_send.set_result(None)
        self._can_send = None

    # Called by the parser.

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, or count a trailer."""
        self._header_count += 1
        if self._header_count > MAX_RESPONSE_HEADERS:
            raise ResponseTooLarge(f"the response has more than {MAX_RESPONSE_HEADERS} headers")
        if self._is_final:  # a trailer
            return
        lower = name.decode("latin-1").lower()
        self._headers.append((lower, value.decode("utf-8", "replace")))
        if lower in ("content-length", "transfer-encoding"):
            self._has_length = True

    def on_headers_complete(self) -> None:
        """Take the status."""
        if not self._is_used:
            return
        self._status = self._parser.get_status_code()
        self._is_final = self._status >= MIN_FINAL_STATUS
        if self._is_final and self._stream is not None:
            self._stream.begin(self._status, tuple(self._headers))
            if not self._stream.has_body:
                self._finish(keep=False)

    def on_body(self, body: bytes) -> None:
        """Take a part of the body, up to its limit."""
        self._body_bytes += len(body)
        if not self._is_final:
            return
        if self._stream is not None:
            if self._body_bytes > self._max_body_bytes:
                raise ResponseTooLarge(f"the body of the response has more than {self._max_body_bytes} bytes")
            self._stream.add(body)
        else:
            if not self._body:
                self._body = body
            else:
                self._body = self._body if isinstance(self._body, bytearray) else bytearray(self._body)
                self._body += body
            if len(self._body) > self._max_body_bytes:
                self._finish(keep=False)

    def on_message_complete(self) -> None:
        """End the response, or count an informational one."""
        if not self._is_used:  # a second response to one request
            self.close()
            return
        if self._is_final:
            self._finish(keep=self._parser.should_keep_alive())
            return
        self._informational += 1
        if self._informational > MAX_INFORMATIONAL_RESPONSES:
            raise ResponseTooLarge(f"more than {MAX_INFORMATIONAL_RESPONSES} informational responses came")
        self._headers.clear()
        self._has_length = False

    def _finish(self, *, keep: bool) -> None:
        future, stream = self._response, self._stream
        body = bytes(self._body[: self._max_body_bytes])
        response = HttpResponse(self._status, tuple(self._headers), body)
        self._end_use()
        if future is not None and not future.done():
            future.set_result(response)
        if stream is not None:
            keep = keep and stream.is_request_sent
            stream.end(None)
        if keep and not self.transport.is_closing():
            self.idle_since_s = self._loop.time()
            self._pool.idle.append(self)
        else:
            self.close()
