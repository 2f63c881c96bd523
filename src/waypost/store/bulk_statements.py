"""The busiest writes: many rows of one table at once, each in the way that suits the engine best.

SQLAlchemy's work on each row and each call costs several times what the engine's own costs. Here a
statement is made once for each engine, and rows go to the driver unchanged. The engine decides how
they are sent: see `BulkStatements`.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, Protocol, cast

from sqlalchemy import Connection, Table, bindparam, delete, insert, update

Rows = Sequence[Mapping[str, Any]]

BULK_STATEMENTS: Final = "bulk_statements"
"""Key of the engine's bulk statements on a writing connection: `connection.info[BULK_STATEMENTS]`."""


class BulkInsert:
    """New rows of a table; values that are not given are the table's defaults.

    Values are text, integers, bytes, booleans or None: they reach the driver unchanged.

    Args:
        table: the table.
        columns: those that are given.
        returns_ids: the table numbers its rows, each higher than any before, and the caller needs the numbers.
    """

    def __init__(self, table: Table, *columns: str, returns_ids: bool = False) -> None:
        self.table = table
        self.columns = columns
        self.returns_ids = returns_ids

    def run(self, connection: Connection, rows: Rows) -> Sequence[int] | None:
        """Insert the rows in order; without rows, run nothing. A row may hold more than is inserted.

        Returns:
            The number of each row, if the table numbers its rows and the engine returns the numbers.
        """
        return _get_bulk_statements(connection).insert(connection, self, rows) if rows else ()


class BulkUpdate:
    """New values for rows identified by one column.

    Each row has the key under `at`, and the new values under the names of their columns.
    """

    def __init__(self, table: Table, key: str, *columns: str) -> None:
        self.table = table
        self.key = key
        self.columns = columns

    def run(self, connection: Connection, rows: Rows) -> None:
        """Update each row; no key may occur twice."""
        if rows:
            _get_bulk_statements(connection).update(connection, self, rows)


class BulkDelete:
    """Rows deleted by one column."""

    def __init__(self, table: Table, key: str) -> None:
        self.table = table
        self.key = key

    def run(self, connection: Connection, keys: Sequence[Any]) -> set[Any]:
        """Delete rows; return the keys that existed.

        An engine whose store has a single process returns all keys: the process that holds a job there
        is the only one that can delete it.
        """
        return _get_bulk_statements(connection).delete(connection, self, keys) if keys else set()


class BulkStatements(Protocol):
    """Bulk statements of an engine, its lock for rare writes, and its clock."""

    def insert(self, connection: Connection, statement: BulkInsert, rows: Rows) -> Sequence[int] | None:
        """Insert rows; return their numbers where the engine returns them."""
        ...

    def update(self, connection: Connection, statement: BulkUpdate, rows: Rows) -> None:
        """Update rows."""
        ...

    def delete(self, connection: Connection, statement: BulkDelete, keys: Sequence[Any]) -> set[Any]:
        """Delete rows; return the keys that existed."""
        ...

    def lock_rare_writes(self, connection: Connection) -> None:
        """Keep other processes from running rare writes until this transaction ends."""
        ...

    def now_ms(self, connection: Connection) -> int | None:
        """Return the store's own clock in milliseconds since the epoch; None where the caller's is as good."""
        ...


class SqliteBulkStatements:
    """Bulk statements of an in-process engine: a statement compiled once, run for each row."""

    def __init__(self) -> None:
        self._compiled: dict[Any, tuple[str, Callable[[Any], Any] | None]] = {}

    def insert(self, connection: Connection, statement: BulkInsert, rows: Rows) -> Sequence[int] | None:
        """Insert rows. There is one writer, so their numbers are consecutive."""
        if statement not in self._compiled:
            compiled = insert(statement.table).compile(dialect=connection.dialect, column_keys=list(statement.columns))
            self._compiled[statement] = (str(compiled), _make_row_encoder(compiled))
        self._run(connection, statement, rows)
        if not statement.returns_ids:
            return None
        last: int = connection.exec_driver_sql("SELECT last_insert_rowid()").scalar_one()
        return range(last - len(rows) + 1, last + 1)

    def update(self, connection: Connection, statement: BulkUpdate, rows: Rows) -> None:
        """Update rows."""
        if statement not in self._compiled:
            compiled = (
                update(statement.table)
                .where(statement.table.c[statement.key] == bindparam("at"))
                .values({name: bindparam(f"new_{name}") for name in statement.columns})
                .compile(dialect=connection.dialect)
            )
            self._compiled[statement] = (str(compiled), _make_row_encoder(compiled, prefix="new_"))
        self._run(connection, statement, rows)

    def delete(self, connection: Connection, statement: BulkDelete, keys: Sequence[Any]) -> set[Any]:
        """Delete rows."""
        if statement not in self._compiled:
            compiled = (
                delete(statement.table)
                .where(statement.table.c[statement.key] == bindparam("at"))
                .compile(dialect=connection.dialect)
            )
            self._compiled[statement] = (str(compiled), None)
        connection.exec_driver_sql(self._compiled[statement][0], [(key,) for key in keys])
        return set(keys)

    def lock_rare_writes(self, connection: Connection) -> None:
        """Do nothing: there is no other process."""

    def now_ms(self, connection: Connection) -> int | None:
        """Return None: the clock of the one process is as good."""
        return None

    def _run(self, connection: Connection, statement: Any, rows: Rows) -> None:
        text, ordered = self._compiled[statement]
        parameters = list(rows) if ordered is None else [ordered(row) for row in rows]
        connection.exec_driver_sql(text, cast("Any", parameters))


def _get_bulk_statements(connection: Connection) -> BulkStatements:
    return connection.info[BULK_STATEMENTS]


def _make_row_encoder(compiled: Any, *, prefix: str = "") -> Callable[[Mapping[str, Any]], Any] | None:
    """Return a function that makes a driver's row from one of ours; None where the driver takes names."""
    names: list[str] | None = compiled.positiontup
    if names is None:
        return None
    names = [name.removeprefix(prefix) for name in names]
    if len(names) == 1:
        [name] = names
        return lambda row: (row[name],)
    return itemgetter(*names)
