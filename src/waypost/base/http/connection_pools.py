"""Pools of HTTP/1.1 connections by address: slots, idle connections, and how a new one is made."""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import aiohappyeyeballs

from waypost.base.error_texts import error_text
from waypost.base.http.connections import Deadlines, NotConnected, PooledConnection

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
        self._deadlines = Deadlines()
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
        if pool is None or not pool.free_slots:
            return None
        connection = pool.take_idle(now_s - self._idle_s)
        if connection is not None:
            pool.free_slots -= 1
        return connection

    async def connect(self, key: PoolKey, timeout_s: float) -> "PooledConnection":
        """Return a connection with its slot, once one is free: an idle one, or a new one.

        Raises:
            NotConnected: none was made in time, or at all.
        """
        timeout_s = min(self._connect_s, timeout_s)
        pool = self._pools.get(key)
        if pool is None:
            pool = self._pools[key] = _ConnectionPool(self._max_per_address)
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(self._idle_s, self._close_idle)
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
        free_slots: how many connections may still be made or used; while any waits for a slot, none is free.
        idle: the last used one is at the end.
        waiting: for a slot, the first first.
    """

    __slots__ = ("_max_slots", "free_slots", "idle", "waiting")

    def __init__(self, max_connections: int) -> None:
        self.idle: list[PooledConnection] = []
        self._max_slots = self.free_slots = max_connections
        self.waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_unused(self) -> bool:
        """True if no request uses it or waits for it, and it has no connection."""
        return self.free_slots == self._max_slots and not self.waiting and not self.idle

    async def acquire(self) -> None:
        """Take a slot once one is free; those that wait get theirs in turn."""
        if self.free_slots:
            self.free_slots -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self.waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self.waiting.remove(turn)
            else:  # it has just got a slot
                self.release()
            raise

    def release(self) -> None:
        """Return a slot, or pass it on to the first that waits."""
        for turn in self.waiting:
            if not turn.done():
                turn.set_result(None)
                self.waiting.remove(turn)
                return
        self.free_slots += 1

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


async def _resolve(host: str, port: int) -> Sequence[AddrInfo]:
    loop = asyncio.get_running_loop()
    return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
