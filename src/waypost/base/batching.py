"""Group commit: everything that waits at one moment shares one transaction and one flush.

There is no linger timer. One batch is in flight; items that come meanwhile form the next batch.
Under light load a caller waits for its own commit only, under heavy load many share each flush.
"""

import asyncio
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from waypost.base.telemetry.counters import CommitCounters
from waypost.base.threads import Executor

CommitWork = Callable[[Any, Sequence[Any]], Sequence[Any]]
"""Called with a connection and all waiting items of this work; returns one result for each item."""

Transaction = Callable[[Mapping[CommitWork, Sequence[Any]]], Sequence[Sequence[Any]]]
"""Runs every work with its items in one transaction: committed on return, rolled back on an exception.

Returns the results of each work, in the order of the works.
"""

WaitingItem = tuple[CommitWork, Any, "asyncio.Future[Any]"]
ItemOutcome = tuple["asyncio.Future[Any]", Any, Exception | None]


class GroupCommitClosed(Exception):
    """An item was added to a group commit that has been closed."""


class GroupCommit:
    """Joins waiting items into transactions that run one at a time on one thread.

    Args:
        transaction: runs on the executor's thread.
        executor: must have exactly one thread; it is the only writer.
        max_items: maximum number of items per transaction, so that no caller waits for a very large one.
        shared_error: the type of error that no single item causes: every caller gets it, and no item
            is retried alone.
        first_work: the work that a transaction begins with if any of it waits.
    """

    def __init__(
        self,
        transaction: Transaction,
        executor: Executor,
        *,
        max_items: int = 1024,
        shared_error: type[Exception] | None = None,
        first_work: CommitWork | None = None,
    ) -> None:
        self._shared_error = shared_error
        self._first_work = first_work
        self._transaction = transaction
        self._executor = executor
        self._max_items = max_items
        self._waiting: list[WaitingItem] = []
        self._busy = False
        self._idle = asyncio.Event()  # set when nothing is in flight
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scheduled = False
        self.joined_count = 0
        """Number of items added so far."""
        self.counts = CommitCounters()

    @property
    def waiting_count(self) -> int:
        """Number of items that wait for the next transaction."""
        return len(self._waiting)

    @property
    def busy(self) -> bool:
        """True while any item waits for its commit."""
        return self._busy or self._scheduled

    def join(self, work: CommitWork, item: Any) -> asyncio.Future[Any]:
        """Add one item; the future ends once its transaction is committed, or with its own error.

        After an unexpected error in a shared transaction, the transaction is rolled back and each
        item is retried alone, so that only the caller at fault gets the error.
        """
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        future = self._loop.create_future()
        if self._closed:
            future.set_exception(GroupCommitClosed("the store is closing"))
            return future
        self._waiting.append((work, item, future))
        self.joined_count += 1
        if not self._busy and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._start)
        return future

    async def close(self) -> None:
        """Reject new items; return when every accepted one is committed or has failed."""
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
        batch, self._waiting = self._waiting[: self._max_items], self._waiting[self._max_items :]
        self._busy = True
        self._idle.clear()
        self._executor.submit(self._commit, self._loop, batch)

    def _finish_batch(self, outcomes: Iterable[ItemOutcome]) -> None:
        for future, result, error in outcomes:
            if future.done():  # its caller was cancelled; the work is committed all the same
                continue
            if error is None:
                future.set_result(result)
            else:
                # The frames of the writer's thread have ended. They refer to the batch, whose futures refer to
                # the error.
                traceback.clear_frames(error.__traceback__)
                future.set_exception(error)
        self._busy = False
        if self._waiting:
            self._start()
        else:
            self._idle.set()

    def _commit(self, loop: asyncio.AbstractEventLoop, batch: list[WaitingItem]) -> None:
        """Run one transaction on the writer's thread, with one callback to the loop."""
        items_of: dict[CommitWork, list[Any]] = {}
        futures_of: dict[CommitWork, list[asyncio.Future[Any]]] = {}
        for work, item, future in batch:
            if work in items_of:
                items_of[work].append(item)
                futures_of[work].append(future)
            else:
                items_of[work], futures_of[work] = [item], [future]
        first = self._first_work
        if first is not None and first in items_of:
            items_of, futures_of = (
                {first: items_of.pop(first), **items_of},
                {first: futures_of.pop(first), **futures_of},
            )
        outcomes: list[ItemOutcome] = []
        began_s = time.perf_counter()
        try:
            for futures, results in zip(futures_of.values(), self._transaction(items_of), strict=True):
                outcomes.extend(zip(futures, results, [None] * len(futures), strict=True))
            self.counts.record_commit(len(batch), time.perf_counter() - began_s)
        except Exception as error:  # noqa: BLE001  returned to the callers
            outcomes = self._outcomes_after(batch, error)
        loop.call_soon_threadsafe(self._finish_batch, outcomes)
        del batch, items_of, futures_of, outcomes  # this frame may still run when the others are cleared

    def _outcomes_after(self, batch: list[WaitingItem], error: Exception) -> list[ItemOutcome]:
        """Return the outcomes of a batch that has failed; running each item alone shows which one is at fault."""
        if len(batch) > 1 and (self._shared_error is None or not isinstance(error, self._shared_error)):
            self.counts.split_batches += 1
            return [self._run_alone(waiting_item) for waiting_item in batch]
        self.counts.failed += len(batch)
        return [(future, None, error) for _, _, future in batch]

    def _run_alone(self, waiting_item: WaitingItem) -> ItemOutcome:
        work, item, future = waiting_item
        began_s = time.perf_counter()
        try:
            result = self._transaction({work: [item]})[0][0]
        except Exception as error:  # noqa: BLE001  returned to the caller at fault
            self.counts.failed += 1
            return future, None, error
        self.counts.record_commit(1, time.perf_counter() - began_s)
        return future, result, None
