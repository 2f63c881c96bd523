"""The location of a test's store: an SQLite file, or a PostgreSQL database that no other test uses.

A test names no engine: it takes a location, opens stores there, and runs once for each engine.
"""

import os
import secrets
import sqlite3
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import psycopg
from psycopg import sql
from sqlalchemy import Connection

from tests.support.postgres import UNSAFE, create_database, drop_database, running_server, url_of
from waypost.store.contract import StoreEngine
from waypost.store.database import Database
from waypost.store.engines.postgresql import PostgresEngine
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.leases import NO_HOLDER, SHARD_COUNT

ENGINES: Final = ("sqlite", "postgresql")
OTHER_SERVER: Final = "WAYPOST_TEST_DATABASE_URL"


class StoreLocation(Protocol):
    """The location of a store; it stays the same store however often it is opened.

    Attributes:
        settings: those that select the location in a service, besides its folder.
    """

    settings: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The path of the file, or the name of the database."""
        ...

    def engine(self, *, sole: bool = True) -> StoreEngine:
        """Return an engine that opens the store.

        Args:
            sole: whether to lock other processes out, if the engine can.
        """
        ...

    def make_unavailable(self, database: Database) -> AbstractAsyncContextManager[None]:
        """Make all writes of an open store fail in this context."""
        ...

    def pass_lease(self, *, ms: int) -> None:
        """Advance the time of leases, if the store's own clock decides on them."""
        ...


@dataclass
class SqliteLocation:
    """An SQLite file, at its path in a service's folder."""

    folder: Path
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def name(self) -> str:
        """See `StoreLocation`."""
        return str(self.folder / "waypost.db")

    def engine(self, *, sole: bool = True) -> StoreEngine:
        """See `StoreLocation`."""
        return SqliteEngine(self.folder / "waypost.db", exclusive=sole)

    @asynccontextmanager
    async def make_unavailable(self, database: Database) -> AsyncGenerator[None]:
        """Hold the write lock on another connection; the writer waits 50 ms for it, not five seconds."""

        def shorten_timeout(connection: Connection) -> None:
            connection.exec_driver_sql("PRAGMA busy_timeout = 50")

        await database.write(shorten_timeout)
        other = sqlite3.connect(self.folder / "waypost.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")
            other.close()

    def pass_lease(self, *, ms: int) -> None:
        """Do nothing: the clock of the test decides."""


@dataclass
class PostgresLocation:
    """A PostgreSQL database."""

    url: str
    settings: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.settings = {"database_url": self.url}

    @property
    def name(self) -> str:
        """See `StoreLocation`."""
        return name_of(self.url)

    def engine(self, *, sole: bool = True) -> StoreEngine:
        """See `StoreLocation`."""
        return PostgresEngine(self.url)

    @asynccontextmanager
    async def make_unavailable(self, database: Database) -> AsyncGenerator[None]:
        """End every connection to the database, and have the server accept no new one."""
        name = name_of(self.url)
        allow = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
        with psycopg.connect(url_of(self.url, "postgres"), autocommit=True) as server:
            server.execute(allow.format(sql.Identifier(name), sql.SQL("false")))
            server.execute(_END_OTHERS.format(sql.Literal(name)))
        try:
            yield
        finally:
            with psycopg.connect(url_of(self.url, "postgres"), autocommit=True) as server:
                server.execute(allow.format(sql.Identifier(name), sql.SQL("true")))

    def pass_lease(self, *, ms: int) -> None:
        """Make the leases end earlier: the server's clock decides, and cannot be moved."""
        with psycopg.connect(self.url, autocommit=True) as server:
            server.execute("UPDATE leases SET until_ms = until_ms - %s", (ms,))
            server.execute("UPDATE processes SET seen_ms = seen_ms - %s", (ms,))


class Databases:
    """A pool of databases on one server: each is used by one test at a time, and emptied after it.

    Emptying a database takes a few milliseconds; creating one from a template takes 60. Filled tables are
    truncated, because deleted rows would stay in their files and slow down every later test.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._name = f"waypost_test_{secrets.token_hex(4)}"
        self._count = 0
        self._ready: list[str] = []
        self._tables: list[str] = []
        self._first_rows: dict[str, bytes] = {}

    def acquire(self) -> str:
        """Return the URL of a database with the schema and nothing else."""
        if not self._tables:
            self._make_template()
        if self._ready:
            return self._ready.pop()
        return self._create(template=self._name)

    def take_empty(self) -> str:
        """Return the URL of an empty database, without the schema."""
        return self._create(template=None)

    def release(self, url: str) -> None:
        """Empty a database for the next test; drop it if its tables have changed."""
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_END_OTHERS.format(sql.Literal(connection.info.dbname)))
            if _tables(connection) != self._tables:
                self._ready = [ready for ready in self._ready if ready != url]
            else:
                self._empty(connection)
                self._ready.append(url)
                return
        self.drop(url)

    def drop(self, url: str) -> None:
        """Drop a database."""
        drop_database(self._server, name_of(url))

    def close(self) -> None:
        """Drop all databases: the server may be used by others."""
        for number in range(1, self._count + 1):
            drop_database(self._server, f"{self._name}_{number}")
        drop_database(self._server, self._name)

    def _create(self, *, template: str | None) -> str:
        self._count += 1
        name = f"{self._name}_{self._count}"
        create_database(self._server, name, template=template)
        return url_of(self._server, name)

    def _make_template(self) -> None:
        create_database(self._server, self._name)
        url = url_of(self._server, self._name)
        engine = PostgresEngine(url)
        engine.open()  # makes the schema
        engine.close()
        with psycopg.connect(url, autocommit=True) as connection:
            queue_names = [int(queue_name) for queue_name in QueueName]
            connection.execute(_LEASES, {"queues": queue_names, "shards": SHARD_COUNT, "nobody": NO_HOLDER})
            tables = _tables(connection)
            for table in tables:
                reading = sql.SQL("COPY (SELECT * FROM {}) TO STDOUT").format(sql.Identifier(table))
                with connection.cursor() as cursor, cursor.copy(reading) as copy:
                    rows = b"".join(bytes(part) for part in copy)
                if rows:
                    self._first_rows[table] = rows
        self._tables = tables

    def _empty(self, connection: psycopg.Connection[Any]) -> None:
        filled = [sql.Identifier(row[0]) for row in connection.execute(_FILLED)]
        connection.execute(_EMPTY.format(sql.SQL(", ").join(filled)))
        for table, rows in self._first_rows.items():
            writing = sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(table))
            with connection.cursor() as cursor, cursor.copy(writing) as copy:
                copy.write(rows)


@contextmanager
def databases_of_a_server() -> Generator[Databases]:
    """Run a pool on the server that the environment names, or on a temporary one."""
    server_url = os.environ.get(OTHER_SERVER)
    if server_url:
        databases = Databases(server_url)
        try:
            yield databases
        finally:
            databases.close()
        return
    with running_server(UNSAFE) as server:  # none of these tests examines what a crash leaves
        yield Databases(server.url())


def empty_file(folder: Path) -> Path:
    """Create an SQLite file with the schema and nothing else; return its path."""
    path = folder / "waypost.db"
    engine = SqliteEngine(path)
    engine.open()  # makes the schema
    engine.close()
    return path


def name_of(url: str) -> str:
    """Return the database's name in a URL."""
    return urlsplit(url).path.removeprefix("/")


def _tables(connection: psycopg.Connection[Any]) -> list[str]:
    return [row[0] for row in connection.execute(_TABLES)]


_TABLES: Final = """
    SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace
    AND NOT relispartition ORDER BY relname
"""
_FILLED: Final = """
    SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
    AND pg_relation_size(oid) > 0
"""
_LEASES: Final = """
    INSERT INTO leases (queue, shard, holder, until_ms)
    SELECT queue, shard, %(nobody)s, 0
    FROM unnest(%(queues)s::int[]) AS queue, generate_series(0, %(shards)s - 1) AS shard
"""  # otherwise the first process creates them one by one, which is half the time of most tests
_EMPTY: Final = sql.SQL(
    "TRUNCATE {}; SELECT setval(oid::regclass, 1, false) FROM pg_class"
    " WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace"
)
_END_OTHERS: Final = sql.SQL(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = {} AND pid <> pg_backend_pid()"
)
