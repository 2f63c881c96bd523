"""The simulator's own file: schema, one writer thread with group commit, and one reader thread."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

from waypost.base.batching import GroupCommit, Stopped
from waypost.base.private_files import create_private

Result = TypeVar("Result")
Row = tuple[Any, ...]
Statement = tuple[str, Row]

FILE_REVISION: Final = 3
OLDEST_FILE_REVISION: Final = 2
"""Files from this revision on are upgraded when they are opened."""
# Times are milliseconds since the epoch, numbers of phones are digits, bodies are JSON.
# A table WITHOUT ROWID begins with the columns of its key, in the key's order: where it does not, the
# checks of SQLite 3.40 report NULL values that are not there.
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS apps (
    app_id TEXT PRIMARY KEY, app_secret TEXT NOT NULL,
    callback_uri TEXT NOT NULL, verify_token TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS accounts (
    waba_id TEXT PRIMARY KEY, name TEXT NOT NULL, namespace TEXT NOT NULL, token TEXT NOT NULL,
    app_id TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS subscriptions (  -- which apps hear of an account
    waba_id TEXT NOT NULL, app_id TEXT NOT NULL,
    override_uri TEXT NOT NULL,  -- empty: the app's own address
    PRIMARY KEY (waba_id, app_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS numbers (
    phone_number_id TEXT PRIMARY KEY, waba_id TEXT NOT NULL, phone_number TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL, throughput INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS templates (
    template_id TEXT PRIMARY KEY, waba_id TEXT NOT NULL, name TEXT NOT NULL, language TEXT NOT NULL,
    body TEXT NOT NULL  -- the whole template, its review timer included
);
CREATE TABLE IF NOT EXISTS template_uses (  -- the last one, to a day
    template_id TEXT PRIMARY KEY, at_ms INTEGER NOT NULL
) WITHOUT ROWID;
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
CREATE TABLE IF NOT EXISTS phone_habits (  -- where they are not everybody's
    phone TEXT PRIMARY KEY, condition TEXT NOT NULL, sends_read_receipts INTEGER NOT NULL,
    has_chat_open INTEGER NOT NULL, is_offline INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS phone_blocks (  -- who has blocked a business number
    phone_number_id TEXT NOT NULL, phone TEXT NOT NULL, PRIMARY KEY (phone_number_id, phone)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spam_reports (
    id INTEGER PRIMARY KEY, phone_number_id TEXT NOT NULL, phone TEXT NOT NULL,
    wamid TEXT NOT NULL,  -- may be empty: the chat
    at_ms INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS waiting (  -- what an offline phone will get when it is back
    phone TEXT NOT NULL, position INTEGER NOT NULL, wamid TEXT NOT NULL, waba_id TEXT NOT NULL,
    phone_number_id TEXT NOT NULL, until_ms INTEGER NOT NULL,  -- then it is dropped
    is_delivered INTEGER NOT NULL,                             -- then only its reading waits
    read_after_ms INTEGER,                                     -- NULL: not by itself
    rest TEXT NOT NULL,                                        -- of its status; empty: nobody hears
    PRIMARY KEY (phone, position)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fleets (name TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS phone_scripts (
    phone TEXT PRIMARY KEY, seed TEXT NOT NULL, steps TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS script_counts (  -- owner: 'fleet' and its name, or 'phone' and its digits
    owner TEXT NOT NULL, step INTEGER NOT NULL, planned INTEGER NOT NULL, done INTEGER NOT NULL,
    PRIMARY KEY (owner, step)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS script_uses (  -- of steps that a phone takes only so many times
    owner TEXT NOT NULL, phone TEXT NOT NULL, step INTEGER NOT NULL, uses INTEGER NOT NULL,
    PRIMARY KEY (owner, phone, step)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS planned_acts (
    id INTEGER PRIMARY KEY, due_ms INTEGER,  -- NULL: so long after the phone is back
    after_ms INTEGER NOT NULL, phone TEXT NOT NULL, phone_number_id TEXT NOT NULL,
    wamid TEXT NOT NULL, owner TEXT NOT NULL, step INTEGER NOT NULL,
    act TEXT NOT NULL  -- what to do, whole
);
CREATE INDEX IF NOT EXISTS planned_acts_by_due ON planned_acts (due_ms, id);
CREATE INDEX IF NOT EXISTS planned_acts_by_phone ON planned_acts (phone);
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
CREATE TABLE IF NOT EXISTS outbox (  -- updates that a webhook has yet to carry, once for each app
    waba_id TEXT NOT NULL, app_id TEXT NOT NULL, due_ms INTEGER NOT NULL, id INTEGER NOT NULL,
    kind TEXT NOT NULL, phone_number_id TEXT NOT NULL, subject TEXT NOT NULL, rest TEXT NOT NULL,
    PRIMARY KEY (waba_id, app_id, due_ms, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS retries (  -- phone_number_id: of a number with an address of its own, or empty
    waba_id TEXT NOT NULL, app_id TEXT NOT NULL, phone_number_id TEXT NOT NULL,
    attempts INTEGER NOT NULL, next_ms INTEGER NOT NULL, reason TEXT NOT NULL,
    PRIMARY KEY (waba_id, app_id, phone_number_id)
) WITHOUT ROWID;
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
CREATE TABLE IF NOT EXISTS number_webhooks (  -- where a number's updates for an app go instead
    app_id TEXT NOT NULL, phone_number_id TEXT NOT NULL, uri TEXT NOT NULL,
    PRIMARY KEY (app_id, phone_number_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tokens (token TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS ledger (  -- what is limited over hours and days, once for each `who`
    kind TEXT NOT NULL, subject TEXT NOT NULL, who TEXT NOT NULL, at_ms INTEGER NOT NULL,
    PRIMARY KEY (kind, subject, who)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS held (  -- messages that wait for the verdict on their template
    wamid TEXT PRIMARY KEY, template_id TEXT NOT NULL, body TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS faults (  -- armed for calls and webhooks; the body as it was armed
    id INTEGER PRIMARY KEY, body TEXT NOT NULL, scenario TEXT NOT NULL,
    seen INTEGER NOT NULL, hits INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS fault_firings (
    fault_id INTEGER NOT NULL, hit INTEGER NOT NULL, at_ms INTEGER NOT NULL, name TEXT NOT NULL,
    about TEXT NOT NULL, PRIMARY KEY (fault_id, hit)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS judged_updates (  -- updates that faults have judged; outbox rows with more
    position INTEGER PRIMARY KEY, waba_id TEXT NOT NULL, due_ms INTEGER NOT NULL,
    id INTEGER NOT NULL, kind TEXT NOT NULL, phone_number_id TEXT NOT NULL, subject TEXT NOT NULL,
    rest TEXT NOT NULL, app_id TEXT NOT NULL, until_ms INTEGER NOT NULL,
    together INTEGER NOT NULL  -- 0: goes by itself; 1: after the next one; N: when N are together
);
CREATE INDEX IF NOT EXISTS judged_updates_of_account ON judged_updates (waba_id, app_id, position);
CREATE TABLE IF NOT EXISTS blocks (
    phone_number_id TEXT NOT NULL, phone TEXT NOT NULL, since_ms INTEGER NOT NULL,
    PRIMARY KEY (phone_number_id, phone)
);
"""
_BEFORE: Final = {  # by revision: what has to be done before the tables are made, and after
    2: "ALTER TABLE outbox RENAME TO outbox_2;"
}
_AFTER: Final = {
    2: "INSERT INTO outbox SELECT waba_id, app_id, due_ms, id, kind, phone_number_id, subject, rest "
    "FROM outbox_2; DROP TABLE outbox_2;"
}


STORE_FAILURES: Final = (sqlite3.OperationalError, OSError, Stopped)
"""What a write or read raises when the file cannot be used for now; nothing of it has been written."""


class WrongFile(Exception):
    """The file was made by another version, and its tables are others; says what to do."""


class Store:
    """One SQLite file, opened and closed; what was written is on disk before `write` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="simulator-writer")
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="simulator-reader")
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._commit = GroupCommit(self._transaction, self._writing)

    @property
    def busy(self) -> bool:
        """Whether a write is under way."""
        return self._commit.busy

    @property
    def moves(self) -> int:
        """How many writes have been begun since it was opened."""
        return self._commit.joined

    async def open(self) -> None:
        """Open the file, and make it, its folder and its tables when they are not there.

        Raises:
            WrongFile: another version has made it.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        create_private(self._path)
        loop = asyncio.get_running_loop()
        writer = await loop.run_in_executor(self._writing, self._connect)
        self._writer = writer
        await loop.run_in_executor(self._writing, _prepare, writer, self._path)
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

    def write(self, work: Callable[[Any, Sequence[Any]], Sequence[Any]], item: Any) -> asyncio.Future[Any]:
        """Join one item to the next group commit; the future ends when it is on disk.

        Args:
            work: called on the writer's thread with a connection and all waiting items of its kind.
            item: what this caller adds to them.
        """
        return self._commit.join(work, item)

    async def run(self, statements: Sequence[tuple[str, Row]]) -> None:
        """Carry out statements in order, all in one transaction."""
        await self.write(_run, statements)

    async def write_nothing(self) -> None:
        """Change a page without changing what it says: raises one of `STORE_FAILURES` if that cannot be kept."""
        await self.run([(f"PRAGMA user_version={FILE_REVISION}", ())])

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
            if connection.in_transaction:  # a full disk may have ended it already
                connection.execute("ROLLBACK")
            raise


def upgrade_file(path: Path) -> None:
    """Bring a closed file that an older version has made to this version's revision.

    Raises:
        WrongFile: its revision is not between the oldest that can be upgraded and this version's.
        sqlite3.Error: it is damaged.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        _prepare(connection, path)
    finally:
        connection.close()


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables that are not there, and upgrade those of an older revision, in one transaction."""
    [(tables,)] = connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    [(revision,)] = connection.execute("PRAGMA user_version").fetchall()
    if tables and not OLDEST_FILE_REVISION <= revision <= FILE_REVISION:
        raise WrongFile(
            f"{path} was made by another version of the simulator (revision {revision}), and this one "
            f"works on revisions {OLDEST_FILE_REVISION} to {FILE_REVISION}; start with an empty folder, "
            "or with that version"
        )
    older = range(revision, FILE_REVISION) if tables else ()
    steps = [
        *(_BEFORE[one] for one in older),
        _SCHEMA,
        *(_AFTER[one] for one in older),
        f"PRAGMA user_version={FILE_REVISION};",
    ]
    try:
        connection.executescript(f"BEGIN IMMEDIATE; {' '.join(steps)} COMMIT;")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _run(connection: sqlite3.Connection, pieces: Sequence[Sequence[tuple[str, Row]]]) -> Sequence[None]:
    for statements in pieces:
        for statement, values in statements:
            connection.execute(statement, values)
    return [None] * len(pieces)
