"""PostgreSQL's bulk statements: each is one statement, with an array for each column of its rows."""

import re
from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import Any, Final, cast

import psycopg
from psycopg.pq import ConnStatus, ExecStatus, Format, TransactionStatus
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

    New rows are sent as late as possible: with the next statement that is not another insert, or at the end of
    the transaction. Inserts that meet there are one statement. If they are all that a transaction does, as when
    messages are accepted, that statement is the whole transaction: one round trip, commit included.

    COPY is a little faster for hundreds of rows, and takes more round trips, which is what the usual batch of a
    dozen rows waits for.
    """

    def __init__(self) -> None:
        self._statements: dict[Any, _Statement] = {}

    def insert(self, connection: Connection, statement: BulkInsert, rows: Rows) -> None:
        """Insert rows, by `send_inserts`; it returns no positions, which are defaults of their columns."""
        connection.info.setdefault(_WAITING_INSERTS, []).append((statement, rows))

    def send_inserts(self, connection: Connection, *, is_end: bool = False) -> None:
        """Send the inserts that wait, in their order; at the end of a transaction that did nothing else, commit too."""
        waiting: list[tuple[BulkInsert, Rows]] = connection.info.pop(_WAITING_INSERTS, [])
        if not waiting:
            return
        statements = tuple(statement for statement, _ in waiting)
        prepared = self._statements.get(statements)
        if prepared is None:
            prepared = self._statements[statements] = _insert_statement(statements)
        arrays: list[bytes] = []
        first = 0
        for statement, rows in waiting:
            count = len(statement.columns)
            columns = zip(*rows, strict=True)
            arrays += [kind.encode(column) for kind, column in zip(prepared.types[first:], columns, strict=False)]
            first += count
        driver = driver_connection(connection)
        if is_end and driver.info.transaction_status is TransactionStatus.IDLE:
            _execute_alone(connection, driver, prepared, arrays)
        else:
            self._execute(connection, prepared.text, arrays)

    def drop_inserts(self, connection: Connection) -> None:
        """Drop the inserts that wait: their transaction has failed."""
        connection.info.pop(_WAITING_INSERTS, None)

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

    def _execute(self, connection: Connection, text: Any, parameters: Sequence[Any]) -> None:
        self.send_inserts(connection)
        with driver_connection(connection).cursor() as cursor:
            cursor.execute(text, parameters)

    def _fetch(self, connection: Connection, text: Any, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        self.send_inserts(connection)
        with driver_connection(connection).cursor(binary=True) as cursor:
            return cursor.execute(text, parameters).fetchall()


def _insert_statement(statements: Sequence[BulkInsert]) -> _Statement:
    """Return one statement that inserts the rows of several."""
    types: list[ArrayType] = []
    texts: list[str] = []
    for statement in statements:
        own = _types_of(statement.table, statement.columns)
        names = ", ".join(f'"{name}"' for name in statement.columns)
        texts.append(f"INSERT INTO {statement.table.name} ({names}) SELECT * FROM unnest({_marks(own)})")  # noqa: S608
        types += own
    *earlier, last = texts
    named = ", ".join(f"insert_{n} AS ({text})" for n, text in enumerate(earlier))
    return _Statement(f"WITH {named} {last}" if named else last, types)


def _execute_alone(
    connection: Connection, driver: psycopg.Connection[Any], statement: _Statement, arrays: Sequence[bytes]
) -> None:
    """Execute a statement that is a transaction of its own: without BEGIN and COMMIT, and by libpq itself.

    It is prepared once for each connection, under a name that psycopg's own statements do not have.
    """
    names: dict[_Statement, bytes] = connection.info.setdefault(_PREPARED_NAMES, {})
    name = names.get(statement)
    if name is None:
        name = f"waypost_{len(names)}".encode()
        marks = iter(range(1, len(statement.types) + 1))
        text = _MARK.sub(lambda _: f"${next(marks)}", statement.text.decode())
        result = driver.pgconn.prepare(name, text.encode(), [kind.array_oid for kind in statement.types])
        _check_result(driver, result)
        names[statement] = name
    _check_result(driver, driver.pgconn.exec_prepared(name, arrays, [Format.BINARY] * len(arrays)))


def _check_result(driver: psycopg.Connection[Any], result: Any) -> None:
    """Raise the error of a result; a connection that broke has one without a state."""
    if result.status == ExecStatus.COMMAND_OK:
        return
    if driver.pgconn.status != ConnStatus.OK:
        raise psycopg.OperationalError(driver.pgconn.get_error_message() or "the connection broke")
    raise psycopg.errors.error_from_result(result)


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


_WAITING_INSERTS: Final = "waiting_inserts"
_PREPARED_NAMES: Final = "prepared_names"
_MARK: Final = re.compile("%s")
_NOW_MS: Final = b"SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_POSTGRES_TYPES: Final = (
    (SmallInteger, "int2"),
    (BigInteger, "int8"),
    (Integer, "int4"),
    (Boolean, "bool"),
    (LargeBinary, "bytea"),
)
