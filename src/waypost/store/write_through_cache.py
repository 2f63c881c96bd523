"""What a transaction has just written and this process is about to ask for: handed on in memory.

A stage works most entries within milliseconds of the transaction that appended them, often in the
same process. It then finds here what it would read from the store. Nothing depends on it: what is
not here is read.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from sqlalchemy import Connection

APPENDED: Final = "appended"
"""Where a transaction notes what it appends to the journal: `connection.info[APPENDED]`."""

_FRESH: Final = "fresh"
MOST: Final = 8_192
LARGEST: Final = 4_096
"""Characters or bytes of the longest text in a row that is kept here: 32 MiB at the very most."""

Id = TypeVar("Id")
Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True, eq=False)
class FreshTable(Generic[Id, Kept]):
    """A table whose new rows are handed on, by what their ids and rows are.

    Attributes:
        name: of the table.
        size: how many characters or bytes the texts of a row have.
    """

    name: str
    size: Callable[[Kept], int]


Key = tuple[FreshTable[Any, Any], Any]
"""A table and the id of a row."""


@dataclass(slots=True)
class EnqueuedJobs:
    """What one transaction has appended to the journal.

    Attributes:
        groups: queue and group of what has to be looked for in the store.
        jobs: by queue and group, new entries with their positions, where the engine tells them.
    """

    groups: set[tuple[int, str]] = field(default_factory=set[tuple[int, str]])
    jobs: dict[tuple[int, str], list[tuple[int, Any]]] = field(
        default_factory=dict[tuple[int, str], list[tuple[int, Any]]]
    )

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.groups or self.jobs)

    def look_at(self, queue_name: int, group: str) -> None:
        """Something was appended to this group, or has changed for it."""
        self.groups.add((queue_name, group))

    def told(self, jobs: Sequence[Any], positions: Sequence[int]) -> None:
        """These entries were appended, at these positions."""
        for position, job in zip(positions, jobs, strict=True):
            self.jobs.setdefault((job.queue, job.concurrency_group), []).append((position, job))


class Fresh:
    """Rows that this process has written, by table and id: each is given once. The oldest go first.

    Attributes:
        wanted: tables that some stage of this process has asked for; rows of no others are kept.
    """

    def __init__(self) -> None:
        self.wanted: set[FreshTable[Any, Any]] = set()
        self._rows: dict[Key, Any] = {}
        self._lock = threading.Lock()  # the writer adds, the loop takes

    def keep(self, rows: Mapping[Key, Any]) -> None:
        """Keep rows that are on disk by now."""
        with self._lock:
            self._rows.update(rows)
            while len(self._rows) > MOST:
                del self._rows[next(iter(self._rows))]

    def take(self, table: FreshTable[Id, Kept], ids: Iterable[Id]) -> dict[Id, Kept]:
        """Rows by id, as they were written; those that are not here are left out."""
        self.wanted.add(table)
        found: dict[Id, Kept] = {}
        with self._lock:
            for row_id in ids:
                row = self._rows.pop((table, row_id), None)
                if row is not None:
                    found[row_id] = row
        return found


def begin(connection: Connection, wanted: Collection[FreshTable[Any, Any]]) -> tuple[EnqueuedJobs, dict[Key, Any]]:
    """At the beginning of a transaction: where it notes what it appends and what will be asked for."""
    appended, fresh = EnqueuedJobs(), dict[Key, Any]()
    connection.info[APPENDED], connection.info[_FRESH] = appended, (wanted, fresh)
    return appended, fresh


def are_fresh(connection: Connection, table: FreshTable[Id, Kept], rows: Iterable[tuple[Id, Kept]]) -> None:
    """Note new rows by id; each is kept once the transaction is on disk, unless it is long.

    Args:
        connection: the writer's.
        table: whose they are; `rows` is not read unless some stage asks for them.
        rows: as they were added.
    """
    wanted, fresh = connection.info[_FRESH]
    if table in wanted:
        fresh.update({(table, row_id): row for row_id, row in rows if table.size(row) <= LARGEST})
