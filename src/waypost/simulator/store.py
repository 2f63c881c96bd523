"""The simulator's own file: schema, one writer thread with group commit, and one reader thread."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

from waypost.base.batching import GroupCommit

Result = TypeVar("Result")
Row = tuple[Any, ...]

# Times are milliseconds since the epoch, numbers of phones are digits, bodies are JSON.
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS apps (
    app_id TEXT PRIMARY KEY, app_secret TEXT NOT NULL,
    callback_uri TEXT NOT NULL, verify_token TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS accounts (
    waba_id TEXT PRIMARY KEY, name TEXT NOT NULL, namespace TEXT NOT NULL, token TEXT NOT NULL,
    app_id TEXT NOT NULL, subscribed INTEGER NOT NULL, override_uri TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS numbers (
    phone_number_id TEXT PRIMARY KEY, waba_id TEXT NOT NULL, phone_number TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL, throughput INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS templates (
    template_id TEXT PRIMARY KEY, waba_id TEXT NOT NULL, name TEXT NOT NULL, language TEXT NOT NULL,
    body TEXT NOT NULL  -- the whole template, its review timer included
);
CREATE TABLE IF NOT EXISTS name_locks (
    waba_id TEXT NOT NULL, name TEXT NOT NULL, language TEXT NOT NULL,  -- language '': all of them
    until_ms INTEGER NOT NULL, PRIMARY KEY (waba_id, name, language)
);
CREATE TABLE IF NOT EXISTS phones (
    phone TEXT PRIMARY KEY, name TEXT NOT NULL,
    deliver_after_ms INTEGER,  -- NULL: as the settings say
    read_after_ms INTEGER      -- NULL: as the settings say; -1: only when told
);
CREATE TABLE IF NOT EXISTS phone_users (  -- who a phone is to businesses, where that is more
    phone TEXT PRIMARY KEY, user_id TEXT NOT NULL, username TEXT NOT NULL,
    shows_number INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS marketing_stops (  -- who wants no marketing of a number
    phone_number_id TEXT NOT NULL, phone TEXT NOT NULL, PRIMARY KEY (phone_number_id, phone)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS windows (  -- when the phone last wrote to the number
    phone_number_id TEXT NOT NULL, phone TEXT NOT NULL, wrote_ms INTEGER NOT NULL,
    PRIMARY KEY (phone_number_id, phone)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS messages (
    position INTEGER PRIMARY KEY, wamid TEXT NOT NULL, phone TEXT NOT NULL,
    phone_number_id TEXT NOT NULL, is_inbound INTEGER NOT NULL, type TEXT NOT NULL,
    at_ms INTEGER NOT NULL, shown TEXT NOT NULL,  -- what the phone shows
    body TEXT NOT NULL,                           -- as it was sent
    callback_data TEXT, context_id TEXT,
    delivered_ms INTEGER, read_ms INTEGER,        -- may lie ahead: then it is planned
    failed_ms INTEGER, failed_code INTEGER
);
CREATE UNIQUE INDEX IF NOT EXISTS messages_by_wamid ON messages (wamid);
CREATE INDEX IF NOT EXISTS messages_by_phone ON messages (phone, position);
CREATE TABLE IF NOT EXISTS outbox (  -- updates that a webhook has yet to carry
    waba_id TEXT NOT NULL, due_ms INTEGER NOT NULL, id INTEGER NOT NULL, kind TEXT NOT NULL,
    phone_number_id TEXT NOT NULL, subject TEXT NOT NULL, rest TEXT NOT NULL,
    PRIMARY KEY (waba_id, due_ms, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS retries (
    waba_id TEXT PRIMARY KEY, attempts INTEGER NOT NULL, next_ms INTEGER NOT NULL,
    reason TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS media (  -- the bytes are in files beside this one
    media_id TEXT PRIMARY KEY, phone_number_id TEXT NOT NULL, mime_type TEXT NOT NULL,
    file_name TEXT NOT NULL, size_bytes INTEGER NOT NULL, sha256 TEXT NOT NULL,
    is_inbound INTEGER NOT NULL, created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS uploads (upload_id TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS flows (flow_id TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS records (  -- about a number or an account
    node_id TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (node_id, kind)
);
CREATE TABLE IF NOT EXISTS blocks (
    phone_number_id TEXT NOT NULL, phone TEXT NOT NULL, since_ms INTEGER NOT NULL,
    PRIMARY KEY (phone_number_id, phone)
);
"""


class Store:
    """One SQLite file, opened and closed; what was written is on disk before `write` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="simulator-writer")
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="simulator-reader")
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._commit = GroupCommit(self._transaction, self._writing)

    async def open(self) -> None:
        """Open the file, and make it, its folder and its tables when they are not there."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        loop = asyncio.get_running_loop()
        writer = await loop.run_in_executor(self._writing, self._connect)
        await loop.run_in_executor(self._writing, writer.executescript, _SCHEMA)
        self._writer = writer
        self._reader = await loop.run_in_executor(self._reading, self._connect)

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

    def write(
        self, work: Callable[[Any, Sequence[Any]], Sequence[Any]], item: Any
    ) -> asyncio.Future[Any]:
        """Join one item to the next group commit; the future ends when it is on disk.

        Args:
            work: called on the writer's thread with a connection and all waiting items of its kind.
            item: what this caller adds to them.
        """
        return self._commit.join(work, item)

    async def run(self, statements: Sequence[tuple[str, Row]]) -> None:
        """Carry out statements in order, all in one transaction."""
        await self.write(_run, statements)

    async def read(self, question: Callable[[sqlite3.Connection], Result]) -> Result:
        """Ask on the reader's thread; sees everything that is committed."""
        reader = self._reader
        assert reader is not None, "the store is not open"  # noqa: S101  a defect, not an input
        return await asyncio.get_running_loop().run_in_executor(self._reading, question, reader)

    async def rows(self, statement: str, values: Row = ()) -> list[Row]:
        """The rows that a statement gives."""
        return await self.read(lambda connection: connection.execute(statement, values).fetchall())

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
            connection.execute("ROLLBACK")
            raise


def _run(
    connection: sqlite3.Connection, pieces: Sequence[Sequence[tuple[str, Row]]]
) -> Sequence[None]:
    for statements in pieces:
        for statement, values in statements:
            connection.execute(statement, values)
    return [None] * len(pieces)
