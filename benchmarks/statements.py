"""The statements that a service executes, collected while it runs and explained on another store."""

import pickle
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine

from waypost.store.engines.sqlite import SqliteBulkStatements

PLANNED = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
"""First words of the statements that have a plan."""


@dataclass(frozen=True, slots=True)
class Arrays:
    """The parameters of a bulk statement on PostgreSQL: arrays in its binary format, and their types."""

    values: tuple[bytes, ...]
    oids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement as the driver received it, with the parameters of one execution."""

    text: str
    parameters: Any
    times: int


class Statements:
    """Records every statement that this process executes on one store from now on, by any code.

    On SQLite through SQLAlchemy and at the bulk statements, on PostgreSQL at the driver: the busiest
    statements use it directly.

    Args:
        store: the path of its file, or the name of its database; None for every store of the process.
    """

    def __init__(self, store: str | None) -> None:
        self._store = store
        self._recorded: dict[str, tuple[Any, int]] = {}
        self._ends = ExitStack()
        event.listen(Engine, "before_cursor_execute", self._record_sqlite)
        self._ends.callback(event.remove, Engine, "before_cursor_execute", self._record_sqlite)
        recording = property(
            lambda statements: _RecordingDriver(self._record_bulk, vars(statements)["driver"]),
            lambda statements, driver: vars(statements).update(driver=driver),
        )
        setattr(SqliteBulkStatements, "driver", recording)  # noqa: B010
        self._ends.callback(delattr, SqliteBulkStatements, "driver")
        if find_spec("psycopg") is not None:
            self._patch_psycopg()

    def _patch_psycopg(self) -> None:
        import psycopg

        execute = psycopg.Cursor.execute

        def record_and_execute(cursor: Any, query: Any, params: Any = None, **options: Any) -> Any:
            if self._store not in (None, cursor.connection.info.dbname):
                return execute(cursor, query, params, **options)
            match query:
                case str():
                    text = query
                case bytes():
                    text = query.decode()
                case _:
                    text = query.as_string(cursor)
            self._record(text, params)
            return execute(cursor, query, params, **options)

        psycopg.Cursor.execute = record_and_execute
        self._ends.callback(setattr, psycopg.Cursor, "execute", execute)
        self._patch_sessions()

    def _patch_sessions(self) -> None:
        """Record what the bulk statements of PostgreSQL execute: not through psycopg's cursors."""
        from waypost.store.engines.postgresql_session import PostgresSession

        execute = PostgresSession.execute

        def record_and_execute(session: PostgresSession, executions: Sequence[Any], *, is_alone: bool = False) -> None:
            if self._store in (None, session.driver.info.dbname):
                for execution in executions:
                    statement = execution.statement
                    self._record(statement.text, Arrays(tuple(execution.arrays), tuple(statement.oids)))
            execute(session, executions, is_alone=is_alone)

        PostgresSession.execute = record_and_execute
        self._ends.callback(setattr, PostgresSession, "execute", execute)

    def _record_sqlite(
        self, connection: Any, _cursor: Any, text: str, parameters: Any, _context: Any, many: bool
    ) -> None:
        if connection.dialect.name != "sqlite":
            return
        if self._store in (None, connection.engine.url.database):
            self._record(text, parameters[0] if many else parameters)

    def _record_bulk(self, store: str, text: str, parameters: Any) -> None:
        if self._store in (None, store):
            self._record(text, parameters)

    def _record(self, text: str, parameters: Any) -> None:
        if text.lstrip().partition(" ")[0].upper() not in PLANNED:
            return
        shape = shape_of(text)
        _, times = self._recorded.get(shape, (None, 0))
        self._recorded[shape] = ((text, _picklable(parameters)), times + 1)

    def all(self) -> list[Statement]:
        """Return each statement once, by its shape; the most frequent first."""
        statements = [Statement(text, parameters, times) for (text, parameters), times in self._recorded.values()]
        return sorted(statements, key=lambda statement: -statement.times)

    def write(self, path: Path) -> None:
        """Write the statements to a file, for another process."""
        path.write_bytes(pickle.dumps(self.all()))

    def end(self) -> None:
        """Stop recording."""
        self._ends.close()


class _RecordingDriver:
    """Records what the bulk statements of SQLite execute at the driver, and executes it."""

    def __init__(self, record: Callable[[str, str, Any], None], driver: Any) -> None:
        self._record = record
        self._driver = driver
        self._store: str = driver.execute("PRAGMA database_list").fetchone()[2]

    def execute(self, text: str, parameters: Any = ()) -> Any:
        self._record(self._store, text, parameters)
        return self._driver.execute(text, parameters)

    def executemany(self, text: str, rows: Any) -> Any:
        self._record(self._store, text, rows[0] if rows else ())
        return self._driver.executemany(text, rows)


def _picklable(parameters: Any) -> Any:
    """Return parameters that can be pickled."""
    if isinstance(parameters, dict):
        return {name: _picklable(value) for name, value in parameters.items()}
    if isinstance(parameters, list | tuple):
        return type(parameters)(_picklable(value) for value in parameters)
    return bytes(parameters) if isinstance(parameters, memoryview) else parameters


def shape_of(text: str) -> str:
    """Return a statement's text independent of the number of rows or ids in it."""
    text = _MARK.sub("?", text)
    text = _LIST.sub("(?)", text)
    return _LISTS.sub("(?)", text)


_MARK = re.compile(r'(\?|%\(\w+\)s)(::[A-Z]+)?( COLLATE "C")?|__\[POSTCOMPILE_\w+\]')
_LIST = re.compile(r"\(\s*\?(\s*,\s*\?)*\s*\)")
_LISTS = re.compile(r"\(\?\)(\s*,\s*\(\?\))+")


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a plan that reads a whole table, or a whole index."""

    table: str
    text: str


SMALL = 1_000
"""Number of rows below which PostgreSQL rightly scans a table; then the plan for a larger table is requested."""


_SMALL_TABLE_PLANS = ("enable_seqscan", "enable_mergejoin", "enable_hashjoin")


def plan_of(connection: Connection, statement: Statement) -> list[str]:
    """Return the lines of the engine's plan; nothing is executed."""
    text = statement.text
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.driver_connection
        unbound = (None,) * text.count("?")  # the planner does not look at values
        rows = driver.execute(f"EXPLAIN QUERY PLAN {text}", unbound)
        return [row[3] for row in rows]
    plan = _explained(connection, statement)
    if any(_size(connection, step.table) < SMALL for step in scans(plan)):
        for setting in _SMALL_TABLE_PLANS:
            connection.exec_driver_sql(f"SET {setting} = off")
        plan = _explained(connection, statement)
        for setting in _SMALL_TABLE_PLANS:
            connection.exec_driver_sql(f"RESET {setting}")
    return plan


def scans(plan: list[str]) -> list[Step]:
    """Return the steps that read a whole table, not those that use a key or a range of an index."""
    steps: list[Step] = []
    for line, following in zip(plan, [*plan[1:], ""], strict=False):
        match = _SCAN.search(line)
        if match:
            steps.append(Step(match[1], line.strip()))
        match = _WHOLE_INDEX.search(line)
        if match and "Index Cond" not in following and "Limit" not in "".join(plan):
            steps.append(Step(match[1], line.strip()))
    return steps


_SCAN = re.compile(r"(?:^SCAN (?:TABLE )?|Seq Scan on )(\w+)")
_WHOLE_INDEX = re.compile(r"Index (?:Only )?Scan (?:Backward )?using \w+ on (\w+)")


def _explained(connection: Connection, statement: Statement) -> list[str]:
    driver: Any = connection.connection.driver_connection
    text, parameters = f"EXPLAIN {statement.text}", statement.parameters
    if isinstance(parameters, Arrays):
        binary = [1] * len(parameters.values)
        result = driver.pgconn.exec_params(text.encode(), parameters.values, parameters.oids, binary)
        return [result.get_value(n, 0).decode() for n in range(result.ntuples)]
    return [row[0] for row in driver.execute(text, parameters)]


def _size(connection: Connection, table: str) -> float:
    row_estimate = connection.exec_driver_sql(
        "SELECT reltuples FROM pg_class WHERE relname = %(name)s", {"name": table}
    )
    return row_estimate.scalar() or 0
