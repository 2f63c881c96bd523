"""`waypost move`: copies a store of SQLite into an empty PostgreSQL database, with the service stopped.

The target is marked while it is filled, and refused by every command but this one; stopped in the
middle, it is emptied and filled anew by the next try. At the end every row is read back and compared.
Then the old store is marked as moved, so that nobody goes on with both: that would send twice.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Table, create_engine, func, select
from sqlalchemy.pool import NullPool

from waypost.base.clock import SystemClock
from waypost.store.contract import WrongStore
from waypost.store.engines.filling import Filling
from waypost.store.engines.sqlite import SqliteEngine, take_lock
from waypost.store.properties import set_facts
from waypost.store.retention.partitions import Part, parts_from
from waypost.store.revision import MOVED, standing_of
from waypost.store.schema import RANGED, Ranged
from waypost.store.tables import leases, metadata, processes, store_facts

LEFT_BEHIND: Final = (leases, processes)
"""Who worked what of the old store."""
READ_AT_ONCE: Final = 2_000
OLDEST_RANGE_MS: Final = 430 * 24 * 60 * 60 * 1000
"""Rows that are older, or whose ids say no time, go into the default part."""


class Mismatch(Exception):
    """What was read back is not what was copied; the target stays marked."""


@dataclass(frozen=True, slots=True)
class Digest:
    """What a table holds, in whatever order: how many rows, and the sum of their hashes."""

    rows: int
    sum: int

    @property
    def short(self) -> str:
        """Its first digits, for people."""
        return f"{self.sum:064x}"[:12]


@dataclass(frozen=True, slots=True)
class Moved:
    """A table that has been copied and compared.

    Attributes:
        mended: how many texts held U+0000, which PostgreSQL cannot; U+FFFD stands there now.
    """

    table: str
    digest: Digest
    mended: int
    seconds: float


def move(source: Path, url: str, *, tell: Callable[[Moved], None]) -> list[Moved]:
    """Copy a store.

    Args:
        source: the SQLite file.
        url: of the database, as libpq takes it.
        tell: called with each table that is done.

    Raises:
        StoreInUse: a service has the store open.
        WrongStore: there is no such store, it has been moved already, or the target is not empty.
        StoreAway: no server answers there.
        Mismatch: what was read back differs.
    """
    if not source.exists():
        raise WrongStore(f"there is no store at {source}; name its folder with --data")
    lock = take_lock(source)
    try:
        with _reading(source) as connection:
            standing = standing_of(connection)
        if standing is None:
            raise WrongStore(f"{source} is empty; there is nothing to move")
        if standing.is_older:
            _upgrade(source)
        target = Filling(url)
        with target.opened(), _reading(source) as connection:
            target.prepare(_parts_for(connection), only_again=standing.moved)
            done = [_copy(connection, target, table, tell) for table in _tables()]
            _count_on(connection, target)
            _mark_moved(source)
            target.finish()
        return done
    finally:
        os.close(lock)


def _copy(connection: Connection, target: Filling, table: Table, tell: Callable[[Moved], None]) -> Moved:
    began_s = time.monotonic()
    mending = _Mending()
    given = _Digesting()
    if table is store_facts:
        facts = given.through(mending.through(_rows(connection, table)))
        target.add_facts({str(name): str(value) for name, value in facts})
    else:
        target.add(table, given.through(mending.through(_rows(connection, table))))
    there = _Digesting()
    for _ in there.through(target.rows_of(table)):
        pass
    if there.digest != given.digest:
        raise Mismatch(
            f"{table.name}: {given.digest.rows} rows ({given.digest.short}) were copied and "
            f"{there.digest.rows} ({there.digest.short}) are there"
        )
    moved = Moved(table.name, given.digest, mending.count, time.monotonic() - began_s)
    tell(moved)
    return moved


class _Digesting:
    """Adds up the hash of each row that passes; the order does not matter."""

    def __init__(self) -> None:
        self._rows = 0
        self._sum = 0
        self._encode = msgspec.json.Encoder().encode

    @property
    def digest(self) -> Digest:
        return Digest(self._rows, self._sum % 2**256)

    def through(self, rows: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
        for row in rows:
            text = self._encode(tuple(row))
            self._sum += int.from_bytes(hashlib.sha256(text).digest())
            self._rows += 1
            yield row


class _Mending:
    """Puts U+FFFD where a text has U+0000."""

    def __init__(self) -> None:
        self.count = 0

    def through(self, rows: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
        for row in rows:
            yield tuple(self._mended(value) for value in row)

    def _mended(self, value: Any) -> Any:
        if isinstance(value, str) and "\0" in value:
            self.count += 1
            return value.replace("\0", "\ufffd")
        return value


def _tables() -> list[Table]:
    return [table for table in metadata.sorted_tables if table not in LEFT_BEHIND]


def _rows(connection: Connection, table: Table) -> Iterator[Sequence[Any]]:
    statement = select(table)
    if table is store_facts:
        statement = statement.where(store_facts.c.name != MOVED)
    yield from connection.execute(statement, execution_options={"yield_per": READ_AT_ONCE})


def _parts_for(connection: Connection) -> list[Part]:
    """The ranges that the rows need, and those ahead of now."""
    now_ms = SystemClock().now_ms()
    return [part for one in RANGED for part in parts_from(one, _first_ms(connection, one, now_ms), now_ms)]


def _first_ms(connection: Connection, one: Ranged, now_ms: int) -> int:
    column = one.table.c[one.by]
    first = connection.execute(
        select(func.min(column)).where(column >= f"{now_ms - OLDEST_RANGE_MS:012x}"[:8])
    ).scalar_one()
    try:
        at_ms = int(str(first).replace("-", "")[:12], 16)
    except ValueError:
        return now_ms
    return min(max(at_ms, now_ms - OLDEST_RANGE_MS), now_ms)


def _count_on(connection: Connection, target: Filling) -> None:
    """Numbers go on beyond the highest that was ever given out, also where its row is gone."""
    given_out: dict[str, int] = {
        row.name: row.seq for row in connection.exec_driver_sql("SELECT name, seq FROM sqlite_sequence")
    }
    for table in _tables():
        column = table.autoincrement_column
        if column is None:
            continue
        highest = connection.execute(select(func.max(column))).scalar_one() or 0
        target.count_from(table, column.name, max(highest, given_out.get(table.name, 0)))


def _reading(source: Path) -> Connection:
    engine = create_engine(f"sqlite:///{source}", poolclass=NullPool, hide_parameters=True)
    return engine.connect()


def _upgrade(source: Path) -> None:
    """As a start of the service does; the lock is held already."""
    engine = SqliteEngine(source, sole=False)
    engine.open()
    engine.close()


def _mark_moved(source: Path) -> None:
    """Beside the reader: in write-ahead mode neither waits for the other."""
    engine = create_engine(f"sqlite:///{source}", poolclass=NullPool)
    with engine.begin() as connection:
        set_facts(connection, {MOVED: ""})
