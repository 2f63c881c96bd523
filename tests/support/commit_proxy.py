"""A proxy between a service and its PostgreSQL server that cuts connections around a commit.

Real TCP on either side. Bytes are forwarded unchanged, except for the commits that are to be lost.
"""

import contextlib
import random
import socket
import threading
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import psycopg

from tests.support.polling import HANGS_AFTER_S
from tests.support.postgres import url_of
from tests.support.store_locations import name_of

COMMIT_QUERY: Final = b"COMMIT\0"
"""The body of a Query message that commits. Source: PostgreSQL's manual, "Message Formats", here and below."""
BIND_COMMIT: Final = (b"\0waypost_commit\0", b"\0waypost_alone_")
"""In a Bind message to the prepared COMMIT, or to a statement that is a transaction of its own (decision 0091)."""
PROTOCOL: Final = b"\0\3"
"""The major version at the start of a session; what asks for encryption has another number, and a start follows it."""
PIPELINED: Final = b"BCDEP"
"""Types of the messages that a Sync message ends: Bind, Close, Describe, Execute, Parse."""


class CommitLoss(Enum):
    """The part of a commit that is lost."""

    REQUEST = "the server never receives the commit"
    RESPONSE = "the server commits, and the client receives no response"


@dataclass
class CommitProxy:
    """A proxy to a server; `lose` chooses the commits that are lost."""

    server_url: str
    round_trips: int = 0
    """Requests of all connections that the server responds to."""
    lost: dict[CommitLoss, int] = field(default_factory=lambda: dict.fromkeys(CommitLoss, 0))
    _next: list[CommitLoss] = field(default_factory=list[CommitLoss])
    _marks: list[bytes] = field(default_factory=list[bytes])
    _listening: socket.socket = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _pairs: "list[_Pair]" = field(default_factory=list)

    @property
    def url(self) -> str:
        """The server's URL, with this proxy's port."""
        parts = urlsplit(self.server_url)
        port = self._listening.getsockname()[1]
        authority = f"{parts.username}:{parts.password}@127.0.0.1:{port}"
        return urlunsplit(parts._replace(netloc=authority))

    def lose_commits(self, chance: random.Random, count: int) -> None:
        """Lose the next `count` commits, each in a way that is chosen at random."""
        with self._lock:
            self._next += [chance.choice(tuple(CommitLoss)) for _ in range(count)]

    def lose_next(self, loss: CommitLoss) -> None:
        """Lose the next commit in this way."""
        with self._lock:
            self._next.append(loss)

    def lose_response_to(self, mark: bytes) -> None:
        """Lose the response to the commit of the first transaction that contains these bytes."""
        with self._lock:
            self._marks.append(mark)

    def heal(self) -> None:
        """Lose no more commits."""
        with self._lock:
            self._next.clear()
            self._marks.clear()

    def open(self) -> None:
        """Listen on a free port."""
        self._listening = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def end_connections(self) -> None:
        """End every connection, by the server; return when the clients' ends are closed too."""
        pairs = list(self._pairs)
        with psycopg.connect(url_of(self.server_url, "postgres"), autocommit=True) as server:
            server.execute(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = %s",
                (name_of(self.server_url),),
            )
        for pair in pairs:
            assert pair.is_closed.wait(HANGS_AFTER_S), "the server has ended a connection, and the proxy has not"

    def _accept(self) -> None:
        parts = urlsplit(self.server_url)
        while True:
            try:
                client, _ = self._listening.accept()
                server = socket.create_connection((parts.hostname or "", parts.port or 0))
            except OSError:
                return
            pair = _Pair(self, client, server)
            self._pairs.append(pair)
            for work in (pair.forward_requests, pair.forward_responses):
                threading.Thread(target=work, daemon=True).start()

    @property
    def marks(self) -> list[bytes]:
        """The bytes that are looked for in transactions."""
        with self._lock:
            return list(self._marks)

    def choose_loss(self, sent: bytes) -> CommitLoss | None:
        """Return how the commit that was just requested is lost; None if it is not.

        Args:
            sent: the transaction so far, if any mark is looked for.
        """
        with self._lock:
            matched = next((mark for mark in self._marks if mark in sent), None)
            if matched is not None:
                self._marks.remove(matched)
                self._next.insert(0, CommitLoss.RESPONSE)
            loss = self._next.pop(0) if self._next else None
            if loss is not None:
                self.lost[loss] += 1
            return loss


@dataclass
class _Pair:
    proxy: CommitProxy
    client: socket.socket
    server: socket.socket
    is_response_lost: bool = False
    is_closed: threading.Event = field(default_factory=threading.Event)

    def forward_requests(self) -> None:
        """Forward messages; those of one pipeline together, so that a commit in it is lost with all of it."""
        sent = bytearray()  # since the last commit, while any mark is looked for
        pipeline = bytearray()
        with self._close_both():
            for kind, message in self._read_messages():
                if self.proxy.marks:
                    sent += message
                pipeline += message
                if kind and kind in PIPELINED:
                    continue
                loss = None
                if is_commit(kind, bytes(pipeline)):
                    loss = self.proxy.choose_loss(bytes(sent))
                    sent.clear()
                if loss is CommitLoss.REQUEST:
                    return
                self.is_response_lost = loss is CommitLoss.RESPONSE
                self.proxy.round_trips += 1
                self.server.sendall(pipeline)
                pipeline.clear()

    def _read_messages(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield each message of the client with its type; those that start a session have none."""
        has_started = False
        while True:
            kind = self._read_bytes(1) if has_started else b""
            length = self._read_bytes(4)
            body = self._read_bytes(int.from_bytes(length, "big") - 4)
            has_started = has_started or body.startswith(PROTOCOL)
            yield kind, kind + length + body

    def _read_bytes(self, count: int) -> bytes:
        """Return the next bytes of the client.

        Raises:
            OSError: it closed the connection.
        """
        read = bytearray()
        while len(read) < count:
            data = self.client.recv(count - len(read))
            if not data:
                raise OSError("the client closed the connection")
            read += data
        return bytes(read)

    def forward_responses(self) -> None:
        with self._close_both():
            while data := self.server.recv(65536):
                if self.is_response_lost:
                    return
                self.client.sendall(data)

    @contextlib.contextmanager
    def _close_both(self) -> Generator[None]:
        """Close both connections when one direction ends."""
        try:
            with contextlib.suppress(OSError):
                yield
        finally:
            for end in (self.client, self.server):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()
            self.is_closed.set()


def is_commit(kind: bytes, messages: bytes) -> bool:
    """Return True if messages commit.

    Args:
        kind: the type of the last of them.
        messages: a pipeline up to its Sync message, or one other message.
    """
    if kind == b"Q":
        return messages.endswith(COMMIT_QUERY)
    return kind == b"S" and any(mark in messages for mark in BIND_COMMIT)


@contextlib.contextmanager
def open_commit_proxy(server_url: str) -> Generator[CommitProxy]:
    """Run a proxy to a server."""
    proxy = CommitProxy(server_url)
    proxy.open()
    try:
        yield proxy
    finally:
        proxy.close()
