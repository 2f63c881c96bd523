"""Leads the connections of a child to our listeners: the kernel asks us about each `connect` that it makes.

A name map gives the intercepted hosts an address of loopback, at which nobody may listen below port 1024. So the
child has a filter (`launcher`) that stops it in `connect` until we respond. For that address we connect the child's
own socket to a listener of ours; all others proceed as they are, or are blocked. Nothing else of the child is
touched, and it shares the network with everybody: its databases and receivers work as before.

Source: page "Kernel interfaces".
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import select
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Final

_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")  # id, process, flags, number, machine, instruction, arguments
_RESPONSE: Final = struct.Struct("=QqiI")  # id, value, error, flags
_CONTINUE: Final = 1
_PIDFD_GETFD: Final = 438  # the same on every machine
_MAX_ADDRESS_BYTES: Final = 28
_libc = ctypes.CDLL(None, use_errno=True)


class ConnectRedirection:
    """A thread that decides each connection of a child and of what it starts.

    Args:
        descriptor: from the child's launcher; closed here.
        address: to which the name map leads.
        ports: of our listeners, by the port that a client names.
        block: called from the thread with the address of a connection to another machine, which is blocked then;
            None: those proceed.
    """

    def __init__(
        self, descriptor: int, address: str, ports: Mapping[int, int], block: Callable[[str], None] | None
    ) -> None:
        self._descriptor = descriptor
        self._address = ip_address(address)
        self._ports = ports
        self._block = block
        self._stopped, self._stop = os.pipe()
        self._thread = threading.Thread(target=self._run, name="connect-redirection", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread. A program that the child has left running can connect to nothing then."""
        os.close(self._stop)
        self._thread.join()
        os.close(self._stopped)
        os.close(self._descriptor)

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        poll.register(self._stopped, 0)
        while True:
            events = dict(poll.poll())
            if self._stopped in events or not events.get(self._descriptor, 0) & select.POLLIN:
                return  # no process has the filter any more
            notification = bytearray(_NOTIFICATION.size)
            try:
                fcntl.ioctl(self._descriptor, _RECEIVE, notification)
            except OSError:  # its process was killed meanwhile
                continue
            identifier, process, _, _, _, _, descriptor, pointer, length, *_ = _NOTIFICATION.unpack(notification)
            error = self._decide(identifier, process, descriptor & 0xFFFFFFFF, pointer, length)
            flags = _CONTINUE if error is None else 0
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._descriptor, _SEND, _RESPONSE.pack(identifier, 0, -(error or 0), flags))

    def _decide(self, identifier: int, process: int, descriptor: int, pointer: int, length: int) -> int | None:
        """Return the error of the call, 0 for success; None: it proceeds."""
        try:
            peer = _read_peer(process, pointer, length)
            fcntl.ioctl(self._descriptor, _IS_VALID, struct.pack("=Q", identifier))  # it is still that process
        except (OSError, ValueError):
            return None
        if peer is None:
            return None
        family, address, port = peer
        if address == self._address and port in self._ports:
            return _connect(process, descriptor, family, self._ports[port])
        if self._block is not None and not (address.is_loopback or address.is_unspecified):
            self._block(f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}")
            return errno.ECONNREFUSED
        return None


def _read_peer(process: int, pointer: int, length: int) -> tuple[int, IPv4Address | IPv6Address, int] | None:
    """Return family, address and port of a call; None if it is not about IP. Raises OSError, ValueError: no address."""
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
        memory.seek(pointer)
        raw = memory.read(min(length, _MAX_ADDRESS_BYTES))
    family = int.from_bytes(raw[:2], "little")
    port = int.from_bytes(raw[2:4], "big")
    if family == socket.AF_INET:
        return family, IPv4Address(raw[4:8]), port
    if family == socket.AF_INET6:
        address = IPv6Address(raw[8:24])
        return family, address.ipv4_mapped or address, port
    return None


def _connect(process: int, descriptor: int, family: int, port: int) -> int | None:
    """Connect the child's own socket to a port of ours; return the error as `_decide` does."""
    try:
        leader = os.pidfd_open(_leader_of(process))
        try:
            own = _libc.syscall(_PIDFD_GETFD, leader, descriptor, 0)
        finally:
            os.close(leader)
    except OSError:
        return None
    if own < 0:
        return None
    with socket.socket(fileno=own) as connection:
        if connection.type != socket.SOCK_STREAM:  # the order of addresses is probed with datagrams
            return None
        try:
            connection.connect(("127.0.0.1" if family == socket.AF_INET else "::ffff:127.0.0.1", port))
        except OSError as error:  # also that it goes on in the background
            is_done = error.errno == errno.EISCONN  # by the same call, before a signal interrupted it
            return 0 if is_done else error.errno or errno.ECONNREFUSED
    return 0


def _leader_of(thread: int) -> int:
    """Return the process of a thread."""
    for line in Path(f"/proc/{thread}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("Tgid:"):
            return int(line.split()[1])
    return thread
