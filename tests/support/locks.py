"""A store that is away for a moment: another connection holds SQLite's write lock."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection

from waypost.store.database import Database


async def be_impatient(database: Database) -> None:
    """Let the writer wait 50 ms for the lock, and not the five seconds of real use."""

    def set_it(connection: Connection) -> None:
        connection.exec_driver_sql("PRAGMA busy_timeout = 50")

    await database.write(set_it)


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Every write of the store fails while this lasts."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()
