"""Transactions, group commit and readers; opened and closed."""

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
"""Called on the loop with the subject and the words of what another process tells."""

APPENDED_TO: Final = "appended"
"""Its words: `queue group`."""

MISSED: Final = "missed"
"""The subject after a gap, in which anything may have been told."""


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
        """Whether no other process can have this store open."""
        return self._engine.sole

    @property
    def engine(self) -> str:
        """The engine's name."""
        return self._engine.name

    @property
    def in_order(self) -> bool:
        """Whether a row with a higher number is never seen before one with a lower."""
        return self._engine.in_order

    @property
    def busy(self) -> bool:
        """Whether a write is under way."""
        return any(writer.group.busy for writer in self._writers)

    @property
    def moves(self) -> int:
        """How many writes have been begun since it was opened."""
        return sum(writer.group.joined for writer in self._writers)

    @property
    def counts(self) -> CommitCounts:
        """What the writers have done, and which reads have failed."""
        counts = CommitCounts(failed_reads=self._failed_reads)
        for writer in self._writers:
            counts.take_in(writer.group.counts)
        return counts

    @property
    def waiting(self) -> int:
        """How many pieces of work wait for the transactions after these."""
        return sum(writer.group.waiting for writer in self._writers)

    async def open(self) -> None:
        """Open or make the store.

        Raises:
            StoreInUse: another process has it.
            WrongStore: it has another revision.
            StoreAway: it cannot be reached.
        """
        self._loop = asyncio.get_running_loop()
        await self._writers[0].run(self._engine.open)
        if not self._engine.sole:
            self._engine.listen(self._told)

    async def close(self) -> None:
        """Commit what waits, let whoever still reads come to an end, then close."""
        for writer in self._writers:
            await writer.group.close()
        # Before any connection is closed: one that is read from meanwhile brings the process down.
        await asyncio.to_thread(self._readers.shutdown)
        await self._writers[0].run(self._engine.close)
        for writer in self._writers:
            writer.shutdown()

    def on_append(self, wake: Wake) -> None:
        """Call this, on the loop, after each commit that appended entries."""
        self._wakes.append(wake)

    def on_commit(self, watch: Callable[[], None]) -> None:
        """Call this, on the loop, after each commit of this process."""
        self._watchers = [*self._watchers, watch]  # the writer's thread may be at the old list

    def off_commit(self, watch: Callable[[], None]) -> None:
        """Call it no more."""
        self._watchers = [one for one in self._watchers if one != watch]

    def on_notification(self, hear: Hear) -> None:
        """Call this, on the loop, with what other processes tell, and with `MISSED` after a gap."""
        self._hears.append(hear)

    def notify(self, subject: str, words: str) -> None:
        """Tell every other process that has this store open; one that is away hears nothing of it."""
        if not self._engine.sole:
            self._engine.notify([f"{subject} {words}"])

    async def join(self, work: Callable[[Connection, Sequence[Item]], Sequence[Result]], item: Item) -> Result:
        """Hand one item to a write; return its result once the transaction is on disk."""
        return await self._stages.join(work, item)

    async def join_from_request(
        self, work: Callable[[Connection, Sequence[Item]], Sequence[Result]], item: Item
    ) -> Result:
        """As `join`, for what somebody outside waits to be told is on disk.

        Where the engine has several writing connections, it does not wait for what the stages write.
        A rate that is spent on the way belongs here too.
        """
        return await self._doors.join(work, item)

    async def join_all(
        self, work: Callable[[Connection, Sequence[Item]], Sequence[Result]], items: Sequence[Item]
    ) -> list[Result | BaseException]:
        """Hand many items to a write at once; return each one's result, or its own error."""
        joined = [self._stages.join(work, item) for item in items]
        return await asyncio.gather(*joined, return_exceptions=True)

    async def write(self, work: Callable[..., Result], *args: Any) -> Result:
        """Run one write that joins with nothing; for what happens seldom."""
        return await self._stages.join(each, (work, args))

    async def tidy(self, work: Callable[..., Result], *args: Any) -> Result:
        """Run one small write that nobody waits for: beside the others where the engine can."""
        beside = self._engine.beside
        if beside is None:
            return await self._stages.join(each, (work, args))
        return await self._readers.run(self._tidy, beside, work, args)

    async def read(self, look: Callable[..., Result], *args: Any) -> Result:
        """Run a read on a reader's thread."""
        return await self._readers.run(self._look, look, args)

    def _look(self, look: Callable[..., Result], args: tuple[Any, ...]) -> Result:
        """Once more when the store was away: the connection may have broken while nobody used it."""
        for is_last in (False, True):
            try:
                with self._engine.read() as connection:
                    return look(connection, *args)
            except Exception as error:
                if not is_last and self._engine.is_away(error):
                    continue
                self._failed_reads += 1  # by several threads: one may be lost
                raise named(self._engine, error) from error
        raise AssertionError

    def _tidy(
        self,
        beside: Callable[[], AbstractContextManager[Connection]],
        work: Callable[..., Result],
        args: tuple[Any, ...],
    ) -> Result:
        for left in reversed(range(CLASHES)):
            try:
                with beside() as connection:
                    return work(connection, *args)
            except Exception as error:
                if not left or not self._engine.is_clash(error):
                    raise named(self._engine, error) from error
        raise AssertionError("the last clash is raised")

    def _has_committed(self, appended: EnqueuedJobs) -> None:
        """On a writer's thread."""
        if self._loop is None:
            return
        if appended:
            for wake in self._wakes:
                self._loop.call_soon_threadsafe(wake, appended)
        for watch in self._watchers:
            self._loop.call_soon_threadsafe(watch)

    def _told(self, text: str) -> None:
        """On the engine's thread."""
        if self._loop is None or self._loop.is_closed():
            return
        subject, _, words = text.partition(" ")
        for hear in self._hears:
            self._loop.call_soon_threadsafe(hear, subject or MISSED, words)
