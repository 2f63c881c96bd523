"""The statements of a table that follow from the names of its columns."""

import sqlite3
from collections.abc import Collection, Iterable
from typing import Any, Generic, TypeVar

import msgspec

from waypost.simulator.store import Statement, Store, Values, select

Row = TypeVar("Row", bound=msgspec.Struct)


class Table(Generic[Row]):
    """A table whose columns are the members of its rows.

    Args:
        name: of the table.
        row_type: what its rows are read as.
        order: the columns by which they are sorted.
        numbered: the column that the file fills when a row is added; empty where there is none.
    """

    def __init__(self, name: str, row_type: type[Row], *, order: str, numbered: str = "") -> None:
        self._name = name
        self._row_type = row_type
        self._order = order
        added = [column for column in row_type.__struct_fields__ if column != numbered]
        self._insert = f"INSERT INTO {name} ({', '.join(added)}) VALUES ({', '.join(f':{column}' for column in added)})"

    def insert(self, row: Row) -> Statement:
        """The statement that adds a row."""
        return self._insert, msgspec.structs.asdict(row)

    def insert_all(self, connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
        """Add rows, within the caller's transaction."""
        connection.executemany(self._insert, map(msgspec.structs.asdict, rows))

    def update(self, changes: Values, **where: Any) -> Statement:
        """The statement that changes the rows with these values; a row that is in their way is replaced."""
        new = ", ".join(f"{column}=:new_{column}" for column in changes)
        values = {f"new_{column}": value for column, value in changes.items()} | where
        return f"UPDATE OR REPLACE {self._name} SET {new} WHERE {_equal(where)}", values

    def delete(self, **where: Any) -> Statement:
        """The statement that deletes the rows with these values."""
        return f"DELETE FROM {self._name} WHERE {_equal(where)}", where

    def find_on(self, connection: sqlite3.Connection, **where: Any) -> list[Row]:
        """The rows with these values, on this connection."""
        return self.select(connection, f"{_equal(where)} ORDER BY {self._order}", **where)

    async def find(self, store: Store, **where: Any) -> list[Row]:
        """The rows with these values."""
        return await store.read(lambda connection: self.find_on(connection, **where))

    def select(
        self, connection: sqlite3.Connection, condition: str, *, without: Collection[str] = (), **values: Any
    ) -> list[Row]:
        """The rows of which a condition is true, on this connection, perhaps without some columns."""
        columns = ", ".join(column for column in self._row_type.__struct_fields__ if column not in without)
        return select(connection, self._row_type, f"SELECT {columns} FROM {self._name} WHERE {condition}", values)

    async def rows(self, store: Store, condition: str, *, without: Collection[str] = (), **values: Any) -> list[Row]:
        """The rows of which a condition is true, perhaps without some columns."""
        return await store.read(lambda connection: self.select(connection, condition, without=without, **values))

    async def count(self, store: Store) -> int:
        """How many rows there are."""
        return int(await store.value(f"SELECT count(*) FROM {self._name}"))

    async def highest(self, store: Store, column: str) -> int:
        """The highest number in a column; 0 where there is no row."""
        return int(await store.value(f"SELECT coalesce(max({column}), 0) FROM {self._name}"))


def _equal(where: Values) -> str:
    return " AND ".join(
        f"{column} IS NULL" if value is None else f"{column}=:{column}" for column, value in where.items()
    )
