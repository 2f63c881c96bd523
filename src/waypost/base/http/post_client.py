"""A client for one thing: many small POSTs a second to few addresses, over connections that are kept.

A general client spends most of its time on what a POST of ours never has: cookies, redirects, proxies,
streams, retries. Here a request is one write, and its answer one future and one timer (decision 0048).
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
"""As `getaddrinfo` gives them."""
MakeSocket = Callable[[AddrInfo], socket.socket]
"""Makes the socket for one resolved address, or raises `OSError` when it may not be connected."""
Resolve = Callable[[str, int], Awaitable[Sequence[AddrInfo]]]
"""Gives the addresses of a name."""

NEXT_ADDRESS_S: Final = 0.25
"""After so long without a connection the next address of a name is tried beside it. Source: RFC 8305."""
NO_FINAL_ANSWER: Final = 200
"""Statuses below it announce an answer, and are none."""
OURS: Final = frozenset({"content-length", "transfer-encoding", "connection", "host"})
"""Headers that say how the request is sent: nobody else sets them."""


class NotReached(OSError):
    """There was no connection, so that nothing was sent; its cause says why."""


class AnswerLost(OSError):
    """The request may have arrived; a whole answer has not."""


class NotHttp(AnswerLost):
    """What came back is no HTTP response."""


class TimedOut(AnswerLost):
    """No answer in time."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer.

    Attributes:
        headers: in order, with lower-case names.
        body: as far as it is kept.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class _Place:
    """An address as it is spoken to."""

    host: str
    port: int
    is_tls: bool
    opening: bytes  # the request's first lines


class Posts:
    """Connections by address, and POSTs over them.

    Args:
        per_address: connections to one address at most.
        idle_s: how long an idle connection is kept: less than any server does, so that none is
            reused in the moment the other side closes it.
        connect_s: for a connection: a free place, the name's look-up, TCP and TLS.
        keep_bytes: of an answer's body; what is beyond is not read.
        make_socket: where the caller vets each address.
        resolve: where the caller knows names better than the system.
    """

    def __init__(
        self,
        *,
        per_address: int,
        idle_s: float,
        connect_s: float,
        keep_bytes: int,
        make_socket: MakeSocket | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        self._per_address = per_address
        self._idle_s = idle_s
        self._connect_s = connect_s
        self._keep_bytes = keep_bytes
        self._make_socket = make_socket
        self._resolve = resolve or _resolve
        self._pools: dict[tuple[str, int, bool], _Pool] = {}
        self._tls: ssl.SSLContext | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False

    async def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        within_s: float,
        may_go: Callable[[], bool] | None = None,
    ) -> Reply:
        """Post bytes; follows nothing, decodes nothing, tries nothing twice.

        Args:
            url: of http or https.
            body: sent as it is.
            headers: the last of one name counts; those of `OURS` are left out.
            within_s: for everything together.
            may_go: asked in the moment before it is sent, however long a connection has taken.

        Raises:
            NotReached: nothing was sent.
            AnswerLost: it may have been.
            ValueError: the address or a header cannot be sent at all.
        """
        if self._closed:
            raise NotReached("the client is closed")
        place = _place_of(url)
        request = place.opening + _lines(headers, len(body)) + body
        key = (place.host, place.port, place.is_tls)
        pool = self._pools.get(key)
        if pool is None:
            pool = self._pools[key] = _Pool(self._per_address)
        loop = asyncio.get_running_loop()
        until_s = loop.time() + within_s
        pool.users += 1
        try:
            line = None if pool.places.locked() else pool.take(loop.time() - self._idle_s)
            if line is None:
                line = await self._line(pool, place, min(self._connect_s, within_s))
            else:
                await pool.places.acquire()  # not locked: it does not wait
            try:
                if may_go is not None and not may_go():
                    line.close()
                    raise NotReached("it may not be sent any more")
                return await line.exchange(request, until_s)
            finally:
                pool.places.release()
        finally:
            pool.users -= 1
            if self._sweep is None:
                self._sweep = loop.call_later(self._idle_s, self._close_idle)

    async def close(self) -> None:
        """Close every connection; what is under way is lost."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for pool in self._pools.values():
            pool.close_idle(float("inf"))
        await asyncio.sleep(0)  # the transports close in the loop's next turn

    async def _line(self, pool: "_Pool", place: _Place, within_s: float) -> "_Line":
        """A connection with its place in the pool, once one is free."""
        has_place = False
        try:
            async with asyncio.timeout(within_s):
                has_place = await pool.places.acquire()
                loop = asyncio.get_running_loop()
                line = pool.take(loop.time() - self._idle_s)
                return line or await self._connect(pool, place)
        except BaseException as error:
            if has_place:
                pool.places.release()
            if isinstance(error, TimeoutError):
                raise NotReached(f"no connection within {within_s:g} s") from error
            if isinstance(error, OSError):  # TLS included
                raise NotReached(str(error)) from error
            raise

    async def _connect(self, pool: "_Pool", place: _Place) -> "_Line":
        loop = asyncio.get_running_loop()
        found = await self._resolve(place.host, place.port)
        bound = await aiohappyeyeballs.start_connection(  # pyright: ignore[reportUnknownMemberType]
            list(found), happy_eyeballs_delay=NEXT_ADDRESS_S, interleave=1, loop=loop, socket_factory=self._make_socket
        )
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if place.is_tls and self._tls is None:
            self._tls = await loop.run_in_executor(None, ssl.create_default_context)
        try:
            _, line = await loop.create_connection(
                lambda: _Line(pool, loop, self._keep_bytes),
                sock=bound,
                ssl=self._tls if place.is_tls else None,
                server_hostname=place.host if place.is_tls else None,
            )
        except BaseException:
            bound.close()
            raise
        return line

    def _close_idle(self) -> None:
        loop = asyncio.get_running_loop()
        for key, pool in list(self._pools.items()):
            pool.close_idle(loop.time() - self._idle_s)
            if not pool.users and not pool.idle:
                del self._pools[key]
        self._sweep = loop.call_later(self._idle_s, self._close_idle) if self._pools else None


class _Pool:
    """The connections to one address.

    Attributes:
        users: how many requests know it.
    """

    __slots__ = ("idle", "places", "users")

    def __init__(self, at_most: int) -> None:
        self.places = asyncio.Semaphore(at_most)
        self.idle: list[_Line] = []  # the one used last is at the end
        self.users = 0

    def take(self, since_s: float) -> "_Line | None":
        """The connection used last, unless it has been idle for longer."""
        while self.idle:
            line = self.idle.pop()
            if line.idle_since_s > since_s and not line.transport.is_closing():
                return line
            line.close()
        return None

    def close_idle(self, since_s: float) -> None:
        """Close those that have been idle for longer."""
        for line in [line for line in self.idle if line.idle_since_s <= since_s]:
            self.idle.remove(line)
            line.close()


class _Line(asyncio.Protocol):
    """One connection: one request at a time, and its answer."""

    __slots__ = (
        "_answer", "_body", "_has_end", "_headers", "_is_known", "_keep_bytes", "_loop", "_parser",
        "_pool", "_size", "_status", "idle_since_s", "transport",
    )  # fmt: skip

    def __init__(self, pool: _Pool, loop: asyncio.AbstractEventLoop, keep_bytes: int) -> None:
        self._pool = pool
        self._loop = loop
        self._keep_bytes = keep_bytes
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[Reply] | None = None
        self._forget()
        self.idle_since_s = 0.0
        self.transport: Any = None

    async def exchange(self, request: bytes, until_s: float) -> Reply:
        """Send a request, give its answer."""
        answer = self._answer = self._loop.create_future()
        timer = self._loop.call_at(until_s, self._time_out)
        self.transport.write(request)
        try:
            return await answer
        finally:
            timer.cancel()
            if answer.cancelled():  # whoever asked went away: what still comes is nobody's
                self.close()

    def close(self) -> None:
        """End the connection."""
        self._answer = None
        self.transport.abort()

    # What the transport says.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self._answer is None:  # nobody asked
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(NotHttp(f"what was answered is not HTTP: {error}"[:300]))

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None and self._is_known and not self._has_end:
            self._finish(keep=False)  # an answer without a length ends with its connection
        else:
            why = f": {exc}" if exc else ""
            self._fail(AnswerLost(f"the connection was closed before the answer{why}"))
        if self in self._pool.idle:
            self._pool.idle.remove(self)

    # What the parser says.

    def on_header(self, name: bytes, value: bytes) -> None:
        lower = name.decode("latin-1").lower()
        self._headers.append((lower, value.decode("utf-8", "replace")))
        if lower in ("content-length", "transfer-encoding"):
            self._has_end = True

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()
        self._is_known = self._status >= NO_FINAL_ANSWER

    def on_body(self, body: bytes) -> None:
        if self._is_known and self._size < self._keep_bytes:
            self._body.append(body)
            self._size += len(body)
            if self._size > self._keep_bytes:
                self._finish(keep=False)

    def on_message_complete(self) -> None:
        if self._is_known:
            self._finish(keep=self._parser.should_keep_alive())
        else:
            self._forget()

    def _time_out(self) -> None:
        if self._is_known:  # the status has come, and what it says will not change
            self._finish(keep=False)
        else:
            self._fail(TimedOut("no answer in time"))

    def _finish(self, *, keep: bool) -> None:
        answer, self._answer = self._answer, None
        if answer is None:  # a second answer to one request
            self.close()
            return
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        reply = Reply(self._status, tuple(self._headers), body[: self._keep_bytes])
        self._forget()
        if not answer.done():
            answer.set_result(reply)
        if keep and not self.transport.is_closing():
            self.idle_since_s = self._loop.time()
            self._pool.idle.append(self)
        else:
            self.close()

    def _fail(self, error: AnswerLost) -> None:
        answer = self._answer
        if answer is not None and not answer.done():
            answer.set_exception(error)
        self.close()

    def _forget(self) -> None:
        self._headers: list[tuple[str, str]] = []
        self._body: list[bytes] = []
        self._size = 0
        self._status = 0
        self._is_known = False
        self._has_end = False


@lru_cache(maxsize=4096)
def _place_of(url: str) -> _Place:
    """Where and how to speak to an address.

    Raises:
        ValueError: it is none of http or https.
    """
    parsed = URL(url)
    if parsed.scheme not in ("http", "https") or not parsed.raw_host or not parsed.port:
        raise ValueError(f"{url[:200]} is no address of http or https")
    opening = f"POST {parsed.raw_path_qs or '/'} HTTP/1.1\r\nHost: {parsed.host_port_subcomponent}\r\n"
    if parsed.user is not None:
        secret = base64.b64encode(f"{parsed.user}:{parsed.password or ''}".encode()).decode()
        opening += f"Authorization: Basic {secret}\r\n"
    if "\r" in opening.replace("\r\n", "") or opening.isascii() is False:
        raise ValueError(f"{url[:200]} cannot be sent")
    return _Place(parsed.raw_host, parsed.port, parsed.scheme == "https", opening.encode())


def _lines(headers: Mapping[str, str], length: int) -> bytes:
    """A request's headers, and the empty line that ends them.

    Raises:
        ValueError: a header has a line break in it.
    """
    wanted = {name.lower(): f"{name}: {value}\r\n" for name, value in headers.items()}
    for name in OURS & wanted.keys():
        del wanted[name]
    text = "".join(wanted.values())
    if not text.count("\r") == text.count("\n") == len(wanted) or "\0" in text:
        raise ValueError("a header has a line break or a zero in it")
    return f"Accept: */*\r\nAccept-Encoding: identity\r\n{text}Content-Length: {length}\r\n\r\n".encode()


async def _resolve(host: str, port: int) -> Sequence[AddrInfo]:
    loop = asyncio.get_running_loop()
    return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
