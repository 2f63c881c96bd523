"""Core statements for many rows, compiled once: what the busiest writes run on.

SQLAlchemy's work on each row and each call costs several times what the engine's own costs. Here a
statement is compiled once for each dialect, and rows go to the driver as they are.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Delete, Dialect, Insert, Update

Rows = list[Any]


class Prepared:
    """A statement that is run for many rows at once and gives nothing back.

    Args:
        statement: of Core.
        columns: the names in each row: of an insert its columns, else its bound parameters. Values are
            text, integers, bytes, booleans or None: the driver gets them as they are.
    """

    def __init__(self, statement: Insert | Update | Delete, *columns: str) -> None:
        self._statement = statement
        self._columns = columns
        self._of_dialect: dict[str, tuple[str, Callable[[Any], Any] | None]] = {}

    def run(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run it for each row, in order; no rows, no call."""
        if not rows:
            return
        text, ordered = self._compiled(connection.dialect)
        given: Rows = list(rows) if ordered is None else [ordered(row) for row in rows]
        connection.exec_driver_sql(text, given)

    def _compiled(self, dialect: Dialect) -> tuple[str, Callable[[Any], Any] | None]:
        known = self._of_dialect.get(dialect.name)
        if known is None:
            is_insert = isinstance(self._statement, Insert)
            compiled = self._statement.compile(
                dialect=dialect, column_keys=list(self._columns) if is_insert else None
            )
            known = self._of_dialect[dialect.name] = (str(compiled), _order(compiled))
        return known


def _order(compiled: Any) -> Callable[[Any], Any] | None:
    """What makes a driver's row of one of ours; None where the driver takes names."""
    names: list[str] | None = compiled.positiontup
    if names is None:
        return None
    if len(names) == 1:
        [name] = names
        return lambda row: (row[name],)
    return itemgetter(*names)
