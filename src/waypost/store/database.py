"""Transactions, group commit and readers of one open store."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, TypeVar

from sqlalchemy import Connection

from waypost.base.telemetry.counters import CommitCounts
from waypost.base.threads import Threads
from waypost.store.contract import Engine
from waypost.store.write_through_cache import EnqueuedJobs, Fresh
from waypost.store.writer import CLASHES, Writer, each, named

Item = TypeVar("Item")
Result = TypeVar("Result")

Wake = Callable[[EnqueuedJobs], None]
Hear = Callable[[str, str], None]
"""Called on the loop with the subject and the content of a notification from another process."""

APPENDED_TO: Final = "appended"
"""Subject of a notification about new jobs; its content is `queue group`."""

MISSED: Final = "missed"
"""Subject after a gap, in which any notification may have been lost."""


class Database:
    """The store as the stages use it.

    A write is a plain function of a connection and of all items that wait for it; everything that
    waits at one moment is one transaction. A read is a plain function of a connection.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.fresh = Fresh()
        self._failed_reads = 0
        self._readers = Threads(engine.readers, "store-reader")
        self._writers = [
            Writer(engine, nth, fresh=self.fresh, committed=self._has_committed, unsure=lambda: self._told(MISSED))
            for nth in range(engine.writers)
        ]
        self._doors, self._stages = self._writers[0].group, self._writers[-1].group
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wakes: list[Wake] = []
        self._hears: list[Hear] = []
        self._watchers: list[Callable[[], None]] = []

    @property
    def sole(self) -> bool:
        """True if no other process can have this store open."""
        return self._engine.sole

    @property
    def engine(self) -> str:
        """Name of the engine."""
        return self._engine.name

    @property
    def in_order(self) -> bool:
        """True if a row with a higher number is never visible before one with a lower."""
        return self._engine.in_order

    @property
    def busy(self) -> bool:
        """True while a write is running."""
        return any(writer.group.busy for writer in self._writers)

    @property
    def moves(self) -> int:
        """Number of writes begun since the store was opened."""
        return sum(writer.group.joined for writer in self._writers)

    @property
    def counts(self) -> CommitCounts:
        """Counters of the writers, and of failed reads."""
        counts = CommitCounts(failed_reads=self._failed_reads)
        for writer in self._writers:
            counts.take_in(writer.group.counts)
        return counts

    @property
    def waiting(self) -> int:
        """Number of writes that wait for the next transactions."""
        return sum(writer.group.waiting for writer in self._writers)

    async def open(self) -> None:
        """Open or create the store.

        Raises:
            StoreInUse: another process has it open.
            WrongStore: it has another revision.
            StoreUnavailable: it cannot be reached.
        """
        self._loop = asyncio.get_running_loop()
        await self._writers[0].run(self._engine.open)
        if not self._engine.sole:
            self._engine.listen(self._told)

    async def close(self) -> None:
        """Commit what waits, let running reads end, then close."""
        for writer in self._writers:
            await writer.group.close()
        # Before any connection is closed: closing one during a read crashes the process.
        await asyncio.to_thread(self._readers.shutdown)
        await self._writers[0].run(self._engine.close)
        for writer in self._writers:
            writer.shutdown()

    def on_append(self, wake: Wake) -> None:
        """Call the listener, on the loop, after each commit that enqueued jobs."""
        self._wakes.append(wake)

    def on_commit(self, watch: Callable[[], None]) -> None:
        """Call the listener, on the loop, after each commit of this process."""
        self._watchers = [*self._watchers, watch]  # the writer's thread may iterate over the old list

    def off_commit(self, watch: Callable[[], None]) -> None:
        """Stop calling a commit listener."""
        self._watchers = [other for other in self._watchers if other != watch]

    def on_notification(self, hear: Hear) -> None:
        """Call the listener, on the loop, with each notification; after a gap with `NOTIFICATIONS_MISSED`."""
        self._hears.append(hear)

    def notify(self, subject: str, words: str) -> None:
        """Send a notification to every other process with this store open; one that is not connected misses it."""
        if not self._engine.sole:
            self._engine.notify([f"{subject} {words}"])

    async def join(self, work: Callable[[Connection, Sequence[Item]], Sequence[Result]], item: Item) -> Result:
        """Add one item to a write; return its result once the transaction is on disk."""
        return await self._stages.join(work, item)

    async def join_from_request(
        self, work: Callable[[Connection, Sequence[Item]], Sequence[Result]], item: Item
    ) -> Result:
        """Like `join`, for what a client waits to have on disk.

        Where the engine has several writing connections, it does not wait for writes of the stages.
        A rate that the request uses up belongs here too.
        """
        return await self._doors.join(work, item)

    async def join_all(
        self, work: Callable[[Connection, Sequence[Item]], Sequence[Result]], items: Sequence[Item]
    ) -> list[Result | BaseException]:
        """Add many items to a write at once; return each one's result, or its own error."""
        joined = [self._stages.join(work, item) for item in items]
        return await asyncio.gather(*joined, return_exceptions=True)

    async def write(self, work: Callable[..., Result], *args: Any) -> Result:
        """Run one write that is not combined with others; for rare writes."""
        return await self._stages.join(each, (work, args))

    async def tidy(self, work: Callable[..., Result], *args: Any) -> Result:
        """Run one small write that no caller waits for: concurrently with the others where the engine can."""
        background = self._engine.beside
        if background is None:
            return await self._stages.join(each, (work, args))
        return await self._readers.run(self._tidy, background, work, args)

    async def read(self, look: Callable[..., Result], *args: Any) -> Result:
        """Run a read on a reader's thread."""
        return await self._readers.run(self._look, look, args)

    def _look(self, look: Callable[..., Result], args: tuple[Any, ...]) -> Result:
        """Retry once when the store was unavailable: an idle connection may have broken."""
        for is_last in (False, True):
            try:
                with self._engine.read() as connection:
                    return look(connection, *args)
            except Exception as error:
                if not is_last and self._engine.is_away(error):
                    continue
                self._failed_reads += 1  # by several threads: an increment may be lost
                raise named(self._engine, error) from error
        raise AssertionError

    def _tidy(
        self,
        beside: Callable[[], AbstractContextManager[Connection]],
        work: Callable[..., Result],
        args: tuple[Any, ...],
    ) -> Result:
        for runs_left in reversed(range(CLASHES)):
            try:
                with beside() as connection:
                    return work(connection, *args)
            except Exception as error:
                if not runs_left or not self._engine.is_clash(error):
                    raise named(self._engine, error) from error
        raise AssertionError("the last conflict is raised")

    def _has_committed(self, appended: EnqueuedJobs) -> None:
        """Runs on a writer's thread."""
        if self._loop is None:
            return
        if appended:
            for listener in self._wakes:
                self._loop.call_soon_threadsafe(listener, appended)
        for commit_listener in self._watchers:
            self._loop.call_soon_threadsafe(commit_listener)

    def _told(self, text: str) -> None:
        """Runs on the engine's thread."""
        if self._loop is None or self._loop.is_closed():
            return
        subject, _, content = text.partition(" ")
        for listener in self._hears:
            self._loop.call_soon_threadsafe(listener, subject or MISSED, content)
