"""What a service asks its store, collected while it runs and explained on another store."""

import pickle
import re
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine

PLANNED = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
"""What a statement begins with that has a plan."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One text, as the driver got it, with the parameters of one time."""

    text: str
    parameters: Any
    times: int


class Statements:
    """Hears every statement that this process asks of one store from now on, by whatever code.

    Of SQLite through SQLAlchemy; of PostgreSQL at the driver, where the busiest writes go straight.

    Args:
        store: the path of its file, or the name of its database; of None, of every store that the process has.
    """

    def __init__(self, store: str | None) -> None:
        self._store = store
        self._seen: dict[str, tuple[Any, int]] = {}
        self._ends = ExitStack()
        event.listen(Engine, "before_cursor_execute", self._hear)
        self._ends.callback(event.remove, Engine, "before_cursor_execute", self._hear)
        if find_spec("psycopg") is not None:
            self._listen_to_psycopg()

    def _listen_to_psycopg(self) -> None:
        import psycopg

        execute = psycopg.Cursor.execute

        def heard(cursor: Any, query: Any, params: Any = None, **more: Any) -> Any:
            if self._store not in (None, cursor.connection.info.dbname):
                return execute(cursor, query, params, **more)
            match query:
                case str():
                    text = query
                case bytes():
                    text = query.decode()
                case _:
                    text = query.as_string(cursor)
            self._note(text, params)
            return execute(cursor, query, params, **more)

        psycopg.Cursor.execute = heard
        self._ends.callback(setattr, psycopg.Cursor, "execute", execute)

    def _hear(self, connection: Any, _cursor: Any, text: str, given: Any, _context: Any, many: bool) -> None:
        if connection.dialect.name != "sqlite":
            return
        if self._store in (None, connection.engine.url.database):
            self._note(text, given[0] if many else given)

    def _note(self, text: str, given: Any) -> None:
        if text.lstrip().partition(" ")[0].upper() not in PLANNED:
            return
        shape = shape_of(text)
        _, times = self._seen.get(shape, (None, 0))
        self._seen[shape] = ((text, _plain(given)), times + 1)

    def all(self) -> list[Statement]:
        """Each once, by its shape; the most frequent first."""
        found = [Statement(text, given, times) for (text, given), times in self._seen.values()]
        return sorted(found, key=lambda one: -one.times)

    def keep(self, path: Path) -> None:
        """Write them, for another process."""
        path.write_bytes(pickle.dumps(self.all()))

    def end(self) -> None:
        """Hear no more."""
        self._ends.close()


def _plain(given: Any) -> Any:
    """Parameters that can be kept in a file."""
    if isinstance(given, dict):
        return {name: _plain(value) for name, value in given.items()}
    if isinstance(given, list | tuple):
        return type(given)(_plain(value) for value in given)
    return bytes(given) if isinstance(given, memoryview) else given


def shape_of(text: str) -> str:
    """A statement's text, whatever the number of rows or ids in it."""
    text = _MARK.sub("?", text)
    text = _LIST.sub("(?)", text)
    return _LISTS.sub("(?)", text)


_MARK = re.compile(r'(\?|%\(\w+\)s)(::[A-Z]+)?( COLLATE "C")?|__\[POSTCOMPILE_\w+\]')
_LIST = re.compile(r"\(\s*\?(\s*,\s*\?)*\s*\)")
_LISTS = re.compile(r"\(\?\)(\s*,\s*\(\?\))+")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a plan that reads a whole table, or the whole of an index."""

    table: str
    text: str


SMALL = 1_000
"""Rows, below which PostgreSQL rightly reads a table whole; then it is asked what it does when it grows."""


_WAYS_OF_SMALL_TABLES = ("enable_seqscan", "enable_mergejoin", "enable_hashjoin")


def plan_of(connection: Connection, statement: Statement) -> list[str]:
    """The engine's plan, line by line; nothing is run."""
    text = statement.text
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.driver_connection
        unbound = (None,) * text.count("?")  # the planner does not look at values
        rows = driver.execute(f"EXPLAIN QUERY PLAN {text}", unbound)
        return [row[3] for row in rows]
    plan = _explained(connection, statement)
    if any(_size(connection, step.table) < SMALL for step in scans(plan)):
        for way in _WAYS_OF_SMALL_TABLES:
            connection.exec_driver_sql(f"SET {way} = off")
        plan = _explained(connection, statement)
        for way in _WAYS_OF_SMALL_TABLES:
            connection.exec_driver_sql(f"RESET {way}")
    return plan


def scans(plan: list[str]) -> list[Step]:
    """The steps that read a whole table; what is found by a key or a range of an index is none."""
    found: list[Step] = []
    for line, following in zip(plan, [*plan[1:], ""], strict=False):
        match = _SCAN.search(line)
        if match:
            found.append(Step(match[1], line.strip()))
        match = _WHOLE_INDEX.search(line)
        if match and "Index Cond" not in following and "Limit" not in "".join(plan):
            found.append(Step(match[1], line.strip()))
    return found


_SCAN = re.compile(r"(?:^SCAN (?:TABLE )?|Seq Scan on )(\w+)")
_WHOLE_INDEX = re.compile(r"Index (?:Only )?Scan (?:Backward )?using \w+ on (\w+)")


def _explained(connection: Connection, statement: Statement) -> list[str]:
    driver: Any = connection.connection.driver_connection
    rows = driver.execute(f"EXPLAIN {statement.text}", statement.parameters)
    return [row[0] for row in rows]


def _size(connection: Connection, table: str) -> float:
    found = connection.exec_driver_sql("SELECT reltuples FROM pg_class WHERE relname = %(name)s", {"name": table})
    return found.scalar() or 0
