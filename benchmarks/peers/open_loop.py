"""The load generator of every product: requests at fixed times, whatever the responses do.

The latency of a request counts from the time at which it was due, not from the time at which a connection was free
for it: a product that stalls is charged for every request that it kept waiting (no coordinated omission).
"""

import asyncio
import gc
import re
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

CONNECTIONS = 64
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")
_CLOSES = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_CHUNKED_END = b"\r\n0\r\n\r\n"
_CONNECTED_WITHIN_S = 2
_RECONNECT_S = 0.1
_RESPONSES_WITHIN_S = 20


@dataclass(slots=True)
class Submission:
    """One request; times are seconds of the machine's monotonic clock.

    Attributes:
        number: of the message, unique in a run.
        due_s: when it had to be sent.
        sent_s: when it was written to a connection; 0 before that.
        ended_s: when its response was complete; 0 before that.
        status: of the response; 0 if the connection was closed instead.
        body: of the response.
    """

    number: int
    request: bytes
    due_s: float = 0.0
    sent_s: float = 0.0
    ended_s: float = 0.0
    status: int = 0
    body: bytes = b""

    @property
    def is_accepted(self) -> bool:
        """True if the product acknowledged it."""
        return 200 <= self.status < 300


@dataclass(slots=True)
class OpenLoop:
    """One stretch of load at a fixed rate.

    Args:
        port: of the product.
        submissions: what to send, in order.
        per_second: the rate.
        must_stop: called now and then with what was sent so far; true ends the load early.
    """

    port: int
    submissions: Sequence[Submission]
    per_second: float
    must_stop: Callable[[int], bool] = lambda sent: False
    connections: int = CONNECTIONS
    due: deque[Submission] = field(default_factory=deque[Submission])
    idle: deque["_Connection"] = field(default_factory=deque["_Connection"])
    ended: int = 0
    is_over: bool = False
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def run(self) -> Sequence[Submission]:
        """Send; return what was sent once every response is there, or after 20 s."""
        gc.collect()
        gc.disable()  # a pause of ours would look like one of the product's
        try:
            for _ in range(self.connections):
                self.reconnect()
            deadline_s = time.monotonic() + _CONNECTED_WITHIN_S
            while len(self.idle) < self.connections and time.monotonic() < deadline_s:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            sent = await self._pace()
            deadline_s = time.monotonic() + _RESPONSES_WITHIN_S
            while self.ended < sent and time.monotonic() < deadline_s:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        finally:
            gc.enable()
            self.is_over = True
            for connection in list(self.idle):
                connection.transport.close()
            for task in self._tasks:
                task.cancel()
        return self.submissions[:sent]

    def assign_next(self, connection: "_Connection") -> None:
        """Give a free connection the oldest request that waits, if any."""
        if self.due:
            connection.send(self.due.popleft())
        else:
            self.idle.append(connection)

    def reconnect(self) -> None:
        """Open a connection, also in place of one that was closed."""
        if not self.is_over:
            task = asyncio.get_running_loop().create_task(self._reconnect())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect(self) -> None:
        await asyncio.get_running_loop().create_connection(lambda: _Connection(self), "127.0.0.1", self.port)

    async def _reconnect(self) -> None:
        while not self.is_over:
            try:
                await self._connect()
            except OSError:
                await asyncio.sleep(_RECONNECT_S)
            else:
                return

    async def _pace(self) -> int:
        """Hand out every request when it is due; return how many."""
        began_s = time.monotonic() + 0.05
        checked_s = began_s
        nth, count = 0, len(self.submissions)
        while nth < count:
            now_s = time.monotonic()
            until = min(count, int((now_s - began_s) * self.per_second) + 1) if now_s >= began_s else 0
            while nth < until:
                submission = self.submissions[nth]
                submission.due_s = began_s + nth / self.per_second
                if self.idle:
                    self.idle.popleft().send(submission)
                else:
                    self.due.append(submission)
                nth += 1
            if now_s - checked_s > 0.25:
                checked_s = now_s
                if self.must_stop(nth):
                    break
            await asyncio.sleep(max(0.0005, min(0.05, began_s + nth / self.per_second - time.monotonic())))
        return nth


class _Connection(asyncio.Protocol):
    def __init__(self, load: OpenLoop) -> None:
        self._load = load
        self._partial = b""
        self._submission: Submission | None = None
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        if self._load.is_over:
            transport.close()
        else:
            self._load.assign_next(self)

    def send(self, submission: Submission) -> None:
        self._submission = submission
        submission.sent_s = time.monotonic()
        self.transport.write(submission.request)

    def data_received(self, data: bytes) -> None:
        ended_s = time.monotonic()
        data = self._partial + data
        head, separator, body = data.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        is_complete = len(body) >= int(length[1]) if length else (b"\r\n" + body).endswith(_CHUNKED_END)
        if not separator or not is_complete:
            self._partial = data
            return
        self._partial = b""
        submission, self._submission = self._submission, None
        if submission is None:  # a response that nobody requested
            self.transport.close()
            return
        status = _STATUS.match(head)
        submission.ended_s, submission.status, submission.body = ended_s, int(status[1]) if status else 0, body
        self._load.ended += 1
        if _CLOSES.search(head):
            self.transport.close()
        else:
            self._load.assign_next(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self in self._load.idle:
            self._load.idle.remove(self)
        if self._submission is not None:
            self._submission.ended_s = time.monotonic()
            self._load.ended += 1
        self._load.reconnect()
