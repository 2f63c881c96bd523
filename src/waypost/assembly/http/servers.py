"""HTTP servers whose signals are ours."""

import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Generator
from functools import partial
from typing import Any, Final, cast

import uvicorn

from waypost.assembly.http.limits import DEFAULT_LIMITS, Connections, ErrorBody, HttpLimits, service_error_body
from waypost.assembly.http.protocol import LineProtocol as LineProtocol
from waypost.assembly.http.sockets import PortInUse as PortInUse
from waypost.assembly.http.sockets import bind as bind
from waypost.assembly.http.sockets import port_of as port_of
from waypost.base.telemetry.logs import log

KEEP_ALIVE_S: Final = 75
"""Longer than any pool of ours keeps an idle connection (decision 0014)."""


TURNS_OF_AN_ACCEPT: Final = 5
"""More turns of the loop than pass from the moment a connection is taken from the system until it is known here."""

SWITCH_S: Final = 0.0005
"""How long the loop may keep the writer waiting for the interpreter. A write goes in and out of the
interpreter for every row, and at the usual 5 ms it waits at every turn while the loop is busy: on two
shared cores the street carried 269 messages a second instead of 152 (benchmarks/README.md)."""


def settle_memory() -> None:
    """Once per process, when everything is set up: what lives now lives on, so look at it no more.

    What is allocated for a request is nearly all freed by counting; the collector is for the rest
    and need not run every 700 objects. It took an eighth of the street's processor time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 100)
    sys.setswitchinterval(SWITCH_S)


class HttpServer:
    """One ASGI application on one socket; it hears no signals of its own.

    Args:
        application: what answers.
        bound: a listening socket.
        stop_within_s: how long a stop lets requests be answered that have been asked.
        limits: of its connections.
        error_body: the shape of the errors that the server itself answers.

    Attributes:
        connections: those that are open.
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
        self._server = _QuietServer(
            uvicorn.Config(
                application,
                log_config=None,
                access_log=False,
                lifespan="off",
                loop="none",
                ws="none",
                http=cast("Any", partial(LineProtocol, limited_by=self.connections)),
                interface="asgi3",
                server_header=False,
                proxy_headers=False,  # uvicorn reads the last header only; `api/http/proxies.py` reads them all
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=cast("Any", stop_within_s),  # fractions of seconds too
            ),
            self.connections,
        )
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Return once requests are answered."""
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started:
            if self._serving.done():
                self._serving.result()
            await asyncio.sleep(0.001)

    async def stop(self) -> None:
        """Take no new connections, answer what has been asked, and end."""
        self._server.leave()
        if self._serving is not None:
            await self._serving


class _QuietServer(uvicorn.Server):
    """Hears no signals, and ends when it is told to.

    The original looks every tenth of a second whether it should end, sleeps as long again, and then
    looks in such steps whether its connections have.
    """

    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self._connections = connections
        self._log = log("assembly")
        self._told = asyncio.Event()

    def leave(self) -> None:
        """Begin to end."""
        self.should_exit = True
        self._told.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def main_loop(self) -> None:
        """Set the date that answers carry, and look at deadlines, until told to end."""
        every_s = min(1, self._connections.limits.header_timeout_s / 4)
        while not await self.on_tick(0):
            try:
                self._connections.check_deadlines(asyncio.get_running_loop().time())
            except Exception:  # noqa: BLE001  logged; a server goes on listening
                self._log.exception("deadlines of connections could not be checked")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(every_s):
                    await self._told.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close what listens; let what is being answered end, or cut it off."""
        for listening in sockets or []:
            # The standard library's loop loses a connection whose server is closed while it is accepted.
            asyncio.get_running_loop().remove_reader(listening)
        for _ in range(TURNS_OF_AN_ACCEPT):
            await asyncio.sleep(0)
        for listening in (*self.servers, *(sockets or [])):
            listening.close()
        state = self.server_state
        try:
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                for _ in range(TURNS_OF_AN_ACCEPT):
                    await self._end_connections()
                    await asyncio.sleep(0)
        except TimeoutError:
            for task in state.tasks:
                task.cancel()

    async def _end_connections(self) -> None:
        """Tell each connection to end, those that are only just being accepted too, and wait for all."""
        state, told = self.server_state, set[Any]()
        while state.connections or state.tasks:
            for connection in state.connections - told:
                connection.shutdown()
                told.add(connection)
            await asyncio.sleep(0.002)  # their end is not told


async def signalled() -> None:
    """Return at the first SIGINT or SIGTERM from now on."""
    await hear_signals().wait()


def hear_signals() -> asyncio.Event:
    """An event that the first SIGINT or SIGTERM from now on sets.

    Asked for before anything is opened, so that a signal in the middle of a start stops it in order.
    A later one ends the process at once, which loses nothing: whatever was acknowledged is on disk.
    One within the same second does not count: a terminal and a supervisor may send the same twice.
    """
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    first_s: list[float] = []

    def hear(number: int) -> None:
        if first_s and loop.time() - first_s[0] > 1:
            os._exit(128 + number)
        first_s.append(loop.time())
        told.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, hear, number)
    return told


def hear_end_of_input(told: asyncio.Event, *, within_s: float | None = None) -> None:
    """Set an event when standard input ends, as the pipe from a program does that is no more.

    A signal can be missed, and a program that is killed by force sends none; its pipes always end.

    Args:
        told: to be set.
        within_s: end this process by force so long after that, whatever its loop is at; None: never.
    """
    loop = asyncio.get_running_loop()
    source = sys.stdin.fileno()

    def read() -> None:
        with contextlib.suppress(OSError):
            while os.read(source, 4096):
                pass
        with contextlib.suppress(RuntimeError):  # the loop has ended before
            loop.call_soon_threadsafe(told.set)
        if within_s is not None:
            time.sleep(within_s)
            os._exit(1)

    # Past the buffer of sys.stdin, whose lock a thread that waits would hold at the end of the process.
    threading.Thread(target=read, name="end-of-input", daemon=True).start()
