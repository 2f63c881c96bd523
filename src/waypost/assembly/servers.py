"""HTTP servers whose signals are ours, on sockets that are bound before anything else is opened."""

import asyncio
import contextlib
import gc
import os
import signal
import socket
import struct
import sys
import threading
from collections.abc import Generator
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

KEEP_ALIVE_S: Final = 75
"""Longer than any pool of ours keeps an idle connection (design, section 4)."""


class PortInUse(Exception):
    """Somebody else listens there; the text says what to do."""


def settle_memory() -> None:
    """Once per process, when everything is set up: what lives now lives on, so look at it no more.

    What is allocated for a request is nearly all freed by counting; the collector is for the rest
    and need not run every 700 objects. It took an eighth of the street's processor time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 100)


def bind(host: str, port: int, *, option: str) -> socket.socket:
    """A listening socket.

    Args:
        host: an address or name.
        port: 0 takes a free one.
        option: what sets the port, for the remedy.

    Raises:
        PortInUse: the port is taken, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise PortInUse(
            f"cannot listen on {host}:{port} ({why}); stop what listens there, or choose another port "
            f"with {option}"
        ) from error
    # Connections inherit it. A loop sets it by itself only on sockets made with a protocol number,
    # and without it head and body of an answer may be 40 ms apart.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return bound


def port_of(bound: socket.socket) -> int:
    """The port a socket listens on."""
    return bound.getsockname()[1]


class HttpServer:
    """One ASGI application on one socket; it hears no signals of its own."""

    def __init__(self, application: Any, bound: socket.socket) -> None:
        self._socket = bound
        self._server = _QuietServer(
            uvicorn.Config(
                application,
                log_config=None,
                access_log=False,
                lifespan="off",
                loop="none",
                ws="none",
                http=LineProtocol,
                interface="asgi3",
                server_header=False,
                proxy_headers=False,  # who connects is who asks, until proxies can be named
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=5,
            )
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
        self._server.should_exit = True
        if self._serving is not None:
            await self._serving


class LineProtocol(HttpToolsProtocol):
    """HTTP by httptools; an application may break the connection that its request came on.

    ASGI has no word for this, so it is an extension of the scope, `waypost.line`: an object with
    `reset()`, `hang_up()` and `withhold()`. The simulator's faults need it, and nothing else uses it.
    """

    _is_withheld = False

    def on_message_begin(self) -> None:
        """A request begins: its scope gets the extension."""
        super().on_message_begin()
        self._is_withheld = False
        self.scope["extensions"] = {"waypost.line": self}  # pyright: ignore[reportGeneralTypeIssues]

    def reset(self) -> None:
        """Break the connection at once, as a machine does that has crashed: the client sees a reset."""
        bound = self.transport.get_extra_info("socket")
        if bound is not None:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def hang_up(self) -> None:
        """Close the connection after what has been written, however much of the answer is missing."""
        self.transport.close()

    def withhold(self) -> None:
        """This request will not be answered: a server that stops need not wait for it."""
        self._is_withheld = True

    def shutdown(self) -> None:
        """The server stops: finish what is being answered."""
        super().shutdown()
        if self._is_withheld:
            self.transport.abort()


def is_broken(scope: Any) -> bool:
    """Whether the connection that a request came on is no more."""
    line: LineProtocol = scope["extensions"]["waypost.line"]
    return line.transport.is_closing()


class _QuietServer(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


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


def hear_end_of_input(told: asyncio.Event) -> None:
    """Set an event when standard input ends, as the pipe from a program does that is no more.

    A signal can be missed, and a program that is killed by force sends none; its pipes always end.
    """
    loop = asyncio.get_running_loop()
    source = sys.stdin.fileno()

    def read() -> None:
        with contextlib.suppress(OSError):
            while os.read(source, 4096):
                pass
        with contextlib.suppress(RuntimeError):  # the loop has ended before
            loop.call_soon_threadsafe(told.set)

    # Past the buffer of sys.stdin, whose lock a thread that waits would hold at the end of the process.
    threading.Thread(target=read, name="end-of-input", daemon=True).start()
