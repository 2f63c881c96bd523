"""Pooled HTTP/1.1 connections: one request at a time each, and its response, which keeps to limits.

The other side may be hostile: a header, a trailer, a chunk's extension or informational responses without
end cost neither memory nor the turn of anybody else. A response that exceeds a limit ends its connection.
Source: decision 0048.
"""

import asyncio
import socket
import ssl
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

import aiohappyeyeballs
import httptools

from waypost.base.error_texts import error_text
from waypost.base.http.response_stream import ResponseHeaders, ResponseStream

PoolKey = tuple[str, int, bool]
"""Host, port, and whether it is TLS."""
AddrInfo = tuple[int, int, int, str, tuple[Any, ...]]
"""An address as returned by `getaddrinfo`."""
MakeSocket = Callable[[AddrInfo], socket.socket]
"""Makes the socket for one resolved address, or raises `OSError` if connecting to it is not allowed."""
Resolve = Callable[[str, int], Awaitable[Sequence[AddrInfo]]]
"""Returns the addresses of a name."""
NEXT_ADDRESS_DELAY_S: Final = 0.25
"""After this time without a connection the next address of a name is tried in parallel. Source: RFC 8305."""
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
    """A response.

    Attributes:
        body: up to the size that is kept.
    """

    status: int
    headers: ResponseHeaders
    body: bytes


class ConnectionPools:
    """The connections of one client, pooled by address.

    Args:
        max_per_address: maximum number of connections to one address.
        idle_s: an idle connection is closed after this time: earlier than servers do, so that none is
            reused while the other side closes it.
        connect_s: for a connection: a free slot, the DNS lookup, TCP and TLS.
        make_socket: for callers that vet each address.
        resolve: for callers with a resolver of their own.
    """

    def __init__(
        self,
        *,
        max_per_address: int,
        idle_s: float,
        connect_s: float,
        make_socket: MakeSocket | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        self._max_per_address = max_per_address
        self._idle_s = idle_s
        self._connect_s = connect_s
        self._make_socket = make_socket
        self._resolve = resolve or _resolve
        self._pools: dict[PoolKey, _ConnectionPool] = {}
        self._deadlines = _Deadlines()
        self._tls: ssl.SSLContext | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False

    def take_idle(self, key: PoolKey, now_s: float) -> "PooledConnection | None":
        """Return an idle connection to an address, with its slot; None if there is none.

        Raises:
            NotConnected: the connections are closed.
        """
        if self._closed:
            raise NotConnected("the client is closed")
        pool = self._pools.get(key)
        if pool is None or not pool.try_acquire():
            return None
        connection = pool.take_idle(now_s - self._idle_s)
        if connection is None:
            pool.release()
        return connection

    async def connect(self, key: PoolKey, timeout_s: float) -> "PooledConnection":
        """Return a connection with its slot, once one is free: an idle one, or a new one.

        Raises:
            NotConnected: none was made in time, or at all.
        """
        timeout_s = min(self._connect_s, timeout_s)
        pool = self._pools.get(key) or self._add_pool(key)
        has_slot = False
        try:
            async with asyncio.timeout(timeout_s):
                await pool.acquire()
                has_slot = True
                connection = pool.take_idle(asyncio.get_running_loop().time() - self._idle_s)
                return connection or await self._connect(pool, key)
        except BaseException as error:
            if has_slot:
                pool.release()
            if isinstance(error, TimeoutError):
                raise NotConnected(f"no connection within {timeout_s:g} s") from error
            if isinstance(error, OSError):  # TLS included
                raise NotConnected(error_text(error)) from error
            raise

    async def close(self) -> None:
        """Close every idle connection; one in use closes when its response has ended."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for pool in self._pools.values():
            pool.close_idle(float("inf"))
        await asyncio.sleep(0)  # the transports close in the loop's next turn

    def _add_pool(self, key: PoolKey) -> "_ConnectionPool":
        pool = self._pools[key] = _ConnectionPool(self._max_per_address)
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(self._idle_s, self._close_idle)
        return pool

    async def _connect(self, pool: "_ConnectionPool", key: PoolKey) -> "PooledConnection":
        host, port, is_tls = key
        loop = asyncio.get_running_loop()
        addresses = await self._resolve(host, port)
        connected_socket = await aiohappyeyeballs.start_connection(  # pyright: ignore[reportUnknownMemberType]
            list(addresses),
            happy_eyeballs_delay=NEXT_ADDRESS_DELAY_S,
            interleave=1,
            loop=loop,
            socket_factory=self._make_socket,
        )
        connected_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if is_tls and self._tls is None:
            self._tls = await loop.run_in_executor(None, ssl.create_default_context)
        try:
            _, connection = await loop.create_connection(
                lambda: PooledConnection(pool, loop, self._deadlines),
                sock=connected_socket,
                ssl=self._tls if is_tls else None,
                server_hostname=host if is_tls else None,
            )
        except BaseException:
            connected_socket.close()
            raise
        if connection.transport.is_closing():
            raise NotConnected("the connection was closed, or had data, before the request was sent")
        return connection

    def _close_idle(self) -> None:
        loop = asyncio.get_running_loop()
        for key, pool in list(self._pools.items()):
            pool.close_idle(loop.time() - self._idle_s)
            if pool.is_unused:
                del self._pools[key]
        self._sweep = loop.call_later(self._idle_s, self._close_idle) if self._pools else None


class _ConnectionPool:
    """The connections to one address, each with a slot while it is connected or used.

    Attributes:
        idle: the last used one is at the end.
    """

    __slots__ = ("_free_slots", "_max_slots", "_waiting", "idle")

    def __init__(self, max_connections: int) -> None:
        self.idle: list[PooledConnection] = []
        self._max_slots = self._free_slots = max_connections
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_unused(self) -> bool:
        """True if no request uses it or waits for it, and it has no connection."""
        return self._free_slots == self._max_slots and not self._waiting and not self.idle

    def try_acquire(self) -> bool:
        """Take a slot if one is free: then nobody waits for it."""
        if not self._free_slots:
            return False
        self._free_slots -= 1
        return True

    async def acquire(self) -> None:
        """Take a slot once one is free; those that wait get theirs in turn."""
        if self.try_acquire():
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._waiting.remove(turn)
            else:  # it has just got a slot
                self.release()
            raise

    def release(self) -> None:
        """Return a slot, or pass it on to the first that waits."""
        for turn in self._waiting:
            if not turn.done():
                turn.set_result(None)
                self._waiting.remove(turn)
                return
        self._free_slots += 1

    def take_idle(self, since_s: float) -> "PooledConnection | None":
        """Return the connection used last, unless it has been idle for longer."""
        while self.idle:
            connection = self.idle.pop()
            if connection.idle_since_s > since_s and not connection.transport.is_closing():
                connection.has_slot = True
                return connection
            connection.close()
        return None

    def close_idle(self, since_s: float) -> None:
        """Close the connections that have been idle for longer."""
        for connection in [connection for connection in self.idle if connection.idle_since_s <= since_s]:
            self.idle.remove(connection)
            connection.close()


class _Deadlines:
    """The requests that wait for a response, and one timer for all: each would cost more than the rest of its entry."""

    __slots__ = ("_timer", "_until_s")

    def __init__(self) -> None:
        self._until_s: dict[PooledConnection, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, connection: "PooledConnection", until_s: float, loop: asyncio.AbstractEventLoop) -> None:
        """Call `time_out` of a connection at this time of the loop."""
        self._until_s[connection] = until_s
        if self._timer is None or until_s < self._timer.when():
            self._set_timer(until_s, loop)

    def remove(self, connection: "PooledConnection") -> None:
        """Remove a connection that has its response, or none any more."""
        self._until_s.pop(connection, None)

    def _set_timer(self, at_s: float, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(at_s, self._expire, loop)

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now_s = loop.time()
        for connection in [connection for connection, until_s in self._until_s.items() if until_s <= now_s]:
            connection.time_out()
        if self._until_s:
            self._set_timer(min(self._until_s.values()), loop)


class PooledConnection(asyncio.Protocol):
    """One connection: one request at a time, and its response.

    It is created with a slot of its pool, and has one until its request has ended.
    """

    __slots__ = (
        "_body", "_body_bytes", "_can_send", "_deadlines", "_has_length", "_header_count", "_headers", "_informational",
        "_is_final", "_is_used", "_loop", "_max_body_bytes", "_parser", "_pool", "_response", "_status", "_stream",
        "_unparsed", "_wire_bytes", "has_slot", "idle_since_s", "transport",
    )  # fmt: skip

    def __init__(self, pool: _ConnectionPool, loop: asyncio.AbstractEventLoop, deadlines: _Deadlines) -> None:
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
        self._reset_response()
        self.idle_since_s = 0.0
        self.transport: Any = None

    async def exchange(self, request: bytes, until_s: float, max_body_bytes: int) -> HttpResponse:
        """Send a request and return its response, whose body is read up to the size and counts although it is longer."""
        response = self._response = self._loop.create_future()
        self._begin(max_body_bytes)
        self._deadlines.add(self, until_s, self._loop)
        self.transport.write(request)
        try:
            return await response
        finally:
            if response.cancelled():  # the caller was cancelled: the rest of the response has no reader
                self.close()

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
        self._begin(max_body_bytes)
        if until_s is not None:
            self._deadlines.add(self, until_s, self._loop)
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

    def _begin(self, max_body_bytes: int | None) -> None:
        self._is_used = True
        self._max_body_bytes = sys.maxsize if max_body_bytes is None else max_body_bytes
        self._wire_bytes = self._body_bytes = self._header_count = self._informational = 0

    def _end_use(self) -> None:
        self._is_used = False
        self._response = self._stream = None
        self._deadlines.remove(self)
        if self.has_slot:
            self.has_slot = False
            self._pool.release()

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
        self._reset_response()

    def _finish(self, *, keep: bool) -> None:
        future, stream = self._response, self._stream
        body = bytes(self._body[: self._max_body_bytes])
        response = HttpResponse(self._status, tuple(self._headers), body)
        self._end_use()
        self._reset_response()
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

    def _reset_response(self) -> None:
        self._headers: list[tuple[str, str]] = []
        self._body: bytes | bytearray = b""
        self._status = 0
        self._is_final = False
        self._has_length = False


async def _resolve(host: str, port: int) -> Sequence[AddrInfo]:
    loop = asyncio.get_running_loop()
    return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
