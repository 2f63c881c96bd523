"""Listeners on loopback with a limit of connections, and the counts of what is not intercepted."""

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from waypost.interception.request_relay import MAX_HEAD_BYTES, Streams

LOOPBACK: Final = "127.0.0.1"
MAX_CONNECTIONS: Final = 200
"""Of one listener; a further one is closed at once. A connection by the proxy has four descriptors, of 1024."""
_BACKLOG: Final = 1024
_HANDSHAKE_TIMEOUT_S: Final = 10
_RETRY_ACCEPT_S: Final = 0.1
_MAX_NAMES: Final = 200
_MORE_NAMES: Final = "further hosts"
ServeConnection = Callable[[Streams], Awaitable[None]]


class Outcomes:
    """Counts of connections that are not intercepted, by the name of the host.

    Attributes:
        passed: number of connections that were passed on.
        blocked: number of connections that were blocked.
        turned_away: number of connections beyond the limit.
    """

    def __init__(self) -> None:
        self.passed: Counter[str] = Counter()
        self.blocked: Counter[str] = Counter()
        self.turned_away = 0

    def count_passed(self, name: str) -> None:
        """Count a connection that is passed on."""
        self._count(self.passed, name)

    def count_blocked(self, name: str) -> None:
        """Count a connection that is blocked; called from other threads, too."""
        self._count(self.blocked, name)

    @staticmethod
    def _count(counts: Counter[str], name: str) -> None:
        counts[name[:_MAX_NAMES] if name in counts or len(counts) < _MAX_NAMES else _MORE_NAMES] += 1


class LoopbackListener:
    """Accepts connections at a free port of loopback until it is closed.

    Attributes:
        port: where it listens.

    Args:
        serve: called with each connection, which is closed at its end.
        context: None: without TLS.
    """

    def __init__(self, serve: ServeConnection, context: ssl.SSLContext | None, outcomes: Outcomes) -> None:
        self._serve = serve
        self._context = context
        self._outcomes = outcomes
        self._open: set[asyncio.Task[None]] = set()
        self._socket = socket.create_server((LOOPBACK, 0), backlog=_BACKLOG)
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        self._accepting = asyncio.ensure_future(self._accept())

    async def close(self) -> None:
        """End it and its connections."""
        tasks = (self._accepting, *self._open)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._socket.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._socket)
            except OSError:  # no descriptor is left; some will be
                await asyncio.sleep(_RETRY_ACCEPT_S)
                continue
            if len(self._open) >= MAX_CONNECTIONS:
                self._outcomes.turned_away += 1
                accepted.close()
                continue
            task = asyncio.ensure_future(self._serve_socket(accepted))
            self._open.add(task)
            task.add_done_callback(self._open.discard)

    async def _serve_socket(self, accepted: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=MAX_HEAD_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        timeout_s = _HANDSHAKE_TIMEOUT_S if self._context else None
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol, accepted, ssl=self._context, ssl_handshake_timeout=timeout_s
            )
        except OSError:  # it ended in the handshake
            accepted.close()
            return
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        try:
            await self._serve((reader, writer))
        except (OSError, EOFError):  # the client is gone, or its TLS is broken
            pass
        finally:
            writer.close()
