"""What connects two parties, and can be torn: a network of its own where that is permitted, else a go-between."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections.abc import Coroutine
from typing import Any, Final, Protocol

from crashes.processes import free_port

NETWORK: Final = "10.213"
"""The first half of the addresses of networks of a run's own; they exist on this machine only."""


class Wire(Protocol):
    """Between the service and one other party."""

    async def cut(self) -> None:
        """Let nothing through from now on, and tell nobody."""
        ...

    async def mend(self) -> None:
        """Let everything through again."""
        ...

    async def reset(self) -> None:
        """Break every connection that is open."""
        ...

    async def close(self) -> None:
        """End it."""
        ...


class Namespace:
    """A network namespace, joined to ours by a pair of interfaces.

    Attributes:
        near, far: the addresses of our end and of the other.
        prefix: words before a command that is to live there.
    """

    def __init__(self, number: int) -> None:
        mark = os.getpid() % 10_000
        self._name = f"waypost-{mark}-{number}"
        self._ours, self._theirs = f"wp{mark}o{number}", f"wp{mark}t{number}"
        third = os.getpid() % 250
        self.near = f"{NETWORK}.{third}.{4 * number + 1}"
        self.far = f"{NETWORK}.{third}.{4 * number + 2}"
        self.prefix = ("ip", "netns", "exec", self._name)

    def open(self) -> None:
        """Make it.

        Raises:
            OSError: that is not permitted here.
        """
        _ip("netns", "add", self._name)
        _ip("link", "add", self._ours, "type", "veth", "peer", "name", self._theirs,
            "netns", self._name)  # fmt: skip
        _ip("address", "add", f"{self.near}/30", "dev", self._ours)
        _ip("link", "set", self._ours, "up")
        _ip("-n", self._name, "address", "add", f"{self.far}/30", "dev", self._theirs)
        _ip("-n", self._name, "link", "set", self._theirs, "up")
        _ip("-n", self._name, "link", "set", "lo", "up")

    async def cut(self) -> None:
        """Take the cable out at the far end: what we send goes nowhere, and nobody says so."""
        _ip("-n", self._name, "link", "set", self._theirs, "down")

    async def mend(self) -> None:
        """Put the cable in."""
        _ip("-n", self._name, "link", "set", self._theirs, "up")

    async def reset(self) -> None:
        """Nothing: a network tells nobody."""

    async def close(self) -> None:
        """Take it away, with both interfaces."""
        with contextlib.suppress(OSError):
            _ip("link", "delete", self._ours)
        with contextlib.suppress(OSError):
            _ip("netns", "delete", self._name)


def namespaces_permitted() -> bool:
    """Whether networks of our own can be made here."""
    if shutil.which("ip") is None or os.getuid() != 0:
        return False
    probe = Namespace(60)
    try:
        probe.open()
    except OSError:
        return False
    finally:
        asyncio.run(probe.close())
    return True


class GoBetween:
    """A TCP go-between: passes bytes on, or keeps them, or breaks what is open.

    Args:
        host, port: whom it stands before.

    Attributes:
        port: where it listens, on loopback.
    """

    def __init__(self, host: str, port: int) -> None:
        self._to = (host, port)
        self.port = free_port()
        self._passes = asyncio.Event()
        self._passes.set()
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._join, "127.0.0.1", self.port, backlog=1000)

    async def cut(self) -> None:
        """Keep every byte; connections are taken and nothing comes of them."""
        self._passes.clear()

    async def mend(self) -> None:
        """Pass on what was kept, and everything from now on."""
        self._passes.set()

    async def reset(self) -> None:
        """Break every connection with a reset."""
        for writer in list(self._open):
            writer.transport.abort()

    async def close(self) -> None:
        """End it."""
        self._server.close()
        await self.reset()
        for task in list(self._tasks):
            task.cancel()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            await self._passes.wait()
            far_reader, far_writer = await asyncio.open_connection(*self._to)
        except OSError:
            writer.transport.abort()
            self._open.discard(writer)
            return
        self._open.add(far_writer)
        self._start(self._pass_on(reader, far_writer))
        self._start(self._pass_on(far_reader, writer))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while read := await reader.read(65536):
                await self._passes.wait()
                writer.write(read)
                await writer.drain()
            await self._passes.wait()
            writer.close()
        except OSError:
            writer.transport.abort()
        finally:
            self._open.discard(writer)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=10, check=False)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")
