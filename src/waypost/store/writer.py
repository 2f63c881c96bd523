"""One connection that writes: its thread, its group commit, and what is done when a transaction fails."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import Connection

from waypost.base.batching import GroupCommit
from waypost.base.threads import Threads
from waypost.store.bulk_statements import WAYS
from waypost.store.contract import Engine, StoreAway
from waypost.store.write_through_cache import EnqueuedJobs, Fresh, begin

CLASHES: Final = 5
"""How often a transaction is run that fails only because of another at the same moment."""


class Writer:
    """Everything that waits for it at one moment is one transaction; they run one at a time.

    Args:
        engine: whose.
        nth: which of the engine's writing connections is its own.
        fresh: gets what will be asked for soon.
        committed: called on the thread, after each commit, with what it appended.
        unsure: called on the thread, when nobody knows whether a transaction has come to be.
    """

    def __init__(
        self,
        engine: Engine,
        nth: int,
        *,
        fresh: Fresh,
        committed: Callable[[EnqueuedJobs], None],
        unsure: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._nth = nth
        self._fresh = fresh
        self._committed = committed
        self._unsure = unsure
        self._threads = Threads(1, f"store-writer-{nth}")
        self.group = GroupCommit(self._transaction, self._threads, everybodys=StoreAway, first=each)
        self._is_committing = False
        self._has_lost_connection = False

    def run(self, work: Callable[[], None]) -> "asyncio.Future[None]":
        """Run something on the thread, between two transactions."""
        return self._threads.run(work)

    def shutdown(self) -> None:
        """End the thread, once everything that was handed to it has been run."""
        self._threads.shutdown()

    def _transaction(self, work: Callable[[Connection], None]) -> None:
        appended = EnqueuedJobs()
        for left in reversed(range(CLASHES)):
            try:
                appended = self._run(work)
            except Exception as error:
                if left and self._is_undone(error):
                    continue
                if self._is_committing:
                    self._unsure()
                raise named(self._engine, error) from error
            break
        self._committed(appended)

    def _is_undone(self, error: Exception) -> bool:
        """Whether nothing of a transaction has come to be, and running it again may succeed at once.

        A connection that has broken while nobody used it is noticed by the first statement. Where the
        answer to a commit is missing, nobody knows: that one is never run again.
        """
        if self._engine.is_clash(error):
            return True
        if self._is_committing or self._has_lost_connection or not self._engine.is_away(error):
            return False
        self._has_lost_connection = True
        return True

    def _run(self, work: Callable[[Connection], None]) -> EnqueuedJobs:
        self._is_committing = False
        with self._engine.write(self._nth) as connection:
            appended, fresh = begin(connection, self._fresh.wanted)
            work(connection)
            self._is_committing = True
        self._has_lost_connection = False
        if fresh:
            self._fresh.keep(fresh)
        return appended


def named(engine: Engine, error: Exception) -> Exception:
    """The error as callers know it: that of a store which is away has one name."""
    if isinstance(error, StoreAway) or not engine.is_away(error):
        return error
    return StoreAway(f"the store cannot be reached: {type(error).__name__}")


def each(connection: Connection, pieces: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]]) -> list[Any]:
    """Run pieces of work that join with nothing, one after the other, as if they were alone."""
    connection.info[WAYS].alone(connection)
    return [work(connection, *args) for work, args in pieces]
