"""The simulator's own file: schema, one writer thread with group commit, and one reader thread."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from waypost.base.batching import GroupCommit, Stopped
from waypost.base.files import create_private

Result = TypeVar("Result")
Values = Mapping[str, Any]
Statement = tuple[str, Values]
"""SQL with named parameters, and their values."""

FILE_REVISION: Final = 4
_STATE: Final = """
CREATE TABLE IF NOT EXISTS state (  -- what is found by its key alone: see `state.StoredKind`
    position INTEGER PRIMARY KEY, kind TEXT NOT NULL, owner TEXT NOT NULL, key TEXT NOT NULL,
    body TEXT NOT NULL, UNIQUE (kind, owner, key)
);
"""
_LOAD: Final = (
    "SELECT kind, owner, key, body FROM state WHERE kind IN (SELECT value FROM json_each(:kinds)) ORDER BY position"
)
_TABLES: Final = "SELECT name FROM sqlite_schema WHERE type='table' AND name<>'state'"
_RESET: Final = "DELETE FROM state WHERE kind NOT IN (SELECT value FROM json_each(:kinds))"


STORE_FAILURES: Final = (sqlite3.OperationalError, OSError, Stopped)
"""What a write or read raises when the file cannot be used for now; nothing of it has been written."""


class StateRow(NamedTuple):
    """One row of the table of what is found by its key."""

    kind: str
    owner: str
    key: str
    body: str


class WrongFile(Exception):
    """The file was made by another version, and its tables are others; says what to do."""


class Store:
    """One SQLite file, opened and closed; what was written is on disk before `write` returns.

    Times in it are milliseconds since the epoch, numbers of phones are digits, bodies are JSON.

    Args:
        path: of the file.
        schema: the statements that make the tables with columns of their own.
    """

    def __init__(self, path: Path, schema: str) -> None:
        self._path = path
        self._schema = _STATE + schema
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="simulator-writer")
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="simulator-reader")
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._commit = GroupCommit(self._transaction, self._writing)
        self._loads: dict[str, Callable[[StateRow], None]] = {}
        self._staying_kinds: list[str] = []
        self._resets: list[Callable[[], None]] = []

    def load_kind(self, kind: str, load: Callable[["StateRow"], None]) -> None:
        """Have every row of a kind loaded into memory when the file is opened."""
        self._loads[kind] = load

    def keep_kind(self, kind: str) -> None:
        """Leave a kind alone at a reset."""
        self._staying_kinds.append(kind)

    def at_reset(self, forget: Callable[[], None]) -> None:
        """Have memory emptied right after the file was."""
        self._resets.append(forget)

    @property
    def busy(self) -> bool:
        """Whether a write is under way."""
        return self._commit.busy

    @property
    def moves(self) -> int:
        """How many writes have been begun since it was opened."""
        return self._commit.joined

    async def open(self) -> None:
        """Open the file, make it, its folder and its tables when they are not there, and load what belongs in memory.

        Raises:
            WrongFile: another version has made it.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        create_private(self._path)
        loop = asyncio.get_running_loop()
        writer = await loop.run_in_executor(self._writing, self._connect)
        self._writer = writer
        await loop.run_in_executor(self._writing, _prepare, writer, self._path, self._schema)
        self._reader = await loop.run_in_executor(self._reading, self._connect)
        for row in await self.rows(StateRow, _LOAD, kinds=msgspec.json.encode(list(self._loads)).decode()):
            self._loads[row.kind](row)

    async def reset(self) -> None:
        """Empty the file and what was loaded from it, except for the kinds that are kept."""
        staying = {"kinds": msgspec.json.encode(self._staying_kinds).decode()}
        tables = await self.column(_TABLES)
        await self.run([*((f"DELETE FROM {table}", {}) for table in tables), (_RESET, staying)])  # noqa: S608
        for forget in self._resets:
            forget()

    async def close(self) -> None:
        """Commit what was handed in, then close the file."""
        loop = asyncio.get_running_loop()
        await self._commit.close()
        if self._reader is not None:
            await loop.run_in_executor(self._reading, self._reader.close)
        if self._writer is not None:
            await loop.run_in_executor(self._writing, self._writer.close)
        self._reading.shutdown()
        self._writing.shutdown()

    def write(self, work: Callable[[Any, Sequence[Any]], Sequence[Any]], item: Any) -> asyncio.Future[Any]:
        """Join one item to the next group commit; the future ends when it is on disk.

        Args:
            work: called on the writer's thread with a connection and all waiting items of its kind.
            item: what this caller adds to them.
        """
        return self._commit.join(work, item)

    async def run(self, statements: Sequence[Statement]) -> None:
        """Carry out statements in order, all in one transaction."""
        await self.write(_run, statements)

    async def write_nothing(self) -> None:
        """Change a page without changing what it says: raises one of `STORE_FAILURES` if that cannot be kept."""
        await self.run([(f"PRAGMA user_version={FILE_REVISION}", {})])

    async def read(self, question: Callable[[sqlite3.Connection], Result]) -> Result:
        """Ask on the reader's thread; sees everything that is committed."""
        reader = self._reader
        assert reader is not None, "the store is not open"  # noqa: S101  a defect, not an input
        return await asyncio.get_running_loop().run_in_executor(self._reading, question, reader)

    async def rows(self, row_type: Callable[..., Result], statement: str, **values: Any) -> list[Result]:
        """The rows that a statement gives, each made of its columns by their names."""
        return await self.read(lambda connection: select(connection, row_type, statement, values))

    async def column(self, statement: str, **values: Any) -> list[Any]:
        """The values of a statement that gives one column."""
        return await self.read(lambda connection: [value for (value,) in connection.execute(statement, values)])

    async def value(self, statement: str, **values: Any) -> Any:
        """The one value that a statement gives."""
        [value] = await self.column(statement, **values)
        return value

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=4000"):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def _transaction(self, work: Callable[[Any], None]) -> None:
        connection = self._writer
        assert connection is not None, "the store is not open"  # noqa: S101  a defect, not an input
        connection.execute("BEGIN IMMEDIATE")
        try:
            work(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # a full disk may have ended it already
                connection.execute("ROLLBACK")
            raise


def select(
    connection: sqlite3.Connection, row_type: Callable[..., Result], statement: str, values: Values
) -> list[Result]:
    """The rows that a statement gives on this connection, each made of its columns by their names."""
    cursor = connection.execute(statement, values)
    names = [name for name, *_ in cursor.description]
    return [row_type(**dict(zip(names, row, strict=True))) for row in cursor]


def _prepare(connection: sqlite3.Connection, path: Path, schema: str) -> None:
    """Make the tables that are not there, in one transaction."""
    [[tables]] = connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    [[revision]] = connection.execute("PRAGMA user_version").fetchall()
    if tables and revision != FILE_REVISION:
        raise WrongFile(
            f"{path} was made by another version of the simulator (revision {revision}), and this one "
            f"works on revision {FILE_REVISION}; start with an empty folder, or with that version"
        )
    try:
        connection.executescript(f"BEGIN IMMEDIATE; {schema} PRAGMA user_version={FILE_REVISION}; COMMIT;")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def run_statements(connection: sqlite3.Connection, statements: Iterable[Statement]) -> None:
    """Carry out statements in order, within the caller's transaction."""
    for statement, values in statements:
        connection.execute(statement, values)


def _run(connection: sqlite3.Connection, pieces: Sequence[Sequence[Statement]]) -> Sequence[None]:
    for statements in pieces:
        run_statements(connection, statements)
    return [None] * len(pieces)
