"""PostgreSQL's bulk statements."""

from collections.abc import Sequence
from typing import Any, Final, LiteralString, cast

import msgspec
import psycopg
from psycopg import sql
from sqlalchemy import BigInteger, Boolean, Connection, Integer, LargeBinary, SmallInteger

from waypost.store.bulk_statements import Adding, Changing, Removing, Rows


class ManyRows:
    """Many rows in one statement: COPY for new rows, and one JSON text or list of keys for the others."""

    def __init__(self) -> None:
        self._copies: dict[Adding, tuple[Any, list[str]]] = {}
        self._changes: dict[Changing, bytes] = {}
        self._removals: dict[Removing, bytes] = {}
        self._encoder = msgspec.json.Encoder()

    def add(self, connection: Connection, adding: Adding, rows: Rows) -> None:
        """Insert rows by COPY in the binary format; it returns no numbers."""
        if adding not in self._copies:
            names = sql.SQL(", ").join(sql.Identifier(name) for name in adding.columns)
            self._copies[adding] = (
                sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(sql.Identifier(adding.table.name), names),
                [type_of(adding.table.c[name]) for name in adding.columns],
            )
        copy_statement, types = self._copies[adding]
        columns = adding.columns
        with driver_of(connection).cursor() as cursor, cursor.copy(copy_statement) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row([row.get(name) for name in columns])

    def change(self, connection: Connection, changing: Changing, rows: Rows) -> None:
        """Update rows from one JSON text; keys are sorted, so that two transactions cannot deadlock.

        The list of keys is redundant to the join. But only with it does a planner without statistics, as for a
        new partition, know that it need not read whole tables.
        """
        if changing not in self._changes:
            table, key = changing.table, changing.key
            value_types = ", ".join(f'"{name}" {type_of(table.c[name])}' for name in changing.columns)
            assigned = ", ".join(f'"{name}" = v."{name}"' for name in changing.columns)
            key_type = type_of(table.c[key])
            self._changes[changing] = (
                f'UPDATE "{table.name}" AS t SET {assigned} FROM '  # noqa: S608  names of our own tables
                f"json_to_recordset(%s) AS v(at {key_type}, {value_types}) "
                f'WHERE t."{key}" = v.at AND t."{key}" = ANY(%s::{key_type}[])'
            ).encode()
        ordered = sorted(rows, key=lambda row: row["at"])
        names = ("at", *changing.columns)
        text = self._encoder.encode([{name: row[name] for name in names} for row in ordered])
        with driver_of(connection).cursor() as cursor:
            keys = [row["at"] for row in ordered]
            cursor.execute(cast("LiteralString", self._changes[changing]), (text.decode(), keys))

    def remove(self, connection: Connection, removing: Removing, keys: Sequence[Any]) -> set[Any]:
        """Delete rows by one list of keys; rows that another process has deleted meanwhile are not returned."""
        if removing not in self._removals:
            table, key = removing.table, removing.key
            self._removals[removing] = (
                f'DELETE FROM "{table.name}" WHERE "{key}" = ANY(%s::{type_of(table.c[key])}[]) '  # noqa: S608
                f'RETURNING "{key}"'
            ).encode()
        with driver_of(connection).cursor() as cursor:
            cursor.execute(cast("LiteralString", self._removals[removing]), (sorted(keys),))
            return {row[0] for row in cursor.fetchall()}

    def alone(self, connection: Connection) -> None:
        """Take an advisory lock: a rare write reads first and then writes, as if it ran alone."""
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('waypost seldom'))")

    def now_ms(self, connection: Connection) -> int | None:
        """Return the server's time, of this moment and not of the transaction's beginning."""
        return connection.exec_driver_sql("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint").scalar_one()


def driver_of(connection: Connection) -> psycopg.Connection[Any]:
    """Return the psycopg connection of a SQLAlchemy connection."""
    return cast("Any", connection.connection.driver_connection)


def type_of(column: Any) -> str:
    """Return PostgreSQL's name for the type of a column."""
    column_type = column.type
    for sqlalchemy_type, name in _TYPES:
        if isinstance(column_type, sqlalchemy_type):
            return name
    return "text"


_TYPES: Final = (
    (SmallInteger, "int2"),
    (BigInteger, "int8"),
    (Integer, "int4"),
    (Boolean, "bool"),
    (LargeBinary, "bytea"),
)
