"""A table and its statements, derived from the struct of its rows."""

import sqlite3
from collections.abc import Collection, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from waypost.base.written_numbers import encode_json, json_decoder
from waypost.simulator.storage.store import Statement, Store, Values

Row = TypeVar("Row", bound=msgspec.Struct)
JsonObject = dict[str, Any]
_decode_object: Final = json_decoder(JsonObject).decode

# fmt: off
_COLUMN_TYPES: Final = {  # type of the struct's member: type of the column
    int:               "INTEGER NOT NULL",
    int | None:        "INTEGER",
    str:               "TEXT NOT NULL",
    str | None:        "TEXT",
    JsonObject:        "TEXT NOT NULL",
    JsonObject | None: "TEXT",
}
# fmt: on


class Table(Generic[Row]):
    """A table whose columns are the members of a struct; an object is stored as JSON text.

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
        members = msgspec.structs.fields(row_type)
        self._objects = {
            member.name: index for index, member in enumerate(members) if member.type in (JsonObject, JsonObject | None)
        }
        # A table WITHOUT ROWID must begin with the columns of its key, in the key's order: otherwise the
        # integrity check of SQLite 3.40 reports NULL values that do not exist.
        types = {member.name: _COLUMN_TYPES[member.type] for member in members}
        columns = ", ".join(f"{column} {types[column]}" for column in dict.fromkeys((*key, *types)))
        suffix = "" if len(key) == 1 else " WITHOUT ROWID"
        self.schema = f"CREATE TABLE IF NOT EXISTS {name} ({columns}, PRIMARY KEY ({', '.join(key)})){suffix};"
        """The statements that create the table and its indexes if they do not exist."""
        self.schema += "".join(f"CREATE {index};" for index in indexes)

    def insert(self, row: Row) -> Statement:
        """Return the statement that adds a row."""
        values = list(msgspec.structs.astuple(row)[: self._inserted_count])
        for index in self._objects.values():
            values[index] = column_value(values[index])
        return self._insert, tuple(values)

    def update(self, changes: Values, **where: Any) -> Statement:
        """Return the statement that changes the rows with these values; a conflicting row is replaced."""
        assignments = ", ".join(f"{column}=:new_{column}" for column in changes)
        values = {f"new_{column}": column_value(value) for column, value in changes.items()} | _column_values(where)
        return f"UPDATE OR REPLACE {self._name} SET {assignments} WHERE {_equality_condition(where)}", values

    def delete(self, **where: Any) -> Statement:
        """Return the statement that deletes the rows with these values."""
        return f"DELETE FROM {self._name} WHERE {_equality_condition(where)}", _column_values(where)

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
        columns = [column for column in self._row_type.__struct_fields__ if column not in excluded_columns]
        cursor = connection.execute(
            f"SELECT {', '.join(columns)} FROM {self._name} WHERE {condition}", _column_values(values)
        )
        return [self._build_row(dict(zip(columns, row, strict=True))) for row in cursor]

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

    def _build_row(self, members: dict[str, Any]) -> Row:
        for name in self._objects:
            if members.get(name) is not None:
                members[name] = _decode_object(members[name])
        return self._row_type(**members)


def column_value(value: Any) -> Any:
    """Return a value as it is stored: an object as JSON text."""
    return encode_json(value).decode() if isinstance(value, dict) else value


def _column_values(where: Values) -> dict[str, Any]:
    return {column: column_value(value) for column, value in where.items()}


def _equality_condition(where: Values) -> str:
    return " AND ".join(
        f"{column} IS NULL" if value is None else f"{column}=:{column}" for column, value in where.items()
    )
