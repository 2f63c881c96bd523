"""The busiest writes: many rows of one table at once, each in the way that its engine does best.

SQLAlchemy's work on each row and each call costs several times what the engine's own costs. Here a
statement is made once for each engine, and rows go to the driver as they are. How they go there is
the engine's own affair: see `Ways`.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, Protocol, cast

from sqlalchemy import Connection, Table, bindparam, delete, insert, update

Rows = Sequence[Mapping[str, Any]]

WAYS: Final = "ways"
"""Where a writing connection says how its engine does things: `connection.info[WAYS]`."""


class Adding:
    """New rows of a table; the values that are not given are the table's defaults.

    Values are text, integers, bytes, booleans or None: the driver gets them as they are.

    Args:
        table: which.
        columns: those that are given.
        counts: whether the table numbers its rows, each higher than any before, and the numbers are wanted.
    """

    def __init__(self, table: Table, *columns: str, counts: bool = False) -> None:
        self.table = table
        self.columns = columns
        self.counts = counts

    def run(self, connection: Connection, rows: Rows) -> Sequence[int] | None:
        """Add each row, in order; no rows, no call. A row may hold more than is added.

        Returns:
            The number that each was given, of a table that counts its rows and an engine that tells.
        """
        return _ways(connection).add(connection, self, rows) if rows else ()


class Changing:
    """New values for rows known by one column.

    Each row has the key under `at`, and the new values under the names of their columns.
    """

    def __init__(self, table: Table, key: str, *columns: str) -> None:
        self.table = table
        self.key = key
        self.columns = columns

    def run(self, connection: Connection, rows: Rows) -> None:
        """Change each row; no key may come twice."""
        if rows:
            _ways(connection).change(connection, self, rows)


class Removing:
    """Rows deleted by one column."""

    def __init__(self, table: Table, key: str) -> None:
        self.table = table
        self.key = key

    def run(self, connection: Connection, keys: Sequence[Any]) -> set[Any]:
        """Delete; give the keys that were there.

        An engine whose store is one process's alone gives all: whoever holds an entry there is its
        only holder.
        """
        return _ways(connection).remove(connection, self, keys) if keys else set()


class Ways(Protocol):
    """How an engine writes many rows at once, and what its clock says."""

    def add(self, connection: Connection, adding: Adding, rows: Rows) -> Sequence[int] | None:
        """Add rows; give their numbers where the engine tells them."""
        ...

    def change(self, connection: Connection, changing: Changing, rows: Rows) -> None:
        """Change rows."""
        ...

    def remove(self, connection: Connection, removing: Removing, keys: Sequence[Any]) -> set[Any]:
        """Delete rows; give the keys that were there."""
        ...

    def alone(self, connection: Connection) -> None:
        """Let no other process write what is written seldom until this transaction ends."""
        ...

    def now_ms(self, connection: Connection) -> int | None:
        """The store's own clock in milliseconds since the epoch; None where the caller's is as good."""
        ...


class OneByOne:
    """The ways of an engine that is called within the process: a statement compiled once, run for each row."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[str, Callable[[Any], Any] | None]] = {}

    def add(self, connection: Connection, adding: Adding, rows: Rows) -> Sequence[int] | None:
        """See `Adding`. The one writer's rows have numbers one after the other."""
        if adding not in self._known:
            compiled = insert(adding.table).compile(dialect=connection.dialect, column_keys=list(adding.columns))
            self._known[adding] = (str(compiled), _order(compiled))
        self._run(connection, adding, rows)
        if not adding.counts:
            return None
        last: int = connection.exec_driver_sql("SELECT last_insert_rowid()").scalar_one()
        return range(last - len(rows) + 1, last + 1)

    def change(self, connection: Connection, changing: Changing, rows: Rows) -> None:
        """See `Changing`."""
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
        """See `Removing`."""
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
        """There is no other process."""

    def now_ms(self, connection: Connection) -> int | None:
        """None: the clock of the one process is as good."""
        return None

    def _run(self, connection: Connection, what: Any, rows: Rows) -> None:
        text, ordered = self._known[what]
        given = list(rows) if ordered is None else [ordered(row) for row in rows]
        connection.exec_driver_sql(text, cast("Any", given))


def _ways(connection: Connection) -> Ways:
    return connection.info[WAYS]


def _order(compiled: Any, *, prefix: str = "") -> Callable[[Mapping[str, Any]], Any] | None:
    """What makes a driver's row of one of ours; None where the driver takes names."""
    names: list[str] | None = compiled.positiontup
    if names is None:
        return None
    names = [name.removeprefix(prefix) for name in names]
    if len(names) == 1:
        [name] = names
        return lambda row: (row[name],)
    return itemgetter(*names)
