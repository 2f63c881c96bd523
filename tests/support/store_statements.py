"""Reads and changes of a store by one statement."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from waypost.store.database import Database


async def fetch_column(database: Database, statement: Any) -> list[Any]:
    """Return the first column of all rows."""

    def read(connection: Connection) -> list[Any]:
        return list(connection.execute(statement).scalars().all())

    return await database.read(read)


async def fetch_row(database: Database, statement: Any) -> Any:
    """Return the only row."""

    def read(connection: Connection) -> Any:
        return connection.execute(statement).one()

    return await database.read(read)


async def execute(database: Database, statement: Any, rows: Sequence[dict[str, Any]] | None = None) -> None:
    """Execute a statement that changes the store."""

    def change(connection: Connection) -> None:
        connection.execute(statement, rows)

    await database.write(change)
