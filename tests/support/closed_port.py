"""A port at which connections are refused, and which nobody else is given meanwhile."""

import socket
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def refusing_port() -> Generator[int]:
    """A loopback port that is taken and not listened on.

    One that was free a moment ago may be somebody's by the time it is asked: another test's, or the
    machine's for an outgoing connection.
    """
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
