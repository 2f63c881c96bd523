"""What a transaction has just written and this process is about to ask for: handed on in memory.

A stage works most entries within milliseconds of the transaction that appended them, often in the
same process. It then finds here what it would read from the store. Nothing depends on it: what is
not here is read.
"""

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType, SimpleNamespace
from typing import Any, Final

from sqlalchemy import Connection

APPENDED: Final = "appended"
"""Where a transaction notes what it appends to the journal: `connection.info[APPENDED]`."""

_FRESH: Final = "fresh"
MOST: Final = 8_192
LARGEST: Final = 4_096
"""Characters or bytes of the longest text in a row that is kept here: 32 MiB at the very most."""

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})

Key = tuple[str, Any]
"""A table's name and the id of a row."""


@dataclass(slots=True)
class Appended:
    """What one transaction has appended to the journal.

    Attributes:
        groups: lane and group of what has to be looked for in the store.
        entries: by lane and group, new entries with their positions, where the engine tells them.
    """

    groups: set[tuple[int, str]] = field(default_factory=set[tuple[int, str]])
    entries: dict[tuple[int, str], list[tuple[int, Any]]] = field(
        default_factory=dict[tuple[int, str], list[tuple[int, Any]]]
    )

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.groups or self.entries)

    def look_at(self, lane: int, group: str) -> None:
        """Something was appended to this group, or has changed for it."""
        self.groups.add((lane, group))

    def told(self, entries: Sequence[Any], positions: Sequence[int]) -> None:
        """These entries were appended, at these positions."""
        for position, entry in zip(positions, entries, strict=True):
            self.entries.setdefault((entry.lane, entry.group), []).append((position, entry))


class Fresh:
    """Rows that this process has written, by table and id: each is given once. The oldest go first.

    Attributes:
        wanted: tables that some stage of this process has asked for; rows of no others are kept.
    """

    def __init__(self) -> None:
        self.wanted: set[str] = set()
        self._rows: dict[Key, Mapping[str, Any]] = {}
        self._lock = threading.Lock()  # the writer adds, the loop takes

    def keep(self, rows: Mapping[Key, Mapping[str, Any]]) -> None:
        """Keep rows that are on disk by now."""
        with self._lock:
            self._rows.update(rows)
            while len(self._rows) > MOST:
                del self._rows[next(iter(self._rows))]

    def take(self, table: str, ids: Iterable[Any]) -> dict[Any, Any]:
        """Rows by id, as they were written; those that are not here are left out."""
        self.wanted.add(table)
        found: dict[Any, Any] = {}
        with self._lock:
            for row_id in ids:
                row = self._rows.pop((table, row_id), None)
                if row is not None:
                    found[row_id] = SimpleNamespace(**row)
        return found


def begin(connection: Connection, wanted: Collection[str]) -> tuple[Appended, dict[Key, Mapping[str, Any]]]:
    """At the beginning of a transaction: where it notes what it appends and what will be asked for."""
    appended, fresh = Appended(), dict[Key, Mapping[str, Any]]()
    connection.info[APPENDED], connection.info[_FRESH] = appended, (wanted, fresh)
    return appended, fresh


def are_fresh(
    connection: Connection,
    table: str,
    rows: Iterable[Mapping[str, Any]],
    *texts: str,
    also: Mapping[str, Any] = NOTHING,
) -> None:
    """Note new rows with their `id`; each is kept once the transaction is on disk, unless it is long.

    Args:
        connection: the writer's.
        table: by whose name they are taken.
        rows: as they were added.
        texts: columns whose length tells how long a row is.
        also: what each row has besides.
    """
    wanted, fresh = connection.info[_FRESH]
    if table not in wanted:
        return
    for row in rows:
        if sum(len(row[column]) for column in texts) <= LARGEST:
            fresh[table, row["id"]] = {**row, **also} if also else row
