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

APPENDED: Final = "appended"
"""Key under which a transaction records the jobs that it enqueues: `connection.info[ENQUEUED_JOBS]`."""

_FRESH: Final = "fresh"
MOST: Final = 8_192
LARGEST: Final = 4_096
"""Characters or bytes of the longest text in a row that is cached: 32 MiB in total at most."""

Id = TypeVar("Id")
Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True, eq=False)
class FreshTable(Generic[Id, Kept]):
    """A table whose new rows are cached, with the types of its ids and rows.

    Attributes:
        name: of the table.
        size: returns how many characters or bytes the texts of a row have.
    """

    name: str
    size: Callable[[Kept], int]


Key = tuple[FreshTable[Any, Any], Any]
"""A table and the id of a row."""


@dataclass(slots=True)
class EnqueuedJobs:
    """The jobs that one transaction has enqueued.

    Attributes:
        groups: queue and concurrency group of jobs that must be read from the store.
        jobs: by queue and group, new jobs with their positions, where the engine returns them.
    """

    groups: set[tuple[int, str]] = field(default_factory=set[tuple[int, str]])
    jobs: dict[tuple[int, str], list[tuple[int, Any]]] = field(
        default_factory=dict[tuple[int, str], list[tuple[int, Any]]]
    )

    def __bool__(self) -> bool:
        """Return True if there is anything."""
        return bool(self.groups or self.jobs)

    def look_at(self, queue_name: int, group: str) -> None:
        """Record that jobs of this group were enqueued or have changed."""
        self.groups.add((queue_name, group))

    def told(self, jobs: Sequence[Any], positions: Sequence[int]) -> None:
        """Record jobs that were enqueued, with their positions."""
        for position, job in zip(positions, jobs, strict=True):
            self.jobs.setdefault((job.queue, job.concurrency_group), []).append((position, job))


class Fresh:
    """Rows that this process has written, by table and id: each is returned once. The oldest are dropped first.

    Attributes:
        tables: tables that some stage of this process reads from here; rows of others are not cached.
    """

    def __init__(self) -> None:
        self.wanted: set[FreshTable[Any, Any]] = set()
        self._rows: dict[Key, Any] = {}
        self._lock = threading.Lock()  # the writer adds, the loop removes

    def keep(self, rows: Mapping[Key, Any]) -> None:
        """Add rows that are on disk."""
        with self._lock:
            self._rows.update(rows)
            while len(self._rows) > MOST:
                del self._rows[next(iter(self._rows))]

    def take(self, table: FreshTable[Id, Kept], ids: Iterable[Id]) -> dict[Id, Kept]:
        """Remove and return rows by id, as they were written; those that are not here are left out."""
        self.wanted.add(table)
        rows: dict[Id, Kept] = {}
        with self._lock:
            for row_id in ids:
                row = self._rows.pop((table, row_id), None)
                if row is not None:
                    rows[row_id] = row
        return rows


def begin(connection: Connection, wanted: Collection[FreshTable[Any, Any]]) -> tuple[EnqueuedJobs, dict[Key, Any]]:
    """Set up, at the beginning of a transaction, where it records new jobs and rows to be cached; return both."""
    appended, new_rows = EnqueuedJobs(), dict[Key, Any]()
    connection.info[APPENDED], connection.info[_FRESH] = appended, (wanted, new_rows)
    return appended, new_rows


def are_fresh(connection: Connection, table: FreshTable[Id, Kept], rows: Iterable[tuple[Id, Kept]]) -> None:
    """Record new rows by id; each is cached once the transaction is on disk, unless it is too large.

    Args:
        connection: the writer's.
        table: the table of the rows; `rows` is not read unless some stage reads this table from the cache.
        rows: as they were added.
    """
    requested_tables, new_rows = connection.info[_FRESH]
    if table in requested_tables:
        new_rows.update({(table, row_id): row for row_id, row in rows if table.size(row) <= LARGEST})
