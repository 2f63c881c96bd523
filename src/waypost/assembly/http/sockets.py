"""Listening sockets, which are bound before anything else is opened.

The supervisor imports this module too, so it has no slow imports.
"""

import errno
import socket
import struct
import sys
from typing import Final

from waypost.base.error_texts import error_text

_SO_ATTACH_FILTER: Final = 26  # Linux; the socket module has no name for it
_DROP_CONNECTS: Final = (  # a classic BPF program: code, jump if true, jump if false, operand
    (0x30, 0, 0, 13),      # load the flags of the TCP header
    (0x54, 0, 0, 0x12),    # SYN and ACK of them
    (0x15, 0, 1, 0x02),    # SYN alone, a connect?
    (0x06, 0, 0, 0),       # yes: drop
    (0x06, 0, 0, 0xFFFF_FFFF),  # no: pass
)  # fmt: skip


_MAX_UNSENT_BYTES: Final = 128 * 1024
"""What the kernel takes of a response that its client does not read; otherwise it takes megabytes, of our memory."""
_TCP_NOTSENT_LOWAT: Final = 25  # Linux; the socket module of Python 3.11 has no name for it


_HOST_HINT: Final = "choose one of its own with --host, such as 127.0.0.1, or 0.0.0.0 for all"


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
    return _bind(family, host, port, option)


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
    return [_bind(family, host, bound_port, option, is_shared=True) for _ in range(count)]


def drop_connects(listening: socket.socket) -> bool:
    """Let a listening socket get no new connections, and keep those that wait to be accepted.

    Closing it resets connections whose clients may have sent a request already. So a server that stops first
    lets no more begin, then accepts all that wait, then closes. A client that connects in between tries
    again after a second, and is rejected: it knows that it has sent nothing (decision 0100).

    Returns:
        False if the system does not support this.
    """
    if sys.platform != "linux":
        return False
    import ctypes  # only a stop needs it

    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in _DROP_CONNECTS))
    try:
        value = struct.pack("HP", len(_DROP_CONNECTS), ctypes.addressof(program))
        listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, value)
    except OSError:
        return False
    return True


def _bind(family: int, host: str, port: int, option: str, *, is_shared: bool = False) -> socket.socket:
    try:
        bound = socket.create_server((host, port), family=family, backlog=2048, reuse_port=is_shared)
    except (OSError, UnicodeError) as error:
        raise PortInUse(f"cannot listen on {host}:{port}: {_reason_and_hint(error, host, option)}") from error
    # Connections inherit the options. A loop sets this one itself only on sockets created with a protocol number, and
    # without it the body of a response can arrive 40 ms after its head.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if sys.platform == "linux":
        bound.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, _MAX_UNSENT_BYTES)
    return bound


def _reason_and_hint(error: OSError | UnicodeError, host: str, option: str) -> str:
    """Return why a socket cannot be bound, and what to do."""
    number = 0 if isinstance(error, UnicodeError) else error.errno
    if number == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine; {_HOST_HINT}"
    if number == errno.EADDRINUSE:
        return f"the port is in use; stop the program that listens there, or choose another port with {option}"
    if number == errno.EACCES:
        return f"only root may use a port below 1024; choose a higher one with {option}"
    if not number or number < 0:  # of the name server
        return f"{error_text(error)}; {_HOST_HINT}"
    return f"{error_text(error)}; choose another port with {option}, or another address with --host"
