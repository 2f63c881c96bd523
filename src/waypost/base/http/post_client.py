"""An HTTP client for many small POSTs a second to few addresses, over kept connections.

A general client spends most of its time on what our POSTs never have: cookies, redirects, proxies,
streams, retries. Here a request is one write, and its response one future and one timer (decision 0048).
"""

import asyncio
import base64
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import aiohappyeyeballs
import httptools
from yarl import URL

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


@dataclass(frozen=True, slots=True)
class PostResponse:
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
        self._pools: dict[tuple[str, int, bool], _ConnectionPool] = {}
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
        key = (target.host, target.port, target.is_tls)
        pool = self._pools.get(key)
        if pool is None:
            pool = self._pools[key] = _ConnectionPool(self._max_per_address)
        loop = asyncio.get_running_loop()
        until_s = loop.time() + timeout_s
        pool.users += 1
        try:
            connection = None if pool.slots.locked() else pool.take_idle(loop.time() - self._idle_s)
            if connection is None:
                connection = await self._acquire_connection(pool, target, min(self._connect_s, timeout_s))
            else:
                await pool.slots.acquire()  # not locked: it does not wait
            try:
                if may_send is not None and not may_send():
                    connection.close()
                    raise NotConnected("it may not be sent any more")
                return await connection.exchange(request, until_s)
            finally:
                pool.slots.release()
        finally:
            pool.users -= 1
            if self._sweep is None:
                self._sweep = loop.call_later(self._idle_s, self._close_idle)

    async def close(self) -> None:
        """Close every connection; responses to requests in flight are lost."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for pool in self._pools.values():
            pool.close_idle(float("inf"))
        await asyncio.sleep(0)  # the transports close in the loop's next turn

    async def _acquire_connection(
        self, pool: "_ConnectionPool", target: _PostTarget, timeout_s: float
    ) -> "_PooledConnection":
        """Return a connection with its slot in the pool, once one is free."""
        has_slot = False
        try:
            async with asyncio.timeout(timeout_s):
                has_slot = await pool.slots.acquire()
                loop = asyncio.get_running_loop()
                connection = pool.take_idle(loop.time() - self._idle_s)
                return connection or await self._connect(pool, target)
        except BaseException as error:
            if has_slot:
                pool.slots.release()
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
                lambda: _PooledConnection(pool, loop, self._max_body_bytes),
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
            if not pool.users and not pool.idle:
                del self._pools[key]
        self._sweep = loop.call_later(self._idle_s, self._close_idle) if self._pools else None


class _ConnectionPool:
    """The connections to one address.

    Attributes:
        users: number of requests that use it.
    """

    __slots__ = ("idle", "slots", "users")

    def __init__(self, max_connections: int) -> None:
        self.slots = asyncio.Semaphore(max_connections)
        self.idle: list[_PooledConnection] = []  # the last used one is at the end
        self.users = 0

    def take_idle(self, since_s: float) -> "_PooledConnection | None":
        """Return the connection used last, unless it has been idle for longer."""
        while self.idle:
            connection = self.idle.pop()
            if connection.idle_since_s > since_s and not connection.transport.is_closing():
                return connection
            connection.close()
        return None

    def close_idle(self, since_s: float) -> None:
        """Close the connections that have been idle for longer."""
        for connection in [connection for connection in self.idle if connection.idle_since_s <= since_s]:
            self.idle.remove(connection)
            connection.close()


class _PooledConnection(asyncio.Protocol):
    """One connection: one request at a time, and its response."""

    __slots__ = (
        "_body", "_has_length", "_headers", "_is_final", "_loop", "_max_body_bytes", "_parser", "_pool",
        "_response", "_size", "_status", "idle_since_s", "transport",
    )  # fmt: skip

    def __init__(self, pool: _ConnectionPool, loop: asyncio.AbstractEventLoop, max_body_bytes: int) -> None:
        self._pool = pool
        self._loop = loop
        self._max_body_bytes = max_body_bytes
        self._parser = httptools.HttpResponseParser(self)
        self._response: asyncio.Future[PostResponse] | None = None
        self._reset_response()
        self.idle_since_s = 0.0
        self.transport: Any = None

    async def exchange(self, request: bytes, until_s: float) -> PostResponse:
        """Send a request and return its response."""
        response = self._response = self._loop.create_future()
        timer = self._loop.call_at(until_s, self._time_out)
        self.transport.write(request)
        try:
            return await response
        finally:
            timer.cancel()
            if response.cancelled():  # the caller was cancelled: the rest of the response has no reader
                self.close()

    def close(self) -> None:
        """Close the connection."""
        self._response = None
        self.transport.abort()

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

    def _time_out(self) -> None:
        if self._is_final:  # the status has arrived and is final
            self._finish(keep=False)
        else:
            self._fail(ResponseTimeout("no response in time"))

    def _finish(self, *, keep: bool) -> None:
        future, self._response = self._response, None
        if future is None:  # a second response to one request
            self.close()
            return
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
    return _PostTarget(parsed.raw_host, parsed.port, parsed.scheme == "https", opening.encode())


def _header_lines(headers: Mapping[str, str], length: int) -> bytes:
    """Return a request's headers, and the empty line that ends them.

    Raises:
        ValueError: a header has a line break or a zero.
    """
    lines = {name.lower(): f"{name}: {value}\r\n" for name, value in headers.items()}
    for name in CLIENT_HEADERS & lines.keys():
        del lines[name]
    text = "".join(lines.values())
    if not text.count("\r") == text.count("\n") == len(lines) or "\0" in text:
        raise ValueError("a header has a line break or a zero in it")
    return f"Accept: */*\r\nAccept-Encoding: identity\r\n{text}Content-Length: {length}\r\n\r\n".encode()


async def _resolve(host: str, port: int) -> Sequence[AddrInfo]:
    loop = asyncio.get_running_loop()
    return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
