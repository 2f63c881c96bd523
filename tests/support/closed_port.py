"""A port on which the operating system refuses connections, and which no other process gets meanwhile."""

import socket
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def closed_port() -> Generator[int]:
    """Yield a loopback port that is bound but has no listener.

    A port that was merely free a moment ago may be in use when it is connected to: by another test, or
    for an outgoing connection.
    """
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]
