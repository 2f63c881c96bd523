"""PostgreSQL's bulk statements: each is one statement, with an array for each column of its rows."""

from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import Any, Final, cast

import psycopg
from sqlalchemy import BigInteger, Boolean, Connection, Integer, LargeBinary, SmallInteger, Table

from waypost.store.bulk_statements import (
    IS_WRITER,
    BulkCount,
    BulkDelete,
    BulkInsert,
    BulkSelect,
    BulkUpdate,
    Rows,
    raise_counter,
    upsert_counter,
)
from waypost.store.engines.postgresql_arrays import ARRAY_TYPES, ArrayType


class _Statement:
    """The text of a statement, and the types of the arrays that it takes."""

    def __init__(self, text: str, types: Sequence[ArrayType]) -> None:
        self.text = cast("Any", text.encode())
        self.types = types

    def encode_columns(self, rows: Rows) -> list[bytes]:
        """Return the arrays: one for each column of the rows."""
        return [kind.encode(column) for kind, column in zip(self.types, zip(*rows, strict=True), strict=True)]


class PostgresBulkStatements:
    """Statements that unpack arrays, so that their text is prepared once for any number of rows.

    COPY is a little faster for hundreds of rows, and takes two more round trips, which is what the usual
    batch of a dozen rows waits for.
    """

    def __init__(self) -> None:
        self._statements: dict[Any, _Statement] = {}

    def insert(self, connection: Connection, statement: BulkInsert, rows: Rows) -> None:
        """Insert rows; it returns no positions, which are defaults of their columns."""
        prepared = self._statements.get(statement)
        if prepared is None:
            types = _types_of(statement.table, statement.columns)
            names = ", ".join(f'"{name}"' for name in statement.columns)
            text = f"INSERT INTO {statement.table.name} ({names}) SELECT * FROM unnest({_marks(types)})"  # noqa: S608
            prepared = self._statements[statement] = _Statement(text, types)
        self._execute(connection, prepared.text, prepared.encode_columns(rows))

    def update(self, connection: Connection, statement: BulkUpdate, rows: Rows) -> None:
        """Update rows; keys are sorted, so that two transactions cannot deadlock.

        The list of keys is redundant to the join. But only with it does a planner without statistics, as for a
        new partition, know that it need not read whole tables.
        """
        prepared = self._statements.get(statement)
        if prepared is None:
            table, key = statement.table, statement.key
            types = _types_of(table, (*statement.columns, key))
            assigned = ", ".join(f'"{name}" = v."{name}"' for name in statement.columns)
            names = ", ".join(f'"{name}"' for name in (*statement.columns, "at"))
            text = (
                f"UPDATE {table.name} AS t SET {assigned} FROM unnest({_marks(types)}) AS v({names}) "  # noqa: S608
                f'WHERE t."{key}" = v.at AND t."{key}" = ANY(%s)'
            )
            prepared = self._statements[statement] = _Statement(text, types)
        arrays = prepared.encode_columns(sorted(rows, key=itemgetter(-1)))
        self._execute(connection, prepared.text, [*arrays, arrays[-1]])

    def delete(self, connection: Connection, statement: BulkDelete, keys: Sequence[Any]) -> set[Any]:
        """Delete rows by one list of keys; rows that another process has deleted meanwhile are not returned."""
        prepared = self._statements.get(statement)
        if prepared is None:
            table, key = statement.table, statement.key
            text = f'DELETE FROM {table.name} WHERE "{key}" = ANY(%s) RETURNING "{key}"'  # noqa: S608
            prepared = self._statements[statement] = _Statement(text, _types_of(table, (key,)))
        return {row[0] for row in self._fetch(connection, prepared.text, [prepared.types[0].encode(sorted(keys))])}

    def count(self, connection: Connection, statement: BulkCount, rows: Rows) -> list[tuple[Any, ...]]:
        """Raise counters, in the order of the rows."""
        prepared = self._statements.get(statement)
        if prepared is None:
            types = _types_of(statement.table, (*statement.key, statement.column))
            text = f"{upsert_counter(statement)} SELECT * FROM unnest({_marks(types)}) {raise_counter(statement)}"  # noqa: S608
            prepared = self._statements[statement] = _Statement(text, types)
        return self._fetch(connection, prepared.text, prepared.encode_columns(rows))

    def select(
        self, connection: Connection, statement: BulkSelect[Any], keys: Collection[Any]
    ) -> Sequence[Sequence[Any]]:
        """Return rows; a writer's connection locks them in the order of their primary key."""
        is_writer = IS_WRITER in connection.info
        prepared = self._statements.get((statement, is_writer))
        if prepared is None:
            table, key = statement.table, statement.key
            names = ", ".join(f'"{name}"' for name in statement.columns)
            first_key = next(iter(table.primary_key.columns)).name
            lock = f' ORDER BY "{first_key}" FOR UPDATE' if is_writer else ""
            text = f'SELECT {names} FROM {table.name} WHERE "{key}" = ANY(%s){lock}'  # noqa: S608
            prepared = self._statements[statement, is_writer] = _Statement(text, _types_of(table, (key,)))
        return self._fetch(connection, prepared.text, [prepared.types[0].encode(list(keys))])

    def next_position(self, connection: Connection) -> int:
        """Return the position of a new job."""
        return self._fetch(connection, b"SELECT nextval('queue_jobs_position_seq')", ())[0][0]

    def lock_rare_writes(self, connection: Connection) -> None:
        """Take an advisory lock: a rare write reads first and then writes, as if it ran alone."""
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('waypost seldom'))")

    def now_ms(self, connection: Connection) -> int | None:
        """Return the server's time, of this moment and not of the transaction's beginning."""
        return self._fetch(connection, _NOW_MS, ())[0][0]

    @staticmethod
    def _execute(connection: Connection, text: Any, parameters: Sequence[Any]) -> None:
        with driver_connection(connection).cursor() as cursor:
            cursor.execute(text, parameters)

    @staticmethod
    def _fetch(connection: Connection, text: Any, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        with driver_connection(connection).cursor(binary=True) as cursor:
            return cursor.execute(text, parameters).fetchall()


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


def _types_of(table: Table, columns: Sequence[str]) -> list[ArrayType]:
    return [ARRAY_TYPES[postgres_type(table.c[name])] for name in columns]


def _marks(types: Sequence[ArrayType]) -> str:
    return ", ".join(["%s"] * len(types))


_NOW_MS: Final = b"SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_POSTGRES_TYPES: Final = (
    (SmallInteger, "int2"),
    (BigInteger, "int8"),
    (Integer, "int4"),
    (Boolean, "bool"),
    (LargeBinary, "bytea"),
)
