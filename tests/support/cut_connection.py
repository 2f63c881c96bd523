"""Stands between a service and its PostgreSQL server, and cuts connections around a commit.

Real TCP on either side. What a client sends is passed on as it is, but for the commits that are to be lost.
"""

import contextlib
import random
import socket
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final
from urllib.parse import urlsplit, urlunsplit

COMMIT: Final = b"COMMIT\0"
"""As it stands in the message of a plain statement. Source: PostgreSQL's manual, "Message Formats", Query."""


class Loss(Enum):
    """What becomes of a commit."""

    REQUEST = "the server never gets it"
    ANSWER = "it is done, and nobody hears of it"


@dataclass
class CutLine:
    """A line to a server; `lose` says which commits are lost."""

    server_url: str
    lost: dict[Loss, int] = field(default_factory=lambda: dict.fromkeys(Loss, 0))
    _next: list[Loss] = field(default_factory=list[Loss])
    _marks: list[bytes] = field(default_factory=list[bytes])
    _listening: socket.socket = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        """The server's address by way of this line."""
        parts = urlsplit(self.server_url)
        port = self._listening.getsockname()[1]
        place = f"{parts.username}:{parts.password}@127.0.0.1:{port}"
        return urlunsplit(parts._replace(netloc=place))

    def lose(self, chance: random.Random, count: int) -> None:
        """Lose the next few commits, each one way or the other."""
        with self._lock:
            self._next += [chance.choice(tuple(Loss)) for _ in range(count)]

    def lose_answer_of(self, mark: bytes) -> None:
        """Lose the answer to the commit of the first transaction in which these bytes are sent."""
        with self._lock:
            self._marks.append(mark)

    def heal(self) -> None:
        """Lose nothing more."""
        with self._lock:
            self._next.clear()
            self._marks.clear()

    def open(self) -> None:
        """Listen on a free port."""
        self._listening = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Listen no longer."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        parts = urlsplit(self.server_url)
        while True:
            try:
                client, _ = self._listening.accept()
                server = socket.create_connection((parts.hostname or "", parts.port or 0))
            except OSError:
                return
            pair = _Pair(self, client, server)
            for work in (pair.up, pair.down):
                threading.Thread(target=work, daemon=True).start()

    @property
    def marks(self) -> list[bytes]:
        """What is looked for in transactions."""
        with self._lock:
            return list(self._marks)

    def fate_of_a_commit(self, sent: bytes) -> Loss | None:
        """Whether the commit that has just been asked for is lost, and how.

        Args:
            sent: the transaction so far, where anything is looked for.
        """
        with self._lock:
            meant = next((mark for mark in self._marks if mark in sent), None)
            if meant is not None:
                self._marks.remove(meant)
                self._next.insert(0, Loss.ANSWER)
            loss = self._next.pop(0) if self._next else None
            if loss is not None:
                self.lost[loss] += 1
            return loss


@dataclass
class _Pair:
    line: CutLine
    client: socket.socket
    server: socket.socket
    is_answer_lost: bool = False

    def up(self) -> None:
        sent = bytearray()  # since the last commit, while anything is looked for
        with self._both():
            while data := self.client.recv(65536):
                if self.line.marks:
                    sent += data
                loss = None
                if data.endswith(COMMIT):
                    loss = self.line.fate_of_a_commit(bytes(sent))
                    sent.clear()
                if loss is Loss.REQUEST:
                    return
                self.is_answer_lost = loss is Loss.ANSWER
                self.server.sendall(data)

    def down(self) -> None:
        with self._both():
            while data := self.server.recv(65536):
                if self.is_answer_lost:
                    return
                self.client.sendall(data)

    @contextlib.contextmanager
    def _both(self) -> Generator[None]:
        """When one direction ends, so does the other."""
        try:
            with contextlib.suppress(OSError):
                yield
        finally:
            for end in (self.client, self.server):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()


@contextlib.contextmanager
def cut_line(server_url: str) -> Generator[CutLine]:
    """A line that is there until the end."""
    line = CutLine(server_url)
    line.open()
    try:
        yield line
    finally:
        line.close()
