"""A table and its statements, derived from the struct of its rows."""

import sqlite3
from collections.abc import Collection, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from waypost.simulator.storage.store import Statement, Store, Values, select

Row = TypeVar("Row", bound=msgspec.Struct)

# fmt: off
_COLUMN_TYPES: Final = {  # type of the struct's member: type of the column
    int:        "INTEGER NOT NULL",
    int | None: "INTEGER",
    str:        "TEXT NOT NULL",
    str | None: "TEXT",
}
# fmt: on


class Table(Generic[Row]):
    """A table whose columns are the members of a struct.

    Args:
        key: the columns of its key, in the key's order; a single column is a number.
        order: the columns by which rows are sorted.
        is_numbered: whether SQLite assigns the key when a row is added.
        indexes: each as the text after `CREATE`.
    """

    def __init__(
        self,
        name: str,
        row_type: type[Row],
        *,
        key: Sequence[str],
        order: str,
        is_numbered: bool = False,
        indexes: Sequence[str] = (),
    ) -> None:
        self._name = name
        self._row_type = row_type
        self._order = order
        # a key that SQLite assigns is the struct's last member
        inserted = row_type.__struct_fields__[:-1] if is_numbered else row_type.__struct_fields__
        self._insert = f"INSERT INTO {name} ({', '.join(inserted)}) VALUES ({', '.join('?' * len(inserted))})"
        self._inserted_count = len(inserted)
        # A table WITHOUT ROWID must begin with the columns of its key, in the key's order: otherwise the
        # integrity check of SQLite 3.40 reports NULL values that do not exist.
        types = {member.name: _COLUMN_TYPES[member.type] for member in msgspec.structs.fields(row_type)}
        columns = ", ".join(f"{column} {types[column]}" for column in dict.fromkeys((*key, *types)))
        suffix = "" if len(key) == 1 else " WITHOUT ROWID"
        self.schema = f"CREATE TABLE IF NOT EXISTS {name} ({columns}, PRIMARY KEY ({', '.join(key)})){suffix};"
        """The statements that create the table and its indexes if they do not exist."""
        self.schema += "".join(f"CREATE {index};" for index in indexes)

    def insert(self, row: Row) -> Statement:
        """Return the statement that adds a row."""
        return self._insert, msgspec.structs.astuple(row)[: self._inserted_count]

    def update(self, changes: Values, **where: Any) -> Statement:
        """Return the statement that changes the rows with these values; a conflicting row is replaced."""
        assignments = ", ".join(f"{column}=:new_{column}" for column in changes)
        values = {f"new_{column}": value for column, value in changes.items()} | where
        return f"UPDATE OR REPLACE {self._name} SET {assignments} WHERE {_equality_condition(where)}", values

    def delete(self, **where: Any) -> Statement:
        """Return the statement that deletes the rows with these values."""
        return f"DELETE FROM {self._name} WHERE {_equality_condition(where)}", where

    def find_on(self, connection: sqlite3.Connection, **where: Any) -> list[Row]:
        """Return the rows with these values, on this connection."""
        return self.select(connection, f"{_equality_condition(where)} ORDER BY {self._order}", **where)

    async def find(self, store: Store, **where: Any) -> list[Row]:
        """Return the rows with these values."""
        return await store.read(lambda connection: self.find_on(connection, **where))

    def select(
        self, connection: sqlite3.Connection, condition: str, *, excluded_columns: Collection[str] = (), **values: Any
    ) -> list[Row]:
        """Return the rows that satisfy a condition, on this connection, optionally without some columns."""
        columns = ", ".join(column for column in self._row_type.__struct_fields__ if column not in excluded_columns)
        return select(connection, self._row_type, f"SELECT {columns} FROM {self._name} WHERE {condition}", values)

    async def rows(
        self, store: Store, condition: str, *, excluded_columns: Collection[str] = (), **values: Any
    ) -> list[Row]:
        """Return the rows that satisfy a condition, optionally without some columns."""
        return await store.read(
            lambda connection: self.select(connection, condition, excluded_columns=excluded_columns, **values)
        )

    async def count(self, store: Store) -> int:
        """Return the number of rows."""
        return int(await store.value(f"SELECT count(*) FROM {self._name}"))

    async def highest(self, store: Store, column: str) -> int:
        """Return the highest number in a column; 0 if there is no row."""
        return int(await store.value(f"SELECT coalesce(max({column}), 0) FROM {self._name}"))


def _equality_condition(where: Values) -> str:
    return " AND ".join(
        f"{column} IS NULL" if value is None else f"{column}=:{column}" for column, value in where.items()
    )
