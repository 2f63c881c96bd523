"""An HTTP client for many small POSTs a second to few addresses, over kept connections.

A general client spends most of its time on what our POSTs never have: cookies, redirects, proxies,
streams, retries. Here a request is one write, and its response one future and one timer (decision 0048).
"""

import asyncio
import base64
import socket
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import aiohappyeyeballs
import httptools
from yarl import URL

_PoolKey = tuple[str, int, bool]
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
CLIENT_HEADERS: Final = frozenset({"content-length", "transfer-encoding", "connection", "host"})
"""Headers that only this client sets."""


class NotConnected(OSError):
    """No connection was made, so nothing was sent; the cause has the reason."""


class ResponseLost(OSError):
    """The request may have arrived; no complete response did."""


class InvalidHttpResponse(ResponseLost):
    """The response is not HTTP."""


class ResponseTimeout(ResponseLost):
    """No response arrived in time."""


class PostResponse(NamedTuple):
    """A response.

    Attributes:
        headers: in order, with lower-case names.
        body: up to the size that is kept.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class _PostTarget:
    """A parsed URL, ready for requests."""

    host: str
    port: int
    is_tls: bool
    request_head: bytes  # the request line and the Host header
    pool_key: _PoolKey


class PostClient:
    """Sends POSTs over connections that are pooled by address.

    Args:
        max_per_address: maximum number of connections to one address.
        idle_s: an idle connection is closed after this time: earlier than servers do, so that none is
            reused while the other side closes it.
        connect_s: for a connection: a free slot, the DNS lookup, TCP and TLS.
        max_body_bytes: maximum size of a response's body; the rest is not read.
        make_socket: for callers that vet each address.
        resolve: for callers with a resolver of their own.
    """

    def __init__(
        self,
        *,
        max_per_address: int,
        idle_s: float,
        connect_s: float,
        max_body_bytes: int,
        make_socket: MakeSocket | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        self._max_per_address = max_per_address
        self._idle_s = idle_s
        self._connect_s = connect_s
        self._max_body_bytes = max_body_bytes
        self._make_socket = make_socket
        self._resolve = resolve or _resolve
        self._pools: dict[_PoolKey, _ConnectionPool] = {}
        self._deadlines = _Deadlines()
        self._tls: ssl.SSLContext | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False

    async def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        timeout_s: float,
        may_send: Callable[[], bool] | None = None,
    ) -> PostResponse:
        """Post bytes; follows no redirects, decodes nothing, retries nothing.

        Args:
            url: of http or https.
            body: sent unchanged.
            headers: the last of one name counts; those of `CLIENT_HEADERS` are dropped.
            timeout_s: for everything together.
            may_send: called just before the request is sent, however long connecting took.

        Raises:
            NotConnected: nothing was sent.
            ResponseLost: the request may have been sent.
            ValueError: the URL or a header cannot be sent at all.
        """
        if self._closed:
            raise NotConnected("the client is closed")
        target = _parse_target(url)
        request = target.request_head + _header_lines(headers, len(body)) + body
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        pool = self._pools.get(target.pool_key) or self._add_pool(target, loop)
        connection = None
        if pool.try_acquire():
            connection = pool.take_idle(now_s - self._idle_s)
            if connection is None:
                pool.release()
        if connection is None:
            connection = await self._acquire_connection(pool, target, min(self._connect_s, timeout_s))
        if may_send is not None and not may_send():
            connection.close()
            raise NotConnected("it may not be sent any more")
        return await connection.exchange(request, now_s + timeout_s)

    async def close(self) -> None:
        """Close every connection; responses to requests in flight are lost."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for pool in self._pools.values():
            pool.close_idle(float("inf"))
        await asyncio.sleep(0)  # the transports close in the loop's next turn

    def _add_pool(self, target: _PostTarget, loop: asyncio.AbstractEventLoop) -> "_ConnectionPool":
        pool = self._pools[target.pool_key] = _ConnectionPool(self._max_per_address)
        if self._sweep is None:
            self._sweep = loop.call_later(self._idle_s, self._close_idle)
        return pool

    async def _acquire_connection(
        self, pool: "_ConnectionPool", target: _PostTarget, timeout_s: float
    ) -> "_PooledConnection":
        """Return a connection with its slot in the pool, once one is free."""
        has_slot = False
        try:
            async with asyncio.timeout(timeout_s):
                await pool.acquire()
                has_slot = True
                loop = asyncio.get_running_loop()
                connection = pool.take_idle(loop.time() - self._idle_s)
                return connection or await self._connect(pool, target)
        except BaseException as error:
            if has_slot:
                pool.release()
            if isinstance(error, TimeoutError):
                raise NotConnected(f"no connection within {timeout_s:g} s") from error
            if isinstance(error, OSError):  # TLS included
                raise NotConnected(str(error)) from error
            raise

    async def _connect(self, pool: "_ConnectionPool", target: _PostTarget) -> "_PooledConnection":
        loop = asyncio.get_running_loop()
        addresses = await self._resolve(target.host, target.port)
        connected_socket = await aiohappyeyeballs.start_connection(  # pyright: ignore[reportUnknownMemberType]
            list(addresses),
            happy_eyeballs_delay=NEXT_ADDRESS_DELAY_S,
            interleave=1,
            loop=loop,
            socket_factory=self._make_socket,
        )
        connected_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if target.is_tls and self._tls is None:
            self._tls = await loop.run_in_executor(None, ssl.create_default_context)
        try:
            _, connection = await loop.create_connection(
                lambda: _PooledConnection(pool, loop, self._deadlines, self._max_body_bytes),
                sock=connected_socket,
                ssl=self._tls if target.is_tls else None,
                server_hostname=target.host if target.is_tls else None,
            )
        except BaseException:
            connected_socket.close()
            raise
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
        self.idle: list[_PooledConnection] = []
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

    def take_idle(self, since_s: float) -> "_PooledConnection | None":
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
        self._until_s: dict[_PooledConnection, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, connection: "_PooledConnection", until_s: float, loop: asyncio.AbstractEventLoop) -> None:
        """Call `time_out` of a connection at this time of the loop."""
        self._until_s[connection] = until_s
        if self._timer is None or until_s < self._timer.when():
            self._set_timer(until_s, loop)

    def remove(self, connection: "_PooledConnection") -> None:
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


class _PooledConnection(asyncio.Protocol):
    """One connection: one request at a time, and its response.

    It is created with a slot of its pool, and has one until its request has ended.
    """

    __slots__ = (
        "_body", "_deadlines", "_has_length", "_headers", "_is_final", "_loop", "_max_body_bytes", "_parser",
        "_pool", "_response", "_size", "_status", "has_slot", "idle_since_s", "transport",
    )  # fmt: skip

    def __init__(
        self, pool: _ConnectionPool, loop: asyncio.AbstractEventLoop, deadlines: _Deadlines, max_body_bytes: int
    ) -> None:
        self._pool = pool
        self.has_slot = True
        self._loop = loop
        self._deadlines = deadlines
        self._max_body_bytes = max_body_bytes
        self._parser = httptools.HttpResponseParser(self)
        self._response: asyncio.Future[PostResponse] | None = None
        self._reset_response()
        self.idle_since_s = 0.0
        self.transport: Any = None

    async def exchange(self, request: bytes, until_s: float) -> PostResponse:
        """Send a request and return its response."""
        response = self._response = self._loop.create_future()
        self._deadlines.add(self, until_s, self._loop)
        self.transport.write(request)
        try:
            return await response
        finally:
            if response.cancelled():  # the caller was cancelled: the rest of the response has no reader
                self.close()

    def close(self) -> None:
        """Close the connection."""
        self._end_use()
        self.transport.abort()

    def time_out(self) -> None:
        """End a request that has no complete response in time."""
        if self._is_final:  # the status has arrived and is final
            self._finish(keep=False)
        else:
            self._fail(ResponseTimeout("no response in time"))

    def _end_use(self) -> None:
        self._response = None
        self._deadlines.remove(self)
        if self.has_slot:
            self.has_slot = False
            self._pool.release()

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self._response is None:  # there is no request
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(InvalidHttpResponse(f"the response is not HTTP: {error}"[:300]))

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None and self._is_final and not self._has_length:
            self._finish(keep=False)  # a response without a length ends with its connection
        else:
            cause = f": {exc}" if exc else ""
            self._fail(ResponseLost(f"the connection was closed before the response{cause}"))
        if self in self._pool.idle:
            self._pool.idle.remove(self)

    # Called by the parser.

    def on_header(self, name: bytes, value: bytes) -> None:
        lower = name.decode("latin-1").lower()
        self._headers.append((lower, value.decode("utf-8", "replace")))
        if lower in ("content-length", "transfer-encoding"):
            self._has_length = True

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()
        self._is_final = self._status >= MIN_FINAL_STATUS

    def on_body(self, body: bytes) -> None:
        if self._is_final and self._size < self._max_body_bytes:
            self._body.append(body)
            self._size += len(body)
            if self._size > self._max_body_bytes:
                self._finish(keep=False)

    def on_message_complete(self) -> None:
        if self._is_final:
            self._finish(keep=self._parser.should_keep_alive())
        else:
            self._reset_response()

    def _finish(self, *, keep: bool) -> None:
        future = self._response
        if future is None:  # a second response to one request
            self.close()
            return
        self._end_use()
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        response = PostResponse(self._status, tuple(self._headers), body[: self._max_body_bytes])
        self._reset_response()
        if not future.done():
            future.set_result(response)
        if keep and not self.transport.is_closing():
            self.idle_since_s = self._loop.time()
            self._pool.idle.append(self)
        else:
            self.close()

    def _fail(self, error: ResponseLost) -> None:
        future = self._response
        if future is not None and not future.done():
            future.set_exception(error)
        self.close()

    def _reset_response(self) -> None:
        self._headers: list[tuple[str, str]] = []
        self._body: list[bytes] = []
        self._size = 0
        self._status = 0
        self._is_final = False
        self._has_length = False


@lru_cache(maxsize=4096)
def _parse_target(url: str) -> _PostTarget:
    """Parse a URL.

    Raises:
        ValueError: it is not a URL of http or https.
    """
    parsed = URL(url)
    if parsed.scheme not in ("http", "https") or not parsed.raw_host or not parsed.port:
        raise ValueError(f"{url[:200]} is not a URL of http or https")
    opening = f"POST {parsed.raw_path_qs or '/'} HTTP/1.1\r\nHost: {parsed.host_port_subcomponent}\r\n"
    if parsed.user is not None:
        secret = base64.b64encode(f"{parsed.user}:{parsed.password or ''}".encode()).decode()
        opening += f"Authorization: Basic {secret}\r\n"
    if "\r" in opening.replace("\r\n", "") or opening.isascii() is False:
        raise ValueError(f"{url[:200]} cannot be sent")
    key = (parsed.raw_host, parsed.port, parsed.scheme == "https")
    return _PostTarget(*key, opening.encode(), key)


def _header_lines(headers: Mapping[str, str], length: int) -> bytes:
    """Return a request's headers, and the empty line that ends them.

    Raises:
        ValueError: a header has a line break or a zero.
    """
    if _are_names_plain(tuple(headers)):
        text = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        lines = len(headers)
    else:
        by_name = {name.lower(): f"{name}: {value}\r\n" for name, value in headers.items()}
        kept = [line for name, line in by_name.items() if name not in CLIENT_HEADERS]
        text, lines = "".join(kept), len(kept)
    if not text.count("\r") == text.count("\n") == lines or "\0" in text:
        raise ValueError("a header has a line break or a zero in it")
    return f"Accept: */*\r\nAccept-Encoding: identity\r\n{text}Content-Length: {length}\r\n\r\n".encode()


@lru_cache(maxsize=4096)
def _are_names_plain(names: tuple[str, ...]) -> bool:
    """Return True if no header is there twice, and none is set by the client."""
    lower = {name.lower() for name in names}
    return len(lower) == len(names) and not lower & CLIENT_HEADERS


async def _resolve(host: str, port: int) -> Sequence[AddrInfo]:
    loop = asyncio.get_running_loop()
    return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
