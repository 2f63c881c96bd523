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

WAYS: Final = "ways"
"""Key of the engine's bulk statements on a writing connection: `connection.info[BULK_STATEMENTS]`."""


class Adding:
    """New rows of a table; values that are not given are the table's defaults.

    Values are text, integers, bytes, booleans or None: they reach the driver unchanged.

    Args:
        table: the table.
        columns: those that are given.
        returns_ids: the table numbers its rows, each higher than any before, and the caller needs the numbers.
    """

    def __init__(self, table: Table, *columns: str, counts: bool = False) -> None:
        self.table = table
        self.columns = columns
        self.counts = counts

    def run(self, connection: Connection, rows: Rows) -> Sequence[int] | None:
        """Insert the rows in order; without rows, run nothing. A row may hold more than is inserted.

        Returns:
            The number of each row, if the table numbers its rows and the engine returns the numbers.
        """
        return _ways(connection).add(connection, self, rows) if rows else ()


class Changing:
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
            _ways(connection).change(connection, self, rows)


class Removing:
    """Rows deleted by one column."""

    def __init__(self, table: Table, key: str) -> None:
        self.table = table
        self.key = key

    def run(self, connection: Connection, keys: Sequence[Any]) -> set[Any]:
        """Delete rows; return the keys that existed.

        An engine whose store has a single process returns all keys: the process that holds a job there
        is the only one that can delete it.
        """
        return _ways(connection).remove(connection, self, keys) if keys else set()


class Ways(Protocol):
    """Bulk statements of an engine, its lock for rare writes, and its clock."""

    def add(self, connection: Connection, adding: Adding, rows: Rows) -> Sequence[int] | None:
        """Insert rows; return their numbers where the engine returns them."""
        ...

    def change(self, connection: Connection, changing: Changing, rows: Rows) -> None:
        """Update rows."""
        ...

    def remove(self, connection: Connection, removing: Removing, keys: Sequence[Any]) -> set[Any]:
        """Delete rows; return the keys that existed."""
        ...

    def alone(self, connection: Connection) -> None:
        """Keep other processes from running rare writes until this transaction ends."""
        ...

    def now_ms(self, connection: Connection) -> int | None:
        """Return the store's own clock in milliseconds since the epoch; None where the caller's is as good."""
        ...


class OneByOne:
    """Bulk statements of an in-process engine: a statement compiled once, run for each row."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[str, Callable[[Any], Any] | None]] = {}

    def add(self, connection: Connection, adding: Adding, rows: Rows) -> Sequence[int] | None:
        """Insert rows. There is one writer, so their numbers are consecutive."""
        if adding not in self._known:
            compiled = insert(adding.table).compile(dialect=connection.dialect, column_keys=list(adding.columns))
            self._known[adding] = (str(compiled), _order(compiled))
        self._run(connection, adding, rows)
        if not adding.counts:
            return None
        last: int = connection.exec_driver_sql("SELECT last_insert_rowid()").scalar_one()
        return range(last - len(rows) + 1, last + 1)

    def change(self, connection: Connection, changing: Changing, rows: Rows) -> None:
        """Update rows."""
        if changing not in self._known:
            compiled = (
                update(changing.table)
                .where(changing.table.c[changing.key] == bindparam("at"))
                .values({name: bindparam(f"new_{name}") for name in changing.columns})
                .compile(dialect=connection.dialect)
            )
            self._known[changing] = (str(compiled), _order(compiled, prefix="new_"))
        self._run(connection, changing, rows)

    def remove(self, connection: Connection, removing: Removing, keys: Sequence[Any]) -> set[Any]:
        """Delete rows."""
        if removing not in self._known:
            compiled = (
                delete(removing.table)
                .where(removing.table.c[removing.key] == bindparam("at"))
                .compile(dialect=connection.dialect)
            )
            self._known[removing] = (str(compiled), None)
        connection.exec_driver_sql(self._known[removing][0], [(key,) for key in keys])
        return set(keys)

    def alone(self, connection: Connection) -> None:
        """Do nothing: there is no other process."""

    def now_ms(self, connection: Connection) -> int | None:
        """Return None: the clock of the one process is as good."""
        return None

    def _run(self, connection: Connection, what: Any, rows: Rows) -> None:
        text, ordered = self._known[what]
        parameters = list(rows) if ordered is None else [ordered(row) for row in rows]
        connection.exec_driver_sql(text, cast("Any", parameters))


def _ways(connection: Connection) -> Ways:
    return connection.info[WAYS]


def _order(compiled: Any, *, prefix: str = "") -> Callable[[Mapping[str, Any]], Any] | None:
    """Return a function that makes a driver's row from one of ours; None where the driver takes names."""
    names: list[str] | None = compiled.positiontup
    if names is None:
        return None
    names = [name.removeprefix(prefix) for name in names]
    if len(names) == 1:
        [name] = names
        return lambda row: (row[name],)
    return itemgetter(*names)
