"""PostgreSQL's bulk statements."""

from collections.abc import Sequence
from typing import Any, Final, LiteralString, cast

import msgspec
import psycopg
from psycopg import sql
from sqlalchemy import BigInteger, Boolean, Connection, Integer, LargeBinary, SmallInteger

from waypost.store.bulk_statements import BulkDelete, BulkInsert, BulkUpdate, Rows


class PostgresBulkStatements:
    """Many rows in one statement: COPY for new rows, and one JSON text or list of keys for the others."""

    def __init__(self) -> None:
        self._insert_statements: dict[BulkInsert, tuple[Any, list[str]]] = {}
        self._update_statements: dict[BulkUpdate, bytes] = {}
        self._delete_statements: dict[BulkDelete, bytes] = {}
        self._encoder = msgspec.json.Encoder()

    def insert(self, connection: Connection, statement: BulkInsert, rows: Rows) -> None:
        """Insert rows by COPY in the binary format; it returns no numbers."""
        if statement not in self._insert_statements:
            names = sql.SQL(", ").join(sql.Identifier(name) for name in statement.columns)
            self._insert_statements[statement] = (
                sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(sql.Identifier(statement.table.name), names),
                [postgres_type(statement.table.c[name]) for name in statement.columns],
            )
        copy_statement, types = self._insert_statements[statement]
        columns = statement.columns
        with driver_connection(connection).cursor() as cursor, cursor.copy(copy_statement) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row([row.get(name) for name in columns])

    def update(self, connection: Connection, statement: BulkUpdate, rows: Rows) -> None:
        """Update rows from one JSON text; keys are sorted, so that two transactions cannot deadlock.

        The list of keys is redundant to the join. But only with it does a planner without statistics, as for a
        new partition, know that it need not read whole tables.
        """
        if statement not in self._update_statements:
            table, key = statement.table, statement.key
            value_types = ", ".join(f'"{name}" {postgres_type(table.c[name])}' for name in statement.columns)
            assigned = ", ".join(f'"{name}" = v."{name}"' for name in statement.columns)
            key_type = postgres_type(table.c[key])
            self._update_statements[statement] = (
                f'UPDATE "{table.name}" AS t SET {assigned} FROM '  # noqa: S608  names of our own tables
                f"json_to_recordset(%s) AS v(at {key_type}, {value_types}) "
                f'WHERE t."{key}" = v.at AND t."{key}" = ANY(%s::{key_type}[])'
            ).encode()
        ordered = sorted(rows, key=lambda row: row["at"])
        names = ("at", *statement.columns)
        text = self._encoder.encode([{name: row[name] for name in names} for row in ordered])
        with driver_connection(connection).cursor() as cursor:
            keys = [row["at"] for row in ordered]
            cursor.execute(cast("LiteralString", self._update_statements[statement]), (text.decode(), keys))

    def delete(self, connection: Connection, statement: BulkDelete, keys: Sequence[Any]) -> set[Any]:
        """Delete rows by one list of keys; rows that another process has deleted meanwhile are not returned."""
        if statement not in self._delete_statements:
            table, key = statement.table, statement.key
            self._delete_statements[statement] = (
                f'DELETE FROM "{table.name}" WHERE "{key}" = ANY(%s::{postgres_type(table.c[key])}[]) '  # noqa: S608
                f'RETURNING "{key}"'
            ).encode()
        with driver_connection(connection).cursor() as cursor:
            cursor.execute(cast("LiteralString", self._delete_statements[statement]), (sorted(keys),))
            return {row[0] for row in cursor.fetchall()}

    def lock_rare_writes(self, connection: Connection) -> None:
        """Take an advisory lock: a rare write reads first and then writes, as if it ran alone."""
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('waypost seldom'))")

    def now_ms(self, connection: Connection) -> int | None:
        """Return the server's time, of this moment and not of the transaction's beginning."""
        return connection.exec_driver_sql("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint").scalar_one()


def driver_connection(connection: Connection) -> psycopg.Connection[Any]:
    """Return the psycopg connection of a SQLAlchemy connection."""
    return cast("Any", connection.connection.driver_connection)


def postgres_type(column: Any) -> str:
    """Return PostgreSQL's name for the type of a column."""
    column_type = column.type
    for sqlalchemy_type, name in _POSTGRES_TYPES:
        if isinstance(column_type, sqlalchemy_type):
            return name
    return "text"


_POSTGRES_TYPES: Final = (
    (SmallInteger, "int2"),
    (BigInteger, "int8"),
    (Integer, "int4"),
    (Boolean, "bool"),
    (LargeBinary, "bytea"),
)
