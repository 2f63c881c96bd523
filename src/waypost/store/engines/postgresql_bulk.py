"""PostgreSQL's bulk statements: each is one statement, with an array for each column of its rows."""

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import BigInteger, Boolean, Connection, Integer, LargeBinary, SmallInteger, Table

from waypost.store.bulk_statements import (
    IS_WRITER,
    BulkDelete,
    BulkFilter,
    BulkInsert,
    BulkSelect,
    BulkUpdate,
    BulkUpsert,
    Rows,
    quote,
)
from waypost.store.engines.postgresql_session import (
    ARRAY_TYPES,
    ArrayType,
    PostgresSession,
    ReturnedKeys,
    Statement,
    driver_connection,
)


class PostgresBulkStatements:
    """Statements that unpack arrays, so that their text is prepared once for any number of rows.

    Those without a result wait until a result is needed, or the transaction ends, and are sent together: see
    `PostgresSession`. Inserts that meet are one statement. If they are all that a transaction does, as when messages
    are accepted, that statement is the whole transaction.

    COPY is a little faster for hundreds of rows, and takes more round trips, which is what the usual batch of a
    dozen rows waits for.
    """

    def __init__(self) -> None:
        self._statements: dict[Any, Statement] = {}

    def send(self, connection: Connection, *_: object) -> None:
        """Send the statements that wait."""
        if _SESSION in connection.info or _WAITING_INSERTS in connection.info:
            self._session(connection).send()

    def commit(self, connection: Connection) -> None:
        """Send the statements that wait, and commit the transaction."""
        self._session(connection).commit()

    def drop(self, connection: Connection) -> None:
        """Drop the statements that wait: their transaction has failed."""
        connection.info.pop(_WAITING_INSERTS, None)
        if _SESSION in connection.info:
            self._session(connection).drop()

    def insert(self, connection: Connection, statement: BulkInsert, rows: Rows) -> Sequence[int] | None:
        connection.info.setdefault(_WAITING_INSERTS, []).append((statement, rows))

    def upsert(self, connection: Connection, statement: BulkUpsert, rows: Rows) -> list[tuple[Any, ...]]:
        prepared = self._statements.get(statement)
        if prepared is None:
            types = _types_of(statement.table, statement.columns)
            prepared = self._statements[statement] = Statement(statement.text(_unnest(types)), types)
        return self._session(connection).fetch(prepared, prepared.encode_columns(rows))

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
            values = f"unnest({_marks(types)}) AS v({quote(*statement.columns, 'at')})"
            text = (
                f"UPDATE {table.name} AS t SET {assigned} FROM {values} "
                f'WHERE t."{key}" = v.at AND t."{key}" = ANY(${len(types)})'
            )
            prepared = self._statements[statement] = Statement(text, types)
        arrays = prepared.encode_columns(sorted(rows, key=itemgetter(-1)))
        self._session(connection).add(prepared, arrays)

    def delete(self, connection: Connection, statement: BulkDelete, keys: Sequence[Any]) -> AbstractSet[Any]:
        prepared = self._statements.get(statement)
        if prepared is None:
            table, key = statement.table, statement.key
            text = f'DELETE FROM {table.name} WHERE "{key}" = ANY($1) RETURNING "{key}"'
            prepared = self._statements[statement] = Statement(text, _types_of(table, (key,)))
        session = self._session(connection)
        return ReturnedKeys(session, session.add(prepared, [prepared.types[0].encode(sorted(keys))]))

    def select(
        self, connection: Connection, statement: BulkSelect[Any], lists: Sequence[Collection[Any]]
    ) -> Sequence[Sequence[Any]]:
        is_locking = statement.is_locked and IS_WRITER in connection.info
        prepared = self._statements.get((statement, is_locking))
        if prepared is None:
            first_key = next(iter(statement.table.primary_key.columns)).name
            lock = f' ORDER BY "{first_key}" FOR UPDATE' if is_locking else ""
            text = statement.text([f'"{key}" = ANY(${n})' for n, key in enumerate(statement.keys, 1)]) + lock
            prepared = Statement(text, _types_of(statement.table, statement.keys))
            self._statements[statement, is_locking] = prepared
        arrays = [kind.encode(list(values)) for kind, values in zip(prepared.types, lists, strict=True)]
        return self._session(connection).fetch(prepared, arrays)

    def filter(self, connection: Connection, statement: BulkFilter, members: Collection[str]) -> set[str]:
        prepared = self._statements.get(statement)
        if prepared is None:
            text = f"SELECT member.value FROM unnest($1) AS member(value) WHERE {statement.condition}"
            prepared = self._statements[statement] = Statement(text, [ARRAY_TYPES["text"]])
        rows = self._session(connection).fetch(prepared, [prepared.types[0].encode(list(members))])
        return {value for (value,) in rows}

    def held_shards(self, connection: Connection, queue: int, holder: str, shards: Collection[int]) -> set[int]:
        """Return the shards whose lease this holder has, by the server's clock; locked, in the order of the shards."""
        arrays = [
            kind.encode(values)
            for kind, values in zip(_HELD_SHARDS.types, ([queue], [holder], list(shards)), strict=True)
        ]
        return {shard for (shard,) in self._session(connection).fetch(_HELD_SHARDS, arrays)}

    def next_position(self, connection: Connection) -> int:
        return self._session(connection).fetch(_NEXT_POSITION)[0][0]

    def lock_rare_writes(self, connection: Connection) -> None:
        """Take an advisory lock: a rare write reads first and then writes, as if it ran alone."""
        self._session(connection).add(_LOCK_RARE_WRITES, ())

    def now_ms(self, connection: Connection) -> int | None:
        """Return the server's time, of this moment and not of the transaction's beginning."""
        return self._session(connection).fetch(_NOW_MS)[0][0]

    def _session(self, connection: Connection) -> PostgresSession:
        """Return a connection's session; inserts that wait are one of the statements that wait there now."""
        session: PostgresSession | None = connection.info.get(_SESSION)
        if session is None:
            session = PostgresSession(driver_connection(connection), is_transactional=IS_WRITER in connection.info)
            connection.info[_SESSION] = session
        inserts: list[tuple[BulkInsert, Rows]] = connection.info.pop(_WAITING_INSERTS, [])
        if inserts:
            statements = tuple(statement for statement, _ in inserts)
            prepared = self._statements.get(statements)
            if prepared is None:
                prepared = self._statements[statements] = _insert_statement(statements)
            columns = [column for _, rows in inserts for column in zip(*rows, strict=True)]
            session.add(prepared, [kind.encode(column) for kind, column in zip(prepared.types, columns, strict=True)])
        return session


def _insert_statement(statements: Sequence[BulkInsert]) -> Statement:
    types: list[ArrayType] = []
    texts: list[str] = []
    for statement in statements:
        own = _types_of(statement.table, statement.columns)
        texts.append(statement.text(_unnest(own, first=len(types) + 1)))
        types += own
    *earlier, last = texts
    named = ", ".join(f"insert_{n} AS ({text})" for n, text in enumerate(earlier))
    return Statement(f"WITH {named} {last}" if named else last, types)


def postgres_type(column: Any) -> str:
    """Return PostgreSQL's name for the type of a column."""
    return next((name for type_class, name in _POSTGRES_TYPES if isinstance(column.type, type_class)), "text")


def _types_of(table: Table, columns: Sequence[str]) -> list[ArrayType]:
    return [ARRAY_TYPES[postgres_type(table.c[name])] for name in columns]


def _unnest(types: Sequence[ArrayType], first: int = 1) -> str:
    return f"SELECT * FROM unnest({_marks(types, first)})"


def _marks(types: Sequence[ArrayType], first: int = 1) -> str:
    return ", ".join(f"${n}" for n in range(first, first + len(types)))


_WAITING_INSERTS: Final = "waiting_inserts"
_SESSION: Final = "session"
_CLOCK_MS: Final = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_NOW_MS: Final = Statement(f"SELECT {_CLOCK_MS}")
_NEXT_POSITION: Final = Statement("SELECT nextval('queue_jobs_position_seq')")
_LOCK_RARE_WRITES: Final = Statement("SELECT pg_advisory_xact_lock(hashtext('waypost seldom'))")
_HELD_SHARDS: Final = Statement(
    "SELECT shard FROM leases WHERE queue = ANY($1) AND holder = ANY($2) AND shard = ANY($3) "
    f"AND until_ms > {_CLOCK_MS} ORDER BY shard FOR SHARE",
    [ARRAY_TYPES[name] for name in ("int2", "text", "int2")],
)
_POSTGRES_TYPES: Final = (
    (SmallInteger, "int2"),
    (BigInteger, "int8"),
    (Integer, "int4"),
    (Boolean, "bool"),
    (LargeBinary, "bytea"),
)
