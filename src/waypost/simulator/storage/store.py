"""The simulator's own file: schema, one writer thread with group commit, and one reader thread."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from waypost.base.batching import CommitWork, GroupCommit, GroupCommitClosed
from waypost.base.files import create_private
from waypost.base.telemetry.logs import log
from waypost.base.threads import ThreadPool

QueryResult = TypeVar("QueryResult")
Values = Mapping[str, Any]
Statement = tuple[str, Values | tuple[Any, ...]]
"""SQL and the values of its parameters, by name or in order."""

_log = log("simulator")
FILE_REVISION: Final = 8
_STATE: Final = """
CREATE TABLE IF NOT EXISTS state (  -- values found by their key alone: see `keyed_store`
    position INTEGER PRIMARY KEY, kind TEXT NOT NULL, owner TEXT NOT NULL, key TEXT NOT NULL,
    body TEXT NOT NULL, UNIQUE (kind, owner, key)
);
"""
_LOAD: Final = (
    "SELECT kind, owner, key, body FROM state WHERE kind IN (SELECT value FROM json_each(:kinds)) ORDER BY position"
)
_TABLES: Final = "SELECT name FROM sqlite_schema WHERE type='table' AND name<>'state'"
_RESET: Final = "DELETE FROM state WHERE kind NOT IN (SELECT value FROM json_each(:kinds))"


_DAMAGE_CODES: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}  # Source: sqlite.org, "Result and Error Codes"


class DamagedFile(Exception):
    """The file is damaged, or is no SQLite file; the text names it, and the way to fix it."""


STORE_FAILURES: Final = (sqlite3.OperationalError, OSError, GroupCommitClosed, DamagedFile)
"""The errors of a write or read while the file cannot be used; nothing of it has been written."""


class IncompatibleFile(Exception):
    """The file was created by another version or program, with other tables; the text has the way to fix it."""


class Store:
    """One SQLite file; data is on disk when the future of `write` ends.

    Times are milliseconds since the epoch, phone numbers are digits, bodies are JSON.

    Args:
        schema: the statements that create the tables with columns of their own.
    """

    def __init__(self, path: Path, schema: str) -> None:
        self._path = path
        self._schema = _STATE + schema
        self._writing = ThreadPool(1, "simulator-writer")
        self._reading = ThreadPool(1, "simulator-reader")
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._commit = GroupCommit(self._transaction, self._writing)
        self._resets: list[Callable[[], None]] = []
        self.cached: dict[str, Any] = {}
        """The values held in memory, by their kind in the table `state`: see `CachedKeyedValues`."""
        self.effects: dict[Callable[[], object], None] = {}
        """What follows the commit of the transaction that is running: changes of memory and wake-ups, each once."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self.damage = ""
        """What SQLite said when the file was found damaged; empty until then."""

    def register_reset(self, clear: Callable[[], None]) -> None:
        """Register a function that clears memory right after a reset of the file."""
        self._resets.append(clear)

    @property
    def busy(self) -> bool:
        """True while a write is in flight."""
        return self._commit.busy

    @property
    def moves(self) -> int:
        """Number of writes begun since opening."""
        return self._commit.joined_count

    async def open(self) -> None:
        """Open the file, create it, its folder and its tables if missing, and load the values held in memory.

        Raises:
            IncompatibleFile: another version or program created it.
            DamagedFile: it cannot be read.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        create_private(self._path)
        self._loop = asyncio.get_running_loop()
        writer = self._writer = await self._writing.run(self._connect)
        with self._translate_damage():
            await self._writing.run(_create_tables, writer, self._path, self._schema)
        self._reader = await self._reading.run(self._connect)
        values = {"kinds": msgspec.json.encode(list(self.cached)).decode()}
        for kind, owner, key, body in await self.read(lambda reader: reader.execute(_LOAD, values).fetchall()):
            self.cached[kind].load(body, key, owner)

    async def reset(self) -> None:
        """Empty the file and the values loaded from it, except the exempt kinds."""
        kept = [kind for kind, values in self.cached.items() if values.survives_reset]
        exempt = {"kinds": msgspec.json.encode(kept).decode()}
        tables = await self.column(_TABLES)
        await self.run([*((f"DELETE FROM {table}", {}) for table in tables), (_RESET, exempt)])  # noqa: S608
        for kind in self.cached.keys() - kept:
            self.cached[kind].clear()
        for clear in self._resets:
            clear()

    async def close(self) -> None:
        """Commit pending writes, then close the file."""
        await self._commit.close()
        if self._reader is not None:
            await self._reading.run(self._reader.close)
        if self._writer is not None:
            await self._writing.run(self._writer.close)
        self._reading.shutdown()
        self._writing.shutdown()

    def write(self, work: Callable[[Any, Sequence[Any]], Sequence[Any]], item: Any) -> asyncio.Future[Any]:
        """Add one item to the next group commit; the future ends when it is on disk.

        Args:
            work: called on the writer's thread with a connection and all its pending items.
        """
        return self._commit.join(work, item)

    async def run(self, statements: Sequence[Statement]) -> None:
        """Execute statements in order, all in one transaction."""
        await self.write(_run, statements)

    def write_soon(self, statements: Sequence[Statement]) -> None:
        """Execute statements before those of every later call; an error shows in these calls, if it lasts."""
        self.write(_run, statements).add_done_callback(lambda written: written.cancelled() or written.exception())

    async def check_writable(self) -> None:
        """Write a page with unchanged content; raises one of `STORE_FAILURES` if the file is not writable."""
        await self.run([(f"PRAGMA user_version={FILE_REVISION}", {})])

    async def read(self, query: Callable[[sqlite3.Connection], QueryResult]) -> QueryResult:
        """Run a query on the reader's thread; it sees everything that is committed."""
        reader = self._reader
        assert reader is not None, "the store is not open"  # noqa: S101  a defect, not an input
        with self._translate_damage():
            return await self._reading.run(query, reader)

    async def rows(self, row_type: Callable[..., QueryResult], statement: str, **values: Any) -> list[QueryResult]:
        """Return the rows of a statement, each created from its columns by name."""
        return await self.read(lambda connection: select(connection, row_type, statement, values))

    async def column(self, statement: str, **values: Any) -> list[Any]:
        """Return the values of a statement with one column."""
        return await self.read(lambda connection: [value for (value,) in connection.execute(statement, values)])

    async def value(self, statement: str, **values: Any) -> Any:
        """Return the value of a statement with one row and column."""
        [value] = await self.column(statement, **values)
        return value

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        with self._translate_damage():
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=4000"):
                connection.execute(f"PRAGMA {pragma}")
        return connection

    @contextlib.contextmanager
    def _translate_damage(self) -> Generator[None]:
        """Raise `DamagedFile` in place of the driver's error, and remember and log the first one."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGE_CODES:
                raise
            if not self.damage and self._reader is not None:  # else it is being opened, and the error ends that
                self.damage = str(error)
                _log.critical("the simulator's file is damaged", file=str(self._path), reason=self.damage)
            raise DamagedFile(
                f"{self._path} is damaged ({error}); restore a backup as docs/how-to/back-up-and-restore.md says, "
                "or remove it to begin with an empty one"
            ) from error

    def _transaction(self, works: Mapping[CommitWork, Sequence[Any]]) -> list[Sequence[Any]]:
        connection = self._writer
        assert connection is not None, "the store is not open"  # noqa: S101  a defect, not an input
        with self._translate_damage():
            self.effects.clear()
            connection.execute("BEGIN IMMEDIATE")
            try:
                results = [work(connection, items) for work, items in works.items()]
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # a full disk may have ended it already
                    connection.execute("ROLLBACK")
                raise
            if self.effects and self._loop is not None:
                self._loop.call_soon_threadsafe(_apply_effects, list(self.effects))
            return results


def _apply_effects(effects: Sequence[Callable[[], object]]) -> None:
    for effect in effects:
        effect()


def select(
    connection: sqlite3.Connection, row_type: Callable[..., QueryResult], statement: str, values: Values
) -> list[QueryResult]:
    """Return the rows of a statement on this connection, each created from its columns by name."""
    cursor = connection.execute(statement, values)
    names = [name for name, *_ in cursor.description]
    return [row_type(**dict(zip(names, row, strict=True))) for row in cursor]


def _create_tables(connection: sqlite3.Connection, path: Path, schema: str) -> None:
    """Create the missing tables, in one transaction."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    [[revision]] = connection.execute("PRAGMA user_version").fetchall()
    if tables and (revision != FILE_REVISION or "state" not in tables):
        raise IncompatibleFile(
            f"{path} was created by another version of the simulator, or by another program (revision {revision}); "
            f"this version needs revision {FILE_REVISION}: start with an empty folder, or use the other version"
        )
    try:
        connection.executescript(f"BEGIN IMMEDIATE; {schema} PRAGMA user_version={FILE_REVISION}; COMMIT;")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _run(connection: sqlite3.Connection, batches: Sequence[Sequence[Statement]]) -> Sequence[None]:
    for statements in batches:
        for statement, values in statements:
            connection.execute(statement, values)
    return [None] * len(batches)
