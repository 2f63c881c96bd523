"""Newly written rows that this process is likely to read soon, passed on in memory.

A stage works most jobs within milliseconds of the transaction that enqueued them, often in the
same process. It then finds their rows here instead of reading the store. Nothing depends on it:
what is not here is read.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from sqlalchemy import Connection

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

    def add_group(self, queue_name: Any, group: str) -> None:
        """Record that jobs of this group were enqueued or have changed."""
        self.groups.add((queue_name, group))


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


@dataclass(slots=True)
class TransactionRecord:
    """The effects of a writing connection's current transaction, for the time after its commit."""

    requested_tables: Collection[CachedTable[Any, Any]]  # whose new rows are cached
    enqueued: EnqueuedJobs = field(default_factory=EnqueuedJobs)
    new_rows: dict[CacheKey, Any] = field(default_factory=dict[CacheKey, Any])
    after_commit: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])


TRANSACTION_RECORD: Final = "transaction_record"
"""Key of the record in `connection.info` of a writing connection."""


def call_after_commit(connection: Connection, function: Callable[[], None]) -> None:
    """Call a function on the writer's thread once the current transaction is on disk; not if it fails or is unknown."""
    connection.info[TRANSACTION_RECORD].after_commit.append(function)


def enqueued_jobs(connection: Connection) -> EnqueuedJobs:
    """Return where the current transaction records the jobs that it enqueues."""
    return connection.info[TRANSACTION_RECORD].enqueued


def cache_new_rows(connection: Connection, table: CachedTable[Any, CachedRow], rows: Iterable[CachedRow]) -> None:
    """Record new rows, which have an `id`; each is cached once the transaction is on disk, unless it is too large.

    Args:
        table: the table of the rows; `rows` is not read unless some stage reads this table from the cache.
        rows: as they were added.
    """
    record: TransactionRecord = connection.info[TRANSACTION_RECORD]
    if table in record.requested_tables:
        for row in rows:
            if len(table.text(row)) <= MAX_CACHED_ROW_SIZE:
                record.new_rows[table, row.id] = row
