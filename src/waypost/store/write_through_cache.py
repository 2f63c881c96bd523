"""Newly written rows that this process is likely to read soon, passed on in memory.

A stage works most jobs within milliseconds of the transaction that enqueued them, often in the
same process. It then finds their rows here instead of reading the store. Nothing depends on it:
what is not here is read.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from sqlalchemy import Connection

_ENQUEUED_JOBS: Final = "enqueued_jobs"
_NEW_ROWS: Final = "new_rows"
_AFTER_COMMIT: Final = "after_commit"
MAX_CACHED_ROWS: Final = 8_192
MAX_CACHED_ROW_SIZE: Final = 4_096
"""Characters or bytes of the longest text in a row that is cached: 32 MiB in total at most."""

Id = TypeVar("Id")
CachedRow = TypeVar("CachedRow", bound=Any)


@dataclass(frozen=True, slots=True, eq=False)
class CachedTable(Generic[Id, CachedRow]):
    """A table whose new rows are cached, with the types of its ids and rows."""

    name: str  # of the table
    text: Callable[[CachedRow], str | bytes]  # returns the longest text of a row


GroupKey = tuple[Any, str]  # a `QueueName`, whose package imports this module, and a concurrency group
CacheKey = tuple[CachedTable[Any, Any], Any]  # a table and the id of a row


@dataclass(slots=True)
class EnqueuedJobs:
    """The jobs that one transaction has enqueued."""

    # queue and concurrency group of jobs that must be read from the store
    groups: set[GroupKey] = field(default_factory=set[GroupKey])
    # by queue and group, new jobs with their positions, where the engine returns them
    jobs: dict[GroupKey, list[tuple[int, Any]]] = field(default_factory=dict[GroupKey, list[tuple[int, Any]]])
    # queue and concurrency group whose jobs that waited for another attempt are due now
    due_groups: set[GroupKey] = field(default_factory=set[GroupKey])

    def __bool__(self) -> bool:
        """Return True if there is anything."""
        return bool(self.groups or self.jobs or self.due_groups)

    def add_group(self, queue_name: Any, group: str) -> None:
        """Record that jobs of this group were enqueued or have changed."""
        self.groups.add((queue_name, group))

    def add_jobs(self, jobs: Sequence[Any], positions: Sequence[int]) -> None:
        """Record jobs that were enqueued, with their positions."""
        for position, job in zip(positions, jobs, strict=True):
            self.jobs.setdefault((job.queue, job.concurrency_group), []).append((position, job))


class WriteThroughCache:
    """Rows that this process has written, by table and id: each is returned once. The oldest are dropped first.

    Attributes:
        tables: tables that some stage of this process reads from here; rows of others are not cached.
    """

    def __init__(self) -> None:
        self.tables: set[CachedTable[Any, Any]] = set()
        self._rows: dict[CacheKey, Any] = {}
        self._lock = threading.Lock()  # the writer adds, the loop removes

    def put_rows(self, rows: Mapping[CacheKey, Any]) -> None:
        """Add rows that are on disk."""
        with self._lock:
            self._rows.update(rows)
            while len(self._rows) > MAX_CACHED_ROWS:
                del self._rows[next(iter(self._rows))]

    def pop_rows(self, table: CachedTable[Id, CachedRow], ids: Iterable[Id]) -> dict[Id, CachedRow]:
        """Remove and return rows by id, as they were written; those that are not here are left out."""
        self.tables.add(table)
        rows: dict[Id, CachedRow] = {}
        with self._lock:
            for row_id in ids:
                row = self._rows.pop((table, row_id), None)
                if row is not None:
                    rows[row_id] = row
        return rows


def begin_recording(
    connection: Connection, requested_tables: Collection[CachedTable[Any, Any]]
) -> tuple[EnqueuedJobs, dict[CacheKey, Any], list[Callable[[], None]]]:
    """Set up, at the beginning of a transaction, what it records; return it.

    Returns:
        New jobs, rows to be cached, and what is called after the commit.
    """
    enqueued, new_rows, functions = EnqueuedJobs(), dict[CacheKey, Any](), list[Callable[[], None]]()
    connection.info[_ENQUEUED_JOBS], connection.info[_NEW_ROWS] = enqueued, (requested_tables, new_rows)
    connection.info[_AFTER_COMMIT] = functions
    return enqueued, new_rows, functions


def call_after_commit(connection: Connection, function: Callable[[], None]) -> None:
    """Call a function on the writer's thread once the current transaction is on disk; not if it fails or is unknown."""
    connection.info[_AFTER_COMMIT].append(function)


def enqueued_jobs(connection: Connection) -> EnqueuedJobs:
    """Return where the current transaction records the jobs that it enqueues."""
    return connection.info[_ENQUEUED_JOBS]


def cache_new_rows(connection: Connection, table: CachedTable[Any, CachedRow], rows: Iterable[CachedRow]) -> None:
    """Record new rows, which have an `id`; each is cached once the transaction is on disk, unless it is too large.

    Args:
        table: the table of the rows; `rows` is not read unless some stage reads this table from the cache.
        rows: as they were added.
    """
    requested_tables, new_rows = connection.info[_NEW_ROWS]
    if table in requested_tables:
        for row in rows:
            if len(table.text(row)) <= MAX_CACHED_ROW_SIZE:
                new_rows[table, row.id] = row
