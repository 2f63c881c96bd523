"""Group commit: everything that waits at one moment shares one transaction and one flush.

There is no linger timer. One batch is in flight; what comes meanwhile is the next batch. Under
light load a caller waits for its own commit only, under heavy load many share each flush.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from waypost.base.telemetry.counters import CommitCounts
from waypost.base.threads import Executor

Work = Callable[[Any, Sequence[Any]], Sequence[Any]]
"""Called with a connection and all waiting items of its kind; gives one result for each item."""

Transaction = Callable[[Callable[[Any], None]], None]
"""Runs a function of a connection in one transaction: committed on return, rolled back on a raise."""

Piece = tuple[Work, Any, "asyncio.Future[Any]"]
Answer = tuple["asyncio.Future[Any]", Any, Exception | None]


class Stopped(Exception):
    """Work was handed to a group commit that has been closed."""


class GroupCommit:
    """Joins waiting pieces of work into transactions that run one at a time on one thread.

    Args:
        transaction: runs on the executor's thread.
        executor: must have exactly one thread; it is the only writer.
        at_most: how many items one transaction takes, so that no caller waits for a giant.
        everybodys: the kind of error that is no caller's own: each caller gets it, and none is tried
            again alone.
        first: the work that a transaction begins with, where it is among what waits.
    """

    def __init__(
        self,
        transaction: Transaction,
        executor: Executor,
        *,
        at_most: int = 1024,
        everybodys: type[Exception] | None = None,
        first: Work | None = None,
    ) -> None:
        self._everybodys = everybodys
        self._first = first
        self._transaction = transaction
        self._executor = executor
        self._at_most = at_most
        self._waiting: list[Piece] = []
        self._busy = False
        self._idle = asyncio.Event()  # set when nothing is in flight
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scheduled = False
        self.joined = 0
        """How many items have been handed in so far."""
        self.counts = CommitCounts()

    @property
    def waiting(self) -> int:
        """How many items wait for the transaction after this one."""
        return len(self._waiting)

    @property
    def busy(self) -> bool:
        """Whether anything waits for its commit."""
        return self._busy or self._scheduled

    def join(self, work: Work, item: Any) -> asyncio.Future[Any]:
        """Add one item; the future ends once its transaction is committed, or with its own error.

        An unexpected error in a shared transaction is not everybody's: the transaction is rolled
        back and each caller is tried again alone, so that only the one at fault sees the error.
        """
        if self._closed:
            raise Stopped("the store is closing")
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        future = self._loop.create_future()
        self._waiting.append((work, item, future))
        self.joined += 1
        if not self._busy and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._start)
        return future

    async def close(self) -> None:
        """Refuse new work and return when all that was accepted is committed or has failed."""
        self._closed = True
        while self._busy or self._scheduled:
            if self._busy:
                await self._idle.wait()
            else:
                await asyncio.sleep(0)

    def _start(self) -> None:
        self._scheduled = False
        if not self._waiting or self._loop is None:
            return
        batch, self._waiting = self._waiting[: self._at_most], self._waiting[self._at_most :]
        self._busy = True
        self._idle.clear()
        self._executor.submit(self._commit, self._loop, batch)

    def _finished(self, answers: list[Answer]) -> None:
        _tell(answers)
        self._busy = False
        self._start()
        if not self._busy:
            self._idle.set()

    def _commit(self, loop: asyncio.AbstractEventLoop, batch: list[Piece]) -> None:
        """On the writer's thread: one transaction, and one call back to the loop."""
        answers: list[Answer]
        try:
            answers = self._together(batch)
        except Exception as error:  # noqa: BLE001  whose error it is shows when each runs alone
            if self._everybodys is not None and isinstance(error, self._everybodys):
                self.counts.failed += len(batch)
                answers = [(future, None, error) for _, _, future in batch]
            elif len(batch) == 1:
                self.counts.failed += 1
                answers = [(batch[0][2], None, error)]
            else:
                self.counts.torn += 1
                answers = [self._alone(piece) for piece in batch]
        loop.call_soon_threadsafe(self._finished, answers)

    def _together(self, batch: list[Piece]) -> list[Answer]:
        kinds: dict[Work, list[tuple[Any, asyncio.Future[Any]]]] = {}
        for work, item, future in batch:
            kinds.setdefault(work, []).append((item, future))
        if self._first is not None and self._first in kinds:
            kinds = {self._first: kinds.pop(self._first), **kinds}
        answers: list[Answer] = []

        def all_of_it(connection: Any) -> None:
            answers.clear()  # a transaction that clashed with another is run again
            for work, pieces in kinds.items():
                results = work(connection, [item for item, _ in pieces])
                answers.extend((future, result, None) for (_, future), result in zip(pieces, results, strict=True))

        began_s = time.perf_counter()
        self._transaction(all_of_it)
        self.counts.took_s.add(time.perf_counter() - began_s)
        self.counts.items.add(len(batch))
        return answers

    def _alone(self, piece: Piece) -> Answer:
        try:
            return self._together([piece])[0]
        except Exception as error:  # noqa: BLE001  handed to the one who caused it
            self.counts.failed += 1
            return piece[2], None, error


def _tell(answers: list[Answer]) -> None:
    for future, result, error in answers:
        if future.done():  # its caller went away; the work is committed all the same
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
