"""A table and its statements, as they follow from the struct of its rows."""

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from waypost.simulator.store import Statement, Store, Values, select

Row = TypeVar("Row", bound=msgspec.Struct)

# fmt: off
_TYPES: Final = {  # of members and of columns
    int:        "INTEGER NOT NULL",
    int | None: "INTEGER",
    str:        "TEXT NOT NULL",
    str | None: "TEXT",
}
# fmt: on


class Table(Generic[Row]):
    """A table whose columns are the members of its rows.

    Args:
        name: of the table.
        row_type: what its rows are read as.
        key: the columns of its key, in the key's order; one that stands alone is a number.
        order: the columns by which rows are sorted.
        is_numbered: the file fills the key when a row is added.
        indexes: as they stand behind `CREATE`.
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
        added = [column for column in row_type.__struct_fields__ if not (is_numbered and column in key)]
        self._insert = f"INSERT INTO {name} ({', '.join(added)}) VALUES ({', '.join(f':{column}' for column in added)})"
        # A table WITHOUT ROWID begins with the columns of its key, in the key's order: where it does not, the
        # checks of SQLite 3.40 report NULL values that are not there.
        types = {member.name: _TYPES[member.type] for member in msgspec.structs.fields(row_type)}
        columns = ", ".join(f"{column} {types[column]}" for column in dict.fromkeys((*key, *types)))
        without = "" if len(key) == 1 else " WITHOUT ROWID"
        self.schema = f"CREATE TABLE IF NOT EXISTS {name} ({columns}, PRIMARY KEY ({', '.join(key)})){without};"
        """The statements that make the table and its indexes where they are not there."""
        self.schema += "".join(f"CREATE {index};" for index in indexes)

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
