"""SQLite: one file, one writer thread, readers on connections of their own."""

import contextlib
import fcntl
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Collection, Generator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from itertools import chain
from operator import add
from pathlib import Path
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, create_engine, event
from sqlalchemy.engine import Engine as Pool
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from waypost.base.files import create_private, flush_again
from waypost.base.telemetry.logs import log
from waypost.store.bulk_statements import (
    BULK_STATEMENTS,
    IS_WRITER,
    BulkDelete,
    BulkFilter,
    BulkInsert,
    BulkSelect,
    BulkUpdate,
    BulkUpsert,
    Rows,
    quote,
)
from waypost.store.contract import (
    EXIT_STORE_UNAVAILABLE,
    DamageSearch,
    PayloadListener,
    StoreDamaged,
    StoreInUse,
    StoreUnavailable,
)
from waypost.store.revision import create_or_check_schema
from waypost.store.writer import first_line

_log = log("store")
MAX_LOG_BYTES: Final = 4000 * 4120  # fewer, larger copies into the file than after SQLite's 1000 pages
PRAGMAS: Final = (  # Source: decisions 0002, 0003; sqlite.org, "PRAGMA Statements"
    # name, value, why
    ("journal_mode", "WAL"),  # readers do not block the writer
    ("synchronous", "FULL"),  # a commit is on disk when it returns, power loss included
    ("busy_timeout", "5000"),  # a checkpoint may delay a reader for a moment
    ("cache_size", "-65536"),  # 64 MiB for the writer's hot pages
    ("temp_store", "MEMORY"),
    ("wal_autocheckpoint", "0"),  # the engine copies the log into the file: SQLite would not say that a flush failed
    ("journal_size_limit", str(MAX_LOG_BYTES)),  # a log that begins again is cut to this: its size says when it is long
)
UNAVAILABLE_RESULT_CODES: Final = {
    # Primary result codes of temporary errors. Source: sqlite.org, "Result and Error Codes"
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
}
DAMAGE_RESULT_CODES: Final = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
}  # Source: sqlite.org, "Result and Error Codes"
FAILED_FLUSH_CODES: Final = {sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC}  # extended result codes

MAX_NAMED_DAMAGE: Final = 5
HEADER_BYTES: Final = 65_536  # as long as the longest page
MAX_CHECKPOINT_ATTEMPTS: Final = 100


class SqliteEngine:
    """One SQLite file. A lock file next to it keeps a second process out.

    Args:
        path: the file; its folder is created if missing.
        exclusive: whether to keep other processes out. Tests of leases open one file twice.
        upgrade: whether a store of an older revision is upgraded.
    """

    name = "sqlite"
    commits_in_order = True
    readers = 2
    writers = 1

    def __init__(self, path: Path, *, exclusive: bool = True, upgrade: bool = True) -> None:
        self.is_exclusive = exclusive
        self._upgrade = upgrade
        self._path = path
        self._log_path = path.with_name(f"{path.name}-wal")
        self._mark_path = path.with_name(f"{path.name}-flush-failed")
        self._lock: int | None = None
        self._pool: Pool | None = None
        self._writer: Connection | None = None
        self._idle: queue.SimpleQueue[Connection] = queue.SimpleQueue()
        self._open_readers: list[Connection] = []
        self.damage = ""

    def open(self) -> None:
        try:
            self._open()
        except Exception as error:
            raise_damage(self._path, error)
            if is_failed_flush(error):
                raise StoreUnavailable(f"the disk did not flush {self._path}") from error
            raise

    def _open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.is_exclusive:
            self._lock = take_lock(self._path)
            self._flush_again()
            if self._mark_path.exists():
                self._copy_whole_log()
        create_private(self._path)  # the files that SQLite adds get the same mode
        self._pool = create_engine(
            f"sqlite:///{self._path}",
            poolclass=NullPool,
            connect_args={"check_same_thread": False},
            hide_parameters=True,  # error texts are logged, and parameters may hold messages of people
        )
        event.listen(self._pool, "connect", _set_up)
        event.listen(self._pool, "begin", _begin_immediate)
        self._writer = self._pool.connect()
        self._writer.info.update({BULK_STATEMENTS: SqliteBulkStatements(self._writer), IS_WRITER: True})
        with self.write() as connection:
            create_or_check_schema(connection, upgrade=self._upgrade)
        for _ in range(self.readers):
            reader = self._pool.connect().execution_options(reader=True)
            reader.info[BULK_STATEMENTS] = SqliteBulkStatements(reader)
            self._open_readers.append(reader)
            self._idle.put(reader)

    def _flush_again(self) -> None:
        """Flush what the last process may have failed to flush: else SQLite finds commits that a loss of power takes.

        The log has every page that the file may lack, but for the header of a new file.
        """
        try:
            flush_again(self._path, HEADER_BYTES)
            flush_again(self._log_path)
        except OSError as error:
            raise StoreUnavailable(f"the disk did not flush {self._path}: {error.strerror}") from error

    def _copy_whole_log(self) -> None:
        """Copy the log into the file from its beginning, after a flush that failed.

        How much of it is in the file already is in the memory of all that have the file open, and wrong then. It is
        forgotten when the last of them has closed it.
        """
        with contextlib.closing(sqlite3.connect(self._path, isolation_level=None, timeout=0)) as connection:
            try:
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                raise StoreUnavailable(
                    f"a program, as a backup, has had {self._path} open since a flush of it failed; "
                    "it can be opened when that program has ended"
                ) from error
        self._mark_path.unlink()

    @contextmanager
    def write(self, nth: int = 0) -> Generator[Connection]:
        del nth
        if self._writer is None:
            raise RuntimeError("the store is not open")
        with self._end_on_failed_flush():
            with self._writer.begin():
                yield self._writer
            self._copy_long_log(self._writer)

    @contextmanager
    def _end_on_failed_flush(self) -> Generator[None]:
        """End the process if a flush fails within this.

        The kernel then counts as written what is not, so that no later flush writes it, and SQLite may give up the part
        of its log that has it. The next process finds in the log what the disk lacks.
        """
        try:
            yield
        except Exception as error:
            if is_failed_flush(error):
                with contextlib.suppress(OSError):  # it is for as long as this kernel runs, and needs no flush
                    create_private(self._mark_path)
                end_process(first_line(error))
            raise

    def _copy_long_log(self, writer: Connection) -> None:
        """Copy a long log into the file. What readers still need stays, and the next commit tries again."""
        if self._log_path.stat().st_size <= MAX_LOG_BYTES:
            return
        driver: Any = writer.connection.driver_connection
        try:
            driver.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.DatabaseError as error:
            if is_failed_flush(error):
                raise
            # The transaction is on disk, and the log has all of it

    @contextmanager
    def read(self) -> Generator[Connection]:
        connection = self._idle.get()
        try:
            with connection.begin():
                yield connection
        finally:
            self._idle.put(connection)

    @property
    def background_transaction(self) -> None:
        return None

    def is_unavailable(self, error: BaseException) -> bool:
        cause = error.orig if isinstance(error, DBAPIError) else error
        return (
            isinstance(cause, sqlite3.OperationalError)
            and getattr(cause, "sqlite_errorcode", 0) & 0xFF in UNAVAILABLE_RESULT_CODES
        )

    def is_damage(self, error: BaseException) -> bool:
        return is_damage(error)

    def find_damage(self, within_s: float) -> DamageSearch:
        """Check the pages of the file, and the order of its rows and indexes, until the time is over."""
        url = f"{self._path.resolve().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(url, uri=True, check_same_thread=False)) as connection:
            timer = threading.Timer(within_s, connection.interrupt)
            timer.start()
            try:
                found = [text for (text,) in connection.execute(f"PRAGMA quick_check({MAX_NAMED_DAMAGE})")]
            except sqlite3.DatabaseError as error:
                if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
                    return DamageSearch((), f"a part of the file: {within_s:.0f} s are over")
                if not is_damage(error):
                    raise
                found = [str(error)]
            finally:
                timer.cancel()
                timer.join()  # before the connection is closed
        lines = [line for text in found for line in text.splitlines() if line != "ok" and not line.startswith("***")]
        return DamageSearch(lines[:MAX_NAMED_DAMAGE], "the whole file")

    def is_conflict(self, error: BaseException) -> bool:
        return False

    def listen(self, listener: PayloadListener) -> None:
        pass

    def notify(self, payloads: Sequence[str]) -> None:
        pass

    def compact(self, tables: Sequence[str]) -> None:
        del tables  # only the whole file can be rewritten
        if self._writer is None:
            raise RuntimeError("the store is not open")
        driver: Any = self._writer.connection.driver_connection
        with self._end_on_failed_flush():
            driver.execute("VACUUM")
            for _ in range(MAX_CHECKPOINT_ATTEMPTS):
                (is_busy, *_) = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if not is_busy:
                    break
                time.sleep(0.1)  # a reader still uses the log

    def close(self) -> None:
        for reader in self._open_readers:  # the last connection to close merges the log into the file
            reader.close()
        if self._writer is not None:
            self._writer.close()
        if self._pool is not None:
            self._pool.dispose()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def is_damage(error: BaseException) -> bool:
    """Return True if an error of SQLite says that a file is malformed, or is no SQLite file."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return (
        isinstance(cause, sqlite3.DatabaseError) and getattr(cause, "sqlite_errorcode", 0) & 0xFF in DAMAGE_RESULT_CODES
    )


def is_failed_flush(error: BaseException) -> bool:
    """Return True if an error says that the disk did not flush what was written."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return isinstance(cause, sqlite3.Error) and getattr(cause, "sqlite_errorcode", 0) in FAILED_FLUSH_CODES


def end_process(reason: str) -> None:
    """End this process at once, as a crash does: everything acknowledged is on disk, and nothing else may be."""
    _log.critical(
        "the disk did not flush the store: this process ends, and the next one reads what is on the disk", reason=reason
    )
    os._exit(EXIT_STORE_UNAVAILABLE)


def raise_damage(path: Path, error: BaseException) -> None:
    """Raise `StoreDamaged` with the way to fix it if an error says that a file is damaged; else do nothing."""
    if is_damage(error):
        raise StoreDamaged(
            f"{path} is damaged, or is no SQLite file ({first_line(error)}); "
            "restore a backup as docs/how-to/back-up-and-restore.md says"
        ) from error


def take_lock(path: Path) -> int:
    """Keep other processes out of a store, open or not, until the descriptor is closed.

    Raises:
        StoreInUse: another process has it open.
    """
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise StoreInUse(
            f"{path} is in use by another process; stop that process, or choose another folder with --data"
        ) from error
    return lock


def _set_up(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # we begin transactions, not the driver
    cursor = connection.cursor()
    for name, value in PRAGMAS:
        cursor.execute(f"PRAGMA {name} = {value}")
    cursor.close()


def _begin_immediate(connection: Connection) -> None:
    is_reader = connection.get_execution_options().get("reader")
    driver: Any = connection.connection.driver_connection
    driver.execute("BEGIN" if is_reader else "BEGIN IMMEDIATE")


class SqliteBulkStatements:
    """Bulk statements of one connection to an in-process engine: a statement prepared once, run for each row.

    Attributes:
        driver: the driver's own connection.
    """

    def __init__(self, connection: Connection) -> None:
        self.driver: Any = connection.connection.driver_connection
        self._texts: dict[Any, str] = {}

    def insert(self, connection: Connection, statement: BulkInsert, rows: Rows) -> Sequence[int] | None:
        text = self._texts.get(statement)
        column = statement.positions
        # One writer: the positions of an insert are consecutive
        numbers_itself = column is not None and statement.table.c[column].primary_key
        if text is None:
            more = () if column is None or numbers_itself else (column,)
            text = self._texts[statement] = statement.text(_marks(statement, len(more)), *more)
        driver = self.driver
        if column is None:
            driver.executemany(text, rows)
            return None
        if numbers_itself:
            driver.executemany(text, rows)
            last: int = driver.execute("SELECT last_insert_rowid()").fetchone()[0]
            return range(last - len(rows) + 1, last + 1)
        positions = self._reserve_positions(len(rows))
        driver.executemany(text, list(map(add, rows, zip(positions))))
        return positions

    def upsert(self, connection: Connection, statement: BulkUpsert, rows: Rows) -> list[tuple[Any, ...]]:
        text = self._texts.get(statement)
        if statement.has_bytes:  # which JSON does not have
            if text is None:
                text = self._texts[statement] = statement.text(_marks(statement))
            driver = self.driver
            return [written for row in rows if (written := driver.execute(text, row).fetchone()) is not None]
        if text is None:  # all rows in one statement: it takes less than half the time of one for each
            members = ", ".join(f"json_extract(value, '$[{n}]')" for n in range(len(statement.columns)))
            text = self._texts[statement] = statement.text(f"SELECT {members} FROM json_each(?) WHERE true")
        return self.driver.execute(text, (_encode_json(rows).decode(),)).fetchall()

    def update(self, connection: Connection, statement: BulkUpdate, rows: Rows) -> None:
        text = self._texts.get(statement)
        if text is None:
            assigned = ", ".join(f"{quote(name)} = ?" for name in statement.columns)
            table, key = statement.table.name, quote(statement.key)
            text = self._texts[statement] = f"UPDATE {table} SET {assigned} WHERE {key} = ?"
        self.driver.executemany(text, rows)

    def delete(self, connection: Connection, statement: BulkDelete, keys: Sequence[Any]) -> AbstractSet[Any]:
        text = f"DELETE FROM {statement.table.name} WHERE {quote(statement.key)} = ?"
        self.driver.executemany(text, [(key,) for key in keys])
        return set(keys)

    def select(
        self, connection: Connection, statement: BulkSelect[Any], lists: Sequence[Collection[Any]]
    ) -> Sequence[Sequence[Any]]:
        text = self._texts.get(statement)
        if text is None:
            conditions = [f"{quote(key)} IN (SELECT value FROM json_each(?))" for key in statement.keys]
            index = f" INDEXED BY {statement.index}" if statement.index else ""
            text = self._texts[statement] = statement.text(conditions, index)
        # A writing transaction is alone: nothing is locked
        return self.driver.execute(text, tuple(map(bytes.decode, map(_encode_json, map(list, lists))))).fetchall()

    def filter(self, connection: Connection, statement: BulkFilter, members: Collection[str]) -> set[str]:
        text = f"SELECT member.value FROM json_each(?) AS member WHERE {statement.condition}"
        return set(chain.from_iterable(self.driver.execute(text, (_encode_list(members),))))

    def held_shards(self, connection: Connection, queue: int, holder: str, shards: Collection[int]) -> set[int]:
        rows = self.driver.execute(_HELD_SHARDS, (queue, holder, _encode_list(shards)))
        return {shard for (shard,) in rows}

    def next_position(self, connection: Connection) -> int:
        return self._reserve_positions(1)[0]

    def lock_rare_writes(self, connection: Connection) -> None:
        pass

    def now_ms(self, connection: Connection) -> int | None:
        return None

    def _reserve_positions(self, count: int) -> range:
        """Raise the number that `AUTOINCREMENT` keeps for `queue_jobs`; return the positions in between.

        Source: sqlite.org, "SQLite Autoincrement": the table is an ordinary one.
        """
        row = self.driver.execute(_RAISE_LAST_POSITION, (count,)).fetchone()
        if row is None:  # no job has been enqueued yet
            self.driver.execute(_SET_FIRST_POSITION, (count,))
            row = (count,)
        return range(row[0] - count + 1, row[0] + 1)


def _marks(statement: BulkInsert, more: int = 0) -> str:
    return f"VALUES ({', '.join('?' * (len(statement.columns) + more))})"


def _encode_list(values: Collection[Any]) -> str:
    return _encode_json([*values]).decode()


_encode_json = msgspec.json.Encoder().encode
_HELD_SHARDS: Final = (
    "SELECT shard FROM leases WHERE queue = ? AND holder = ? AND shard IN (SELECT value FROM json_each(?))"
)
_RAISE_LAST_POSITION: Final = "UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'queue_jobs' RETURNING seq"
_SET_FIRST_POSITION: Final = "INSERT INTO sqlite_sequence (name, seq) VALUES ('queue_jobs', ?)"
