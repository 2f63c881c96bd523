"""Sockets that are bound before anything else is opened.

Loaded by what only starts others too: it costs nothing.
"""

import os
import socket
import sys


class PortInUse(Exception):
    """Somebody else listens there; the text says what to do."""


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
            f"cannot listen on {host}:{port} ({why}); stop what listens there, or choose another port with {option}"
        ) from error
    # Connections inherit it. A loop sets it by itself only on sockets made with a protocol number,
    # and without it head and body of an answer may be 40 ms apart.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return bound


def port_of(bound: socket.socket) -> int:
    """The port a socket listens on."""
    return bound.getsockname()[1]


def bind_for_workers(host: str, port: int, count: int, *, option: str) -> list[socket.socket]:
    """A listening socket for each worker, all on one port.

    On Linux each has a queue of its own, and the kernel chooses one for each connection by its
    addresses: 64 connections at once came out as 26 to 38 for one of two workers. With one queue for
    both it was 1 to 63 as often as not, since a loop that wakes takes all that waits. Elsewhere the
    kernel does not choose evenly, and all get the same socket.

    Args:
        host: an address or name.
        port: 0 takes a free one.
        count: how many.
        option: what sets the port, for the remedy.

    Raises:
        PortInUse: the port is taken, or the address is not this machine's.
    """
    # Without SO_REUSEPORT first: a port that another service of the same user shares would be taken
    # by both, each getting a part of the other's connections.
    first = bind(host, port, option=option)
    if sys.platform != "linux":
        return [first, *(first.dup() for _ in range(count - 1))]
    bound_to = port_of(first)
    family = first.family
    first.close()
    return [_shared(family, host, bound_to, option) for _ in range(count)]


def take_over(descriptor: int) -> socket.socket:
    """A listening socket that was handed down."""
    return socket.socket(fileno=descriptor)


def _shared(family: int, host: str, port: int, option: str) -> socket.socket:
    try:
        bound = socket.create_server((host, port), family=family, backlog=2048, reuse_port=True)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise PortInUse(
            f"cannot listen on {host}:{port} ({why}); stop what listens there, or choose another port with {option}"
        ) from error
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return bound
