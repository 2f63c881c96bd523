"""The busiest statements: many rows of one table at once, each in the way that suits the engine best.

SQLAlchemy's work on each row and each call costs several times what the engine's own costs. Here a
statement is made once for each engine, and rows are tuples that go to the driver, and come from it,
unchanged. The engine decides how they are sent: see `BulkStatements`.
"""

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

from sqlalchemy import Boolean, Connection, LargeBinary, Table

Rows = Sequence[tuple[Any, ...]]
"""Rows to be written. Values are text, integers, bytes, booleans or None: they reach the driver unchanged."""

RowTuple = TypeVar("RowTuple", bound=NamedTuple)

BULK_STATEMENTS: Final = "bulk_statements"
"""Key of the engine's bulk statements on a connection: `connection.info[BULK_STATEMENTS]`."""

IS_WRITER: Final = "is_writer"
"""Key of a writing connection in `connection.info`: what it reads to decide a change is locked."""


class BulkInsert:
    """New rows of a table; values that are not given are the table's defaults.

    Args:
        columns: those that are given, in the order of the tuples' values.
        positions: the column that numbers the rows as jobs, each higher than any job before; it is not given.
        skips_existing: rows that the table has already, by any unique key, are left as they are.
    """

    def __init__(self, table: Table, *columns: str, positions: str | None = None, skips_existing: bool = False) -> None:
        self.table = table
        self.columns = columns
        self.positions = positions
        self._end = " ON CONFLICT DO NOTHING" if skips_existing else ""

    def text(self, values: str, *more_columns: str) -> str:
        """Return the statement of an engine that writes the rows as these values."""
        return f"INSERT INTO {self.table.name} ({quote(*self.columns, *more_columns)}) {values}{self._end}"

    def run(self, connection: Connection, rows: Rows) -> Sequence[int] | None:
        """Insert the rows in order; without rows, run nothing.

        Returns:
            The position of each row, if the table has positions and the engine returns them.
        """
        return connection.info[BULK_STATEMENTS].insert(connection, self, rows) if rows else ()


class BulkUpsert(BulkInsert):
    """Rows of a table that are new, or that change what it has.

    Args:
        end: what happens to a row that it has already.
        returned: columns of the written rows.

    Attributes:
        has_bytes: one of the given columns has bytes.
    """

    def __init__(self, table: Table, columns: Sequence[str], end: str, returned: Sequence[str]) -> None:
        super().__init__(table, *columns)
        self.has_bytes = any(isinstance(table.c[name].type, LargeBinary) for name in columns)
        self._end = f" {end} RETURNING {', '.join(f'{table.name}.{quote(name)}' for name in returned)}"

    def fetch(self, connection: Connection, rows: Rows) -> list[tuple[Any, ...]]:
        """Write the rows in order; return the returned columns of those that were written, in any order."""
        return connection.info[BULK_STATEMENTS].upsert(connection, self, rows) if rows else []


def bulk_insert_new(table: Table, *columns: str, returned: Sequence[str]) -> BulkUpsert:
    """Return the statement for new rows of a table, except those that it has already by any unique key.

    Args:
        columns: those that are given, in the order of the tuples' values.
        returned: columns of the new rows: one that the table sets, and those that identify a row.
    """
    return BulkUpsert(table, columns, "ON CONFLICT DO NOTHING", returned)


def bulk_count(table: Table, *columns: str) -> BulkUpsert:
    """Return the statement that raises counters by the given numbers, or begins them there; it returns key and count.

    Rows are sorted, so that two transactions cannot deadlock, and no key occurs twice.

    Args:
        columns: the primary key, then the counter.
    """
    *key, counter = columns
    counted = f"{quote(counter)} = {table.name}.{quote(counter)} + excluded.{quote(counter)}"
    return BulkUpsert(table, columns, f"ON CONFLICT ({quote(*key)}) DO UPDATE SET {counted}", columns)


class BulkUpdate:
    """New values for rows identified by one column.

    Each tuple has the new values, in the order of their columns, and the key at its end.
    """

    def __init__(self, table: Table, key: str, *columns: str) -> None:
        self.table = table
        self.key = key
        self.columns = columns

    def run(self, connection: Connection, rows: Rows) -> None:
        """Update each row; no key may occur twice."""
        if rows:
            connection.info[BULK_STATEMENTS].update(connection, self, rows)


class BulkDelete:
    """Rows deleted by one column."""

    def __init__(self, table: Table, key: str) -> None:
        self.table = table
        self.key = key

    def run(self, connection: Connection, keys: Sequence[Any]) -> AbstractSet[Any]:
        """Delete rows; return the keys that existed.

        The keys are to be read within the transaction. If they are not, no engine has to wait for them.
        An engine whose store has a single process returns all keys: the process that holds a job there
        is the only one that can delete it.
        """
        return connection.info[BULK_STATEMENTS].delete(connection, self, keys) if keys else set()


class BulkSelect(Generic[RowTuple]):
    """Rows found by lists of values, as named tuples.

    A writing connection locks them until its transaction ends, so that what it decides from is still true
    when it writes; in the order of the table's primary key, so that two transactions cannot deadlock.

    Args:
        row: its fields name the columns.
        keys: a column for each list: a row has one of the list's values in it.
        condition: a boolean column that is true.
        is_locked: False for rows that are not locked, because nothing is decided from them that others may change.
        index: which SQLite has to use. Its statistics count rows with NULL in a key as if they were alike: where most
            have none, it would expect an index to find most of the table, and read the table instead.
    """

    def __init__(
        self,
        table: Table,
        row: type[RowTuple],
        *keys: str,
        condition: str | None = None,
        is_locked: bool = True,
        index: str | None = None,
    ) -> None:
        self.table = table
        self.columns: tuple[str, ...] = row._fields
        self.keys = keys
        self.condition = condition
        self.is_locked = is_locked
        self.index = index
        self._make = partial(cast("Any", tuple).__new__, row)  # as `row._make`, without a call of Python code
        self._flags = [n for n, name in enumerate(self.columns) if isinstance(table.c[name].type, Boolean)]

    def text(self, conditions: list[str], index: str = "") -> str:
        """Return the statement of an engine that has these conditions for the lists."""
        where = " AND ".join([*conditions, *([] if self.condition is None else [quote(self.condition)])])
        return f"SELECT {quote(*self.columns)} FROM {self.table.name}{index} WHERE {where}"  # noqa: S608

    def run(self, connection: Connection, *lists: Collection[Any]) -> list[RowTuple]:
        """Return the rows with a value of each list; none if a list is empty."""
        if not all(lists):
            return []
        rows = connection.info[BULK_STATEMENTS].select(connection, self, lists)
        if self._flags:
            rows = list(map(list, rows))
            for values in rows:
                for n in self._flags:  # the engine may have numbers
                    values[n] = bool(values[n]) if values[n] is not None else None
        return list(map(self._make, rows))


class BulkFilter:
    """The members of a list of texts for which a condition is true.

    Args:
        condition: in SQL that both engines understand; the member is `member.value`.
    """

    def __init__(self, condition: str) -> None:
        self.condition = condition

    def run(self, connection: Connection, members: Collection[str]) -> set[str]:
        """Return the members for which it is true."""
        return connection.info[BULK_STATEMENTS].filter(connection, self, members) if members else set()


def store_time_ms(connection: Connection, now_ms: int) -> int:
    """Return the time by the store's own clock, if it has one: clocks of several machines differ; else the given."""
    store_ms: int | None = connection.info[BULK_STATEMENTS].now_ms(connection)
    return now_ms if store_ms is None else store_ms


def quote(*names: str) -> str:
    """Return names of columns as both engines understand them."""
    return ", ".join(f'"{name}"' for name in names)
