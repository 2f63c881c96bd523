"""Transactions, group commit and readers of one open store."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, delete, insert, select

from waypost.base.telemetry.counters import CommitCounters
from waypost.base.threads import ThreadPool
from waypost.store.contract import DamageSearch, StoreEngine, StoreUnavailable
from waypost.store.tables import store_properties
from waypost.store.write_through_cache import EnqueuedJobs, WriteThroughCache
from waypost.store.writer import MAX_TRANSACTION_ATTEMPTS, Writer, run_each, translate_error

Item = TypeVar("Item")
StoreResult = TypeVar("StoreResult")

EnqueueListener = Callable[[EnqueuedJobs], None]
NotificationListener = Callable[[str, str], None]
"""Called on the loop with the subject and the content of a notification from another process."""

JOBS_ENQUEUED_SUBJECT: Final = "jobs_enqueued"  # subject of a notification about new jobs; its content is `queue group`

RETRIES_DUE_SUBJECT: Final = "retries_due"
"""Subject of a notification that what waits for another attempt is due now; its content is `queue group`."""

NOTIFICATIONS_MISSED: Final = "missed"  # subject after a gap, in which any notification may have been lost


class Database:
    """The store as the stages use it.

    A write is a plain function of a connection and of all items that wait for it; everything that
    waits at one moment is one transaction. A read is a plain function of a connection.

    Attributes:
        is_exclusive: no other process can have this store open.
        commits_in_order: a row with a higher number is never visible before one with a lower.
        cache: newly written rows.
        join: adds one item to a write; the future gets its result once the transaction is on disk.
        join_from_request: likewise, for what a client waits to have on disk, such as a rate that its request uses up.
            Where the engine has several writing connections, it does not wait for writes of the stages.
    """

    def __init__(self, engine: StoreEngine) -> None:
        self._engine = engine
        self.is_exclusive = engine.is_exclusive
        self.commits_in_order = engine.commits_in_order
        self.cache = WriteThroughCache()
        self._failed_reads = 0
        self._readers = ThreadPool(engine.readers, "store-reader", StoreUnavailable)
        self._writers = [
            Writer(
                engine,
                nth,
                cache=self.cache,
                on_commit=self._notify_commit,
                on_unknown_commit=lambda: self._deliver_notification(NOTIFICATIONS_MISSED),
            )
            for nth in range(engine.writers)
        ]
        self._stage_group = self._writers[-1].group
        self.join = self._stage_group.join
        self.join_from_request = self._writers[0].group.join
        self._loop: asyncio.AbstractEventLoop | None = None
        self._enqueue_listeners: list[EnqueueListener] = []
        self._notification_listeners: list[NotificationListener] = []
        self._commit_listeners: list[Callable[[], None]] = []

    @property
    def engine(self) -> str:
        """Name of the engine."""
        return self._engine.name

    @property
    def damage(self) -> str:
        """Text of the damage that the store has reported; empty without one."""
        return self._engine.damage

    async def find_damage(self, within_s: float) -> DamageSearch:
        """Look for damage, as far as the time allows."""
        return await asyncio.to_thread(self._engine.find_damage, within_s)

    @property
    def busy(self) -> bool:
        """True while a write is running."""
        return any(writer.group.busy for writer in self._writers)

    @property
    def writes_begun(self) -> int:
        """Number of writes begun since the store was opened."""
        return sum(writer.group.joined_count for writer in self._writers)

    @property
    def counts(self) -> CommitCounters:
        """Counters of the writers, and of failed reads."""
        counts = CommitCounters(failed_reads=self._failed_reads)
        for writer in self._writers:
            counts.merge(writer.group.counts)
        return counts

    @property
    def pending_writes(self) -> int:
        """Number of writes that wait for the next transactions."""
        return sum(writer.group.waiting_count for writer in self._writers)

    async def open(self) -> None:
        """Open or create the store.

        Raises:
            StoreInUse: another process has it open.
            WrongStore: it has another revision.
            StoreUnavailable: it cannot be reached.
            StoreDamaged: its file cannot be read.
        """
        self._loop = asyncio.get_running_loop()
        await self._writers[0].threads.run(self._engine.open)
        if not self._engine.is_exclusive:
            self._engine.listen(self._deliver_notification)

    async def close(self) -> None:
        """Commit what waits, let running reads end, then close."""
        for writer in self._writers:
            await writer.group.close()
        # Before any connection is closed: closing one during a read crashes the process.
        await asyncio.to_thread(self._readers.shutdown)
        await self._writers[0].threads.run(self._engine.close)
        for writer in self._writers:
            writer.threads.shutdown()

    def add_enqueue_listener(self, listener: EnqueueListener) -> None:
        """Call the listener, on the loop, after each commit that enqueued jobs."""
        self._enqueue_listeners.append(listener)

    def add_commit_listener(self, listener: Callable[[], None]) -> None:
        """Call the listener, on the loop, after each commit of this process."""
        # A new list: the writer's thread may iterate over the old one
        self._commit_listeners = [*self._commit_listeners, listener]

    def remove_commit_listener(self, listener: Callable[[], None]) -> None:
        """Stop calling a commit listener."""
        self._commit_listeners = [other for other in self._commit_listeners if other != listener]

    def add_notification_listener(self, listener: NotificationListener) -> None:
        """Call the listener, on the loop, with each notification; after a gap with `NOTIFICATIONS_MISSED`."""
        self._notification_listeners.append(listener)

    def notify(self, subject: str, content: str) -> None:
        """Send a notification to every other process with this store open; one that is not connected misses it."""
        if not self._engine.is_exclusive:
            self._engine.notify([f"{subject} {content}"])

    async def join_all(
        self, work: Callable[[Connection, Sequence[Item]], Sequence[StoreResult]], items: Sequence[Item]
    ) -> list[StoreResult | BaseException]:
        """Add many items to a write at once; return each one's result, or its own error."""
        joined = [self._stage_group.join(work, item) for item in items]
        return await asyncio.gather(*joined, return_exceptions=True)

    def write(self, work: Callable[..., StoreResult], *args: Any) -> asyncio.Future[StoreResult]:
        """Run one write that is not combined with others; for rare writes."""
        return self._stage_group.join(run_each, (work, args))

    async def write_in_background(self, work: Callable[..., StoreResult], *args: Any) -> StoreResult:
        """Run one small write that no caller waits for: concurrently with the others where the engine can."""
        background = self._engine.background_transaction
        if background is None:
            return await self._stage_group.join(run_each, (work, args))
        return await self._readers.run(self._run_background_write, background, work, args)

    async def compact(self, tables: Sequence[str]) -> None:
        """Rewrite tables, so that free space holds nothing of deleted rows; see the engine's method."""
        work = partial(self._engine.compact, tables)
        await (self._writers[-1].threads.run(work) if self.is_exclusive else self._readers.run(work))

    def read(self, query: Callable[..., StoreResult], *args: Any) -> asyncio.Future[StoreResult]:
        """Run a read on a reader's thread."""
        return self._readers.run(self._run_read, query, args)

    def _run_read(self, query: Callable[..., StoreResult], args: tuple[Any, ...]) -> StoreResult:
        """Retry once when the store was unavailable: an idle connection may have broken; and after a conflict."""
        for is_last in (False, True):
            try:
                with self._engine.read() as connection:
                    return query(connection, *args)
            except Exception as error:  # noqa: BLE001  raised again
                if not is_last and (self._engine.is_unavailable(error) or self._engine.is_conflict(error)):
                    continue
                self._failed_reads += 1  # by several threads: an increment may be lost
                raise translate_error(self._engine, error) from None  # which may be the same error
        raise AssertionError

    def _run_background_write(
        self,
        begin_transaction: Callable[[], AbstractContextManager[Connection]],
        work: Callable[..., StoreResult],
        args: tuple[Any, ...],
    ) -> StoreResult:
        for runs_left in reversed(range(MAX_TRANSACTION_ATTEMPTS)):
            try:
                with begin_transaction() as connection:
                    return work(connection, *args)
            except Exception as error:  # noqa: BLE001  raised again
                if not runs_left or not self._engine.is_conflict(error):
                    raise translate_error(self._engine, error) from None  # which may be the same error
        raise AssertionError("the last conflict is raised")

    def _notify_commit(self, enqueued: EnqueuedJobs) -> None:
        """Runs on a writer's thread."""
        if self._loop is None:
            return
        if enqueued.jobs or enqueued.groups or enqueued.due_groups:
            for listener in self._enqueue_listeners:
                self._loop.call_soon_threadsafe(listener, enqueued)
        for commit_listener in self._commit_listeners:
            self._loop.call_soon_threadsafe(commit_listener)

    def _deliver_notification(self, text: str) -> None:
        """Runs on the engine's thread."""
        if self._loop is None or self._loop.is_closed():
            return
        subject, _, content = text.partition(" ")
        for listener in self._notification_listeners:
            self._loop.call_soon_threadsafe(listener, subject or NOTIFICATIONS_MISSED, content)


def stored_revision(connection: Connection) -> int | None:
    """Return the revision that the store records; None where it records none."""
    revision = connection.execute(
        select(store_properties.c.value).where(store_properties.c.name == "revision")
    ).scalar_one_or_none()
    return int(revision) if revision is not None and revision.isdecimal() else None


def probe_write(connection: Connection, names: Sequence[str]) -> list[None]:
    """Run a write that needs space on the disk and a flush, and leaves nothing behind.

    Args:
        names: of this process, so that two of them never wait for each other.
    """
    for probe in {f"probe {name}" for name in names}:
        connection.execute(insert(store_properties), {"name": probe, "value": ""})
        connection.execute(delete(store_properties).where(store_properties.c.name == probe))
    return [None] * len(names)
