"""HTTP servers that leave signals to us."""

import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Generator, Iterable, Iterator, MutableSet
from functools import partial
from typing import Any, Final, TypeVar, cast

import uvicorn

from waypost.assembly.http.limits import DEFAULT_LIMITS, Connections, ErrorBody, HttpLimits, service_error_body
from waypost.assembly.http.protocol import BreakableProtocol as BreakableProtocol
from waypost.assembly.http.sockets import PortInUse as PortInUse
from waypost.assembly.http.sockets import bind_socket as bind_socket
from waypost.assembly.http.sockets import drop_connects
from waypost.assembly.http.sockets import port_of as port_of
from waypost.base.telemetry.logs import log

KEEP_ALIVE_S: Final = 75
"""Longer than any pool of ours keeps an idle connection (decision 0014)."""


ACCEPT_ITERATIONS: Final = 5
"""More iterations of the loop than pass between the accept of a connection and its entry in `connections`."""

HANDSHAKE_S: Final = 0.2
"""Longer than a connection from a proxy takes to be established and accepted."""

SWITCH_INTERVAL_S: Final = 0.0005
"""Interval at which the interpreter switches threads. A write releases and takes the interpreter lock for
every row, and at the default of 5 ms it waits each time while the loop is busy: on two shared cores the
pipeline carried 269 messages a second instead of 152 (benchmarks/README.md)."""


def tune_garbage_collector() -> None:
    """Exclude the objects of the start-up from garbage collection; called once per process.

    Reference counting frees nearly everything that a request allocates, so the collector need not run
    every 700 objects. It took an eighth of the pipeline's processor time. Of the 240,000 objects of a start-up,
    3,000 are garbage: a collection before, which would free them, took 0.1 s.
    """
    gc.freeze()
    gc.set_threshold(20_000, 10, 100)
    sys.setswitchinterval(SWITCH_INTERVAL_S)


class HttpServer:
    """One ASGI application on one socket; it installs no signal handlers.

    Args:
        application: serves the requests.
        bound: a listening socket.
        stop_within_s: how long a stop waits for open requests.
        limits: of its connections.
        error_body: returns the body of an error of the server itself.

    Attributes:
        connections: its open connections.
    """

    def __init__(
        self,
        application: Any,
        bound: socket.socket,
        *,
        stop_within_s: float = 5,
        limits: HttpLimits = DEFAULT_LIMITS,
        error_body: ErrorBody = service_error_body,
    ) -> None:
        self._socket = bound
        self.connections = Connections(limits, error_body)
        self._server = _SignalFreeServer(
            uvicorn.Config(
                application,
                log_config=None,
                access_log=False,
                lifespan="off",
                loop="none",
                ws="none",
                http=cast("Any", partial(BreakableProtocol, connections=self.connections)),
                interface="asgi3",
                server_header=False,
                proxy_headers=False,  # uvicorn reads the last header only; `api/access_log.py` reads them all
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=cast("Any", stop_within_s),  # a float works too
            ),
            self.connections,
        )
        self._serve_task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Return once requests are served."""
        self._serve_task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started:
            if self._serve_task.done():
                self._serve_task.result()
            await asyncio.sleep(0.001)

    def begin_drain(self) -> None:
        """Serve on, but close each connection after its next response, which says so.

        A proxy that keeps idle connections for a shorter time than the drain takes has none left at its end.
        """
        self.connections.begin_drain()

    async def stop(self) -> None:
        """Accept no new connections, complete open requests, and end."""
        self._server.should_exit = True
        self._server.stop_requested.set()
        if self._serve_task is not None:
            await self._serve_task


Member = TypeVar("Member")


class OrderedSet(MutableSet[Member]):
    """A set whose members are in the order in which they were added."""

    def __init__(self, members: Iterable[Member] = ()) -> None:
        self._members = dict.fromkeys(members)

    def __contains__(self, member: object) -> bool:
        """Return True if it is in the set."""
        return member in self._members

    def __iter__(self) -> Iterator[Member]:
        """Return the members, the oldest first."""
        return iter(self._members)

    def __len__(self) -> int:
        """Return the number of members."""
        return len(self._members)

    def add(self, value: Member) -> None:
        """Add a member."""
        self._members[value] = None

    def discard(self, value: Member) -> None:
        """Remove a member, if it is there."""
        self._members.pop(value, None)


class _SignalFreeServer(uvicorn.Server):
    """A uvicorn server without signal handlers, which ends when `leave` is called.

    The original polls every tenth of a second whether it should end, and then in the same steps whether
    its connections have ended.
    """

    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self._connections = connections
        # A stop ends them in this order, and not in one that follows from where they are in memory.
        self.server_state.connections = cast("Any", OrderedSet[Any]())
        self.server_state.tasks = cast("Any", OrderedSet[Any]())
        self._log = log("assembly")
        self.stop_requested = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def main_loop(self) -> None:
        """Update the `Date` header and check deadlines, until `leave` is called."""
        every_s = min(1, self._connections.limits.header_timeout_s / 4)
        while not await self.on_tick(0):
            try:
                self._connections.check_deadlines(asyncio.get_running_loop().time())
            except Exception:  # noqa: BLE001  logged; a server goes on listening
                self._log.exception("deadlines of connections could not be checked")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(every_s):
                    await self.stop_requested.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the listening sockets; wait for open requests, and cancel them after the timeout."""
        if self._connections.is_draining and all(map(drop_connects, sockets or [])):
            await asyncio.sleep(HANDSHAKE_S)  # what is connected already is accepted, and gets its response
        self._connections.begin_drain()
        for listening in sockets or []:
            # The standard library's loop loses a connection if its server is closed during the accept.
            asyncio.get_running_loop().remove_reader(listening)
        for _ in range(ACCEPT_ITERATIONS):
            await asyncio.sleep(0)
        for listening in (*self.servers, *(sockets or [])):
            listening.close()
        state = self.server_state
        try:
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                for _ in range(ACCEPT_ITERATIONS):
                    await self._end_connections()
                    await asyncio.sleep(0)
        except TimeoutError:
            for task in list(state.tasks):
                task.cancel()

    async def _end_connections(self) -> None:
        """Shut down every connection, also those being accepted, and wait for all."""
        state, notified = self.server_state, set[Any]()
        while state.connections or state.tasks:
            for connection in [each for each in state.connections if each not in notified]:
                connection.shutdown()
                notified.add(connection)
            await asyncio.sleep(0.002)  # uvicorn has no event for their end


def handle_stop_signals() -> asyncio.Event:
    """Return an event that the first SIGINT or SIGTERM from now on sets.

    Called before anything is opened, so that a signal during a start stops it in order. A second signal
    ends the process at once, which loses nothing: everything acknowledged is on disk. A second one within
    a second is ignored: a terminal and a supervisor may both send it.
    """
    stop_event = asyncio.Event()
    loop = asyncio.get_running_loop()
    first_s: list[float] = []

    def handle_signal(number: int) -> None:
        if first_s and loop.time() - first_s[0] > 1:
            os._exit(128 + number)
        first_s.append(loop.time())
        stop_event.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, handle_signal, number)
    return stop_event


def watch_end_of_input(stop_event: asyncio.Event, *, exit_after_s: float | None = None) -> None:
    """Set an event when standard input ends, as a pipe does when the program at its other end is gone.

    A signal can be missed, and a killed program sends none; its pipes always close.

    Args:
        exit_after_s: exit this process so long after that, even if its loop is blocked; None: never.
    """
    loop = asyncio.get_running_loop()
    source = sys.stdin.fileno()

    def read() -> None:
        with contextlib.suppress(OSError):
            while os.read(source, 4096):
                pass
        with contextlib.suppress(RuntimeError):  # the loop has ended already
            loop.call_soon_threadsafe(stop_event.set)
        if exit_after_s is not None:
            time.sleep(exit_after_s)
            os._exit(1)

    # Reads the descriptor: a thread that waits in sys.stdin would hold its lock at the end of the process.
    threading.Thread(target=read, name="end-of-input", daemon=True).start()
