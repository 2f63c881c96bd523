"""Listening sockets, which are bound before anything else is opened.

The supervisor imports this module too, so it has no slow imports.
"""

import os
import socket
import sys


class PortInUse(Exception):
    """The port is in use, or the address is not this machine's; the text has a fix hint."""


def bind_socket(host: str, port: int, *, option: str) -> socket.socket:
    """Return a listening socket.

    Args:
        host: an address or name.
        port: 0 takes a free one.
        option: the option that sets the port, for the fix hint.

    Raises:
        PortInUse: the port is in use, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise PortInUse(
            f"cannot listen on {host}:{port} ({reason}); stop the program that listens there, or choose another port with {option}"
        ) from error
    # Connections inherit it. A loop sets it itself only on sockets created with a protocol number, and
    # without it the body of a response can arrive 40 ms after its head.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return bound


def port_of(bound: socket.socket) -> int:
    """Return the port a socket listens on."""
    return bound.getsockname()[1]


def bind_for_workers(host: str, port: int, count: int, *, option: str) -> list[socket.socket]:
    """Return a listening socket for each worker, all on one port.

    On Linux each has its own backlog, and the kernel chooses one for each connection by its addresses: of
    64 simultaneous connections each of two workers got 26 to 38. With one shared backlog one of them often
    got 63, since a loop that wakes accepts all that wait. Other kernels do not distribute evenly, and all
    workers get the same socket.

    Args:
        host: an address or name.
        port: 0 takes a free one.
        count: of the workers.
        option: the option that sets the port, for the fix hint.

    Raises:
        PortInUse: the port is in use, or the address is not this machine's.
    """
    # Without SO_REUSEPORT first: otherwise another service of the same user could share the port, and
    # each would get a part of the other's connections.
    first = bind_socket(host, port, option=option)
    if sys.platform != "linux":
        return [first, *(first.dup() for _ in range(count - 1))]
    bound_port = port_of(first)
    family = first.family
    first.close()
    return [_bind_shared(family, host, bound_port, option) for _ in range(count)]


def adopt_socket(descriptor: int) -> socket.socket:
    """Return an inherited listening socket."""
    return socket.socket(fileno=descriptor)


def _bind_shared(family: int, host: str, port: int, option: str) -> socket.socket:
    try:
        bound = socket.create_server((host, port), family=family, backlog=2048, reuse_port=True)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise PortInUse(
            f"cannot listen on {host}:{port} ({reason}); stop the program that listens there, or choose another port with {option}"
        ) from error
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return bound
