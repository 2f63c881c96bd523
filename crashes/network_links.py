"""Links between two processes that can be cut: a network namespace where permitted, otherwise a proxy."""

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
"""The first half of the addresses of the networks of a run; they exist on this machine only."""


class NetworkLink(Protocol):
    """A link between the service and one other process."""

    async def cut(self) -> None:
        """Drop everything from now on, without an error."""
        ...

    async def restore(self) -> None:
        """Pass everything again."""
        ...

    async def reset(self) -> None:
        """Reset every open connection."""
        ...

    async def close(self) -> None:
        """Remove the link."""
        ...


class NetworkNamespace:
    """A network namespace, connected to ours by a pair of interfaces.

    Attributes:
        near, far: the addresses of our end and of the other.
        prefix: arguments before a command that is to run there.
    """

    def __init__(self, number: int) -> None:
        suffix = os.getpid() % 10_000
        self._name = f"waypost-{suffix}-{number}"
        self._ours, self._theirs = f"wp{suffix}o{number}", f"wp{suffix}t{number}"
        third = os.getpid() % 250
        self.near = f"{NETWORK}.{third}.{4 * number + 1}"
        self.far = f"{NETWORK}.{third}.{4 * number + 2}"
        self.prefix = ("ip", "netns", "exec", self._name)

    def open(self) -> None:
        """Create it.

        Raises:
            OSError: not permitted on this machine.
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
        """Set the far interface down: packets are dropped without an error."""
        _ip("-n", self._name, "link", "set", self._theirs, "down")

    async def restore(self) -> None:
        """Set the far interface up again."""
        _ip("-n", self._name, "link", "set", self._theirs, "up")

    async def reset(self) -> None:
        """Do nothing: a namespace cannot reset connections."""

    async def close(self) -> None:
        """Remove it, with both interfaces."""
        with contextlib.suppress(OSError):
            _ip("link", "delete", self._ours)
        with contextlib.suppress(OSError):
            _ip("netns", "delete", self._name)


def can_create_namespaces() -> bool:
    """True if network namespaces can be created here."""
    if shutil.which("ip") is None or os.getuid() != 0:
        return False
    probe = NetworkNamespace(60)
    try:
        probe.open()
    except OSError:
        return False
    finally:
        asyncio.run(probe.close())
    return True


class HoldingProxy:
    """A TCP proxy: forwards bytes, holds them back, or resets connections.

    Args:
        host, port: the address to which it forwards.

    Attributes:
        port: the loopback port on which it listens.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self.port = free_port()
        self._forwarding = asyncio.Event()
        self._forwarding.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        """Start listening."""
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", self.port, backlog=1000)

    async def cut(self) -> None:
        """Hold back every byte; connections are accepted, but not forwarded."""
        self._forwarding.clear()

    async def restore(self) -> None:
        """Forward the held bytes, and everything from now on."""
        self._forwarding.set()

    async def reset(self) -> None:
        """Reset every connection."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def close(self) -> None:
        """Remove the link."""
        self._server.close()
        await self.reset()
        for task in list(self._tasks):
            task.cancel()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            await self._forwarding.wait()
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            self._writers.discard(writer)
            return
        self._writers.add(far_writer)
        self._start(self._forward(reader, far_writer))
        self._start(self._forward(far_reader, writer))

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                await self._forwarding.wait()
                writer.write(data)
                await writer.drain()
            await self._forwarding.wait()
            writer.close()
        except OSError:
            writer.transport.abort()
        finally:
            self._writers.discard(writer)

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _ip(*arguments: str) -> None:
    completed_process = subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=10, check=False)
    if completed_process.returncode:
        raise OSError(f"ip {' '.join(arguments)}: {completed_process.stderr.strip()}")
