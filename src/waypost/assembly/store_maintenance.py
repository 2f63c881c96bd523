"""`waypost store` and `waypost move`: revision, upgrade and backup of a store, and its copy into a PostgreSQL database.

`waypost move`: copy an SQLite store into an empty PostgreSQL database, with the service stopped.

While it is filled, the target has a mark, and every other command rejects it; after an interruption, the
next run empties it and starts again. At the end every row is read back and compared. Then the old store
is marked as moved, so that it cannot be used alongside the new one: that would send messages twice.
"""

import contextlib
import fcntl
import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Table, create_engine, func, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from waypost.assembly.components import make_engine
from waypost.base.clock import SystemClock
from waypost.config import Settings
from waypost.store.contract import StoreUnavailable, WrongStore
from waypost.store.engines.postgresql_import import PostgresImport
from waypost.store.engines.sqlite import SqliteEngine, raise_damage, take_lock
from waypost.store.properties import set_properties
from waypost.store.retention.partitions import Partition, partitions_since
from waypost.store.revision import MOVED_PROPERTY, SchemaStatus, check_upgradable, read_schema_status
from waypost.store.schema import PARTITIONED_TABLES, PartitionedTable
from waypost.store.tables import leases, metadata, processes, store_properties

UNFINISHED_SUFFIX: Final = ".waypost-backup"
"""Ends the name of a copy that is not complete; the process that writes it holds a lock on it."""


def read_status(settings: Settings) -> SchemaStatus | None:
    """Return the schema status of a store, also while it is in use; None if there is no store yet.

    Raises:
        WrongStore: it is not a store of Waypost, or too old for this version.
        StoreUnavailable: no server responds.
        StoreDamaged: its file cannot be read.
    """
    if settings.database_url is None:
        if not settings.store_path.exists():
            return None
        url = f"sqlite:///file:{settings.store_path.resolve()}?mode=ro&uri=true"
    else:
        _, _, rest = settings.database_url.partition("://")
        url = f"postgresql+psycopg://{rest}"
    engine = create_engine(url, poolclass=NullPool, hide_parameters=True)
    try:
        with engine.connect() as connection:
            status = read_schema_status(connection)
    except DBAPIError as error:
        raise_damage(settings.store_path, error)
        raise StoreUnavailable(f"the store cannot be read: {str(error.orig).splitlines()[0]}") from error
    if status is not None:
        check_upgradable(status)
    return status


def upgrade(settings: Settings) -> SchemaStatus:
    """Create a store, or upgrade it to this version's revision.

    Raises:
        StoreInUse: a service has the SQLite store open.
        WrongStore: it cannot be upgraded; the text has a fix hint.
        StoreUnavailable: no server responds, or other processes hold locks that the upgrade needs.
    """
    engine = make_engine(replace(settings, upgrade_store=True))
    engine.open()
    engine.close()
    status = read_status(settings)
    if status is None:
        raise WrongStore("the store has been removed")
    return status


def back_up(settings: Settings, file: Path) -> int:
    """Copy an SQLite store as it is at one moment, also while a service uses it; return the copy's size.

    The copy gets its name once it is complete and on disk.

    Raises:
        WrongStore: the store is not SQLite, or does not exist, or the file exists.
        StoreDamaged: it cannot be read.
    """
    if settings.database_url is not None:
        raise WrongStore("the store is a PostgreSQL database; back it up with pg_dump or pg_basebackup")
    if not settings.store_path.exists():
        raise WrongStore(f"there is no store at {settings.store_path}; set its folder with --data")
    if file.exists():
        raise WrongStore(f"{file} exists already; choose another file")
    _remove_unfinished_backups(file.parent)
    temporary = file.with_name(f".{file.name}.{os.getpid()}{UNFINISHED_SUFFIX}")
    lock = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # private from the start
    fcntl.flock(lock, fcntl.LOCK_EX)  # until this process ends, in whatever way
    # Read only: the last connection to close would copy the log into the file, which only the service may do
    source = sqlite3.connect(f"{settings.store_path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
    try:
        source.execute("VACUUM INTO ?", (str(temporary),))
        _flush(temporary)
        temporary.replace(file)
        _flush(file.parent)
    except sqlite3.DatabaseError as error:
        raise_damage(settings.store_path, error)
        raise
    finally:
        source.close()
        temporary.unlink(missing_ok=True)
        os.close(lock)
    return file.stat().st_size


def _remove_unfinished_backups(folder: Path) -> None:
    """Remove the copies of backups that were killed: they have everything that the store had."""
    for copy in folder.glob(f".*{UNFINISHED_SUFFIX}"):
        with contextlib.suppress(OSError):  # another process has removed it, or still writes it
            descriptor = os.open(copy, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                copy.unlink()
            finally:
                os.close(descriptor)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


TABLES_NOT_COPIED: Final = (leases, processes)
"""Tables that describe the processes of the old store."""
ROWS_PER_READ: Final = 2_000
MAX_PARTITION_AGE_MS: Final = 430 * 24 * 60 * 60 * 1000
"""Rows that are older, or whose ids have no time, go into the default partition."""


class CopyMismatch(Exception):
    """The rows read back differ from those copied; the target stays marked."""


@dataclass(frozen=True, slots=True)
class TableDigest:
    """The content of a table regardless of order: the number of rows, and the sum of their hashes."""

    rows: int
    sum: int

    @property
    def short(self) -> str:
        """Its first digits, for display."""
        return f"{self.sum:064x}"[:12]


@dataclass(frozen=True, slots=True)
class MovedTable:
    """A table that has been copied and compared."""

    table: str
    digest: TableDigest
    replaced_texts: int  # number of texts in which U+0000, which PostgreSQL cannot store, was replaced by U+FFFD
    seconds: float


def move(source: Path, url: str, *, report: Callable[[MovedTable], None]) -> list[MovedTable]:
    """Copy a store.

    Args:
        source: the SQLite file.
        url: of the database, in libpq's format.
        report: called with each table that has been copied.

    Raises:
        StoreInUse: a service has the store open.
        WrongStore: there is no such store, it has been moved already, or the target is not empty.
        StoreUnavailable: no server responds at the URL.
        CopyMismatch: the rows read back differ.
    """
    if not source.exists():
        raise WrongStore(f"there is no store at {source}; set its folder with --data")
    lock = take_lock(source)
    try:
        with _connect(source) as connection:
            status = read_schema_status(connection)
        if status is None:
            raise WrongStore(f"{source} is empty; there is nothing to move")
        if status.is_older:
            engine = SqliteEngine(source, exclusive=False)  # as a start of the service does
            engine.open()
            engine.close()
        target = PostgresImport(url)
        with target.open(), _connect(source) as connection:
            target.prepare(_required_partitions(connection), resume_only=status.is_moved)
            tables = [_copy_table(connection, target, table, report) for table in _copied_tables()]
            _continue_sequences(connection, target)
            _mark_moved(source)
            target.finish()
    except DBAPIError as error:
        raise_damage(source, error)
        raise
    else:
        return tables
    finally:
        os.close(lock)


def _copy_table(
    connection: Connection, target: PostgresImport, table: Table, report: Callable[[MovedTable], None]
) -> MovedTable:
    began_s = time.monotonic()
    replacer = _NulReplacer()
    copied = _RowHasher()
    if table is store_properties:
        properties = copied.hash_rows(replacer.replace_in_rows(_read_rows(connection, table)))
        target.add_properties({str(name): str(value) for name, value in properties})
    else:
        target.add(table, copied.hash_rows(replacer.replace_in_rows(_read_rows(connection, table))))
    stored = _RowHasher()
    for _ in stored.hash_rows(target.read_rows(table)):
        pass
    if stored.digest != copied.digest:
        raise CopyMismatch(
            f"{table.name}: {copied.digest.rows} rows ({copied.digest.short}) were copied and "
            f"{stored.digest.rows} ({stored.digest.short}) are stored"
        )
    moved = MovedTable(table.name, copied.digest, replacer.count, time.monotonic() - began_s)
    report(moved)
    return moved


class _RowHasher:
    """Sums the hashes of rows while they are iterated, regardless of their order."""

    def __init__(self) -> None:
        self._rows = 0
        self._sum = 0
        self._encode = msgspec.json.Encoder().encode

    @property
    def digest(self) -> TableDigest:
        return TableDigest(self._rows, self._sum % 2**256)

    def hash_rows(self, rows: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
        for row in rows:
            text = self._encode(tuple(row))
            self._sum += int.from_bytes(hashlib.sha256(text).digest())
            self._rows += 1
            yield row


class _NulReplacer:
    """Replaces U+0000 in texts with U+FFFD."""

    def __init__(self) -> None:
        self.count = 0

    def replace_in_rows(self, rows: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
        for row in rows:
            bad = [index for index, value in enumerate(row) if isinstance(value, str) and "\0" in value]
            self.count += len(bad)
            yield (
                row
                if not bad
                else tuple(value.replace("\0", "\ufffd") if index in bad else value for index, value in enumerate(row))
            )


def _copied_tables() -> list[Table]:
    return [table for table in metadata.sorted_tables if table not in TABLES_NOT_COPIED]


def _read_rows(connection: Connection, table: Table) -> Iterator[Sequence[Any]]:
    statement = select(table)
    if table is store_properties:
        statement = statement.where(store_properties.c.name != MOVED_PROPERTY)
    yield from connection.execute(statement, execution_options={"yield_per": ROWS_PER_READ})


def _required_partitions(connection: Connection) -> list[Partition]:
    """Return the partitions that the rows need, and those ahead of now."""
    now_ms = SystemClock().now_ms()
    return [
        part
        for table in PARTITIONED_TABLES
        for part in partitions_since(table, _first_ms(connection, table, now_ms), now_ms)
    ]


def _first_ms(connection: Connection, ranged: PartitionedTable, now_ms: int) -> int:
    column = ranged.table.c[ranged.column]
    first = connection.execute(
        select(func.min(column)).where(column >= f"{now_ms - MAX_PARTITION_AGE_MS:012x}"[:8])
    ).scalar_one()
    try:
        at_ms = int(str(first).replace("-", "")[:12], 16)
    except ValueError:
        return now_ms
    return min(max(at_ms, now_ms - MAX_PARTITION_AGE_MS), now_ms)


def _continue_sequences(connection: Connection, target: PostgresImport) -> None:
    """Continue sequences after the highest number ever assigned, even if its row has been deleted."""
    assigned: dict[str, int] = {
        row.name: row.seq for row in connection.exec_driver_sql("SELECT name, seq FROM sqlite_sequence")
    }
    for table in _copied_tables():
        column = table.autoincrement_column
        if column is None:
            continue
        highest = connection.execute(select(func.max(column))).scalar_one() or 0
        target.set_sequence(table, column.name, max(highest, assigned.get(table.name, 0)))


def _connect(source: Path) -> Connection:
    engine = create_engine(f"sqlite:///{source}", poolclass=NullPool, hide_parameters=True)
    return engine.connect()


def _mark_moved(source: Path) -> None:
    """Mark the old store as moved while it is read: in write-ahead mode neither waits for the other."""
    engine = create_engine(f"sqlite:///{source}", poolclass=NullPool)
    with engine.begin() as connection:
        set_properties(connection, {MOVED_PROPERTY: ""})
