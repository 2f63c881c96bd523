"""One writing connection: its thread, its group commit, and its handling of failed transactions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from waypost.base.batching import CommitWork, GroupCommit
from waypost.base.telemetry.logs import log
from waypost.base.threads import ThreadPool
from waypost.store.bulk_statements import BULK_STATEMENTS
from waypost.store.contract import StoreDamaged, StoreEngine, StoreUnavailable
from waypost.store.write_through_cache import TRANSACTION_RECORD, EnqueuedJobs, TransactionRecord, WriteThroughCache

_log = log("store")
MAX_TRANSACTION_ATTEMPTS: Final = 5  # how often a transaction is run that fails only because of a concurrent one


class Writer:
    """Combines everything that waits at one moment into one transaction; runs one transaction at a time.

    Args:
        nth: index of its writing connection.
        cache: receives rows that are likely to be read soon.
        on_commit: called on the thread, after each commit, with the jobs that it enqueued.
        on_unknown_commit: called on the thread, when it is unknown whether a transaction was committed.
    """

    def __init__(
        self,
        engine: StoreEngine,
        nth: int,
        *,
        cache: WriteThroughCache,
        on_commit: Callable[[EnqueuedJobs], None],
        on_unknown_commit: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._nth = nth
        self._cache = cache
        self._on_commit = on_commit
        self._on_unknown_commit = on_unknown_commit
        self.threads = ThreadPool(1, f"store-writer-{nth}")
        self.group = GroupCommit(
            self._run_transaction, self.threads, shared_error=StoreUnavailable, first_work=run_each
        )
        self._is_committing = False
        self._has_lost_connection = False

    def _run_transaction(self, works: Mapping[CommitWork, Sequence[Any]]) -> list[Sequence[Any]]:
        for runs_left in reversed(range(MAX_TRANSACTION_ATTEMPTS)):
            self._is_committing = False
            results: list[Sequence[Any]] = []
            recorded = TransactionRecord(self._cache.tables)
            try:
                with self._engine.write(self._nth) as connection:
                    connection.info[TRANSACTION_RECORD] = recorded
                    for work, items in works.items():
                        results.append(work(connection, items))
                        if len(results[-1]) != len(items):
                            raise ValueError(  # noqa: TRY301  before the commit
                                f"{work} returned {len(results[-1])} results for {len(items)} items"
                            )
                    self._is_committing = True
                self._has_lost_connection = False
                if recorded.new_rows:
                    self._cache.put_rows(recorded.new_rows)
                for function in recorded.after_commit:
                    function()
            except Exception as error:  # noqa: BLE001  raised again
                if runs_left and self._is_retryable(error):
                    continue
                if self._is_committing:
                    self._on_unknown_commit()
                raise translate_error(self._engine, error) from None  # which may be the same error
            self._on_commit(recorded.enqueued)
            return results
        raise AssertionError("the last failure is raised")

    def _is_retryable(self, error: Exception) -> bool:
        """Return True if a transaction had no effect, and running it again may succeed at once.

        A connection that has broken while idle is noticed by its first statement. Where the response to
        a commit is missing, the outcome is unknown: that transaction is never run again.
        """
        if self._engine.is_conflict(error):
            return True
        if self._is_committing or self._has_lost_connection or not self._engine.is_unavailable(error):
            return False
        self._has_lost_connection = True
        return True


def translate_error(engine: StoreEngine, error: Exception) -> Exception:
    """Return the error that callers see: a store that is away, or too busy, has one class of error on every engine."""
    if isinstance(error, StoreUnavailable):
        return error
    if engine.is_damage(error):
        if not engine.damage:
            engine.damage = first_line(error)
            _log.critical(
                "the store is damaged: stop the service and restore a backup (docs/how-to/back-up-and-restore.md)",
                reason=engine.damage,
            )
        return StoreDamaged(f"the store is damaged: {engine.damage}")
    if not engine.is_unavailable(error):
        return error
    reason = "is too busy" if engine.is_conflict(error) else "cannot be reached"
    return StoreUnavailable(f"the store {reason}: {type(error).__name__}")


def first_line(error: BaseException) -> str:
    """Return the first line of what the driver says, without the statement."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return str(cause).strip().partition("\n")[0] or type(cause).__name__


def run_each(connection: Connection, writes: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]]) -> list[Any]:
    """Run writes that are not combined, one after the other, as if each were alone."""
    connection.info[BULK_STATEMENTS].lock_rare_writes(connection)
    return [work(connection, *args) for work, args in writes]
