"""What a test asks of a store, or does to it, by one statement."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from waypost.store.database import Database


async def column_of(database: Database, statement: Any) -> list[Any]:
    """The first column of what is found."""

    def look(connection: Connection) -> list[Any]:
        return list(connection.execute(statement).scalars().all())

    return await database.read(look)


async def row_of(database: Database, statement: Any) -> Any:
    """The one row that is found."""

    def look(connection: Connection) -> Any:
        return connection.execute(statement).one()

    return await database.read(look)


async def do(database: Database, statement: Any, rows: Sequence[dict[str, Any]] | None = None) -> None:
    """Change something."""

    def change(connection: Connection) -> None:
        connection.execute(statement, rows)

    await database.write(change)
