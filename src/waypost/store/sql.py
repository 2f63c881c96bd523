"""SQL constructs that both engines understand, where Core has them for one dialect at a time.

`column is any of a list`, with the list as one value: Core writes a parameter for each member, and so
compiles the statement again for each list, which cost more than the statement. Here the text stays the
same, and the engine unpacks the list.

`upsert` is an insert with `on_conflict_do_nothing`, `on_conflict_do_update` and `excluded`. Both
engines spell these alike, and SQLite's compiler reads what PostgreSQL's construct holds.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any, Generic, NamedTuple, TypeVar, cast

import msgspec
from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    Dialect,
    Executable,
    Integer,
    Select,
    Table,
    Text,
    and_,
    bindparam,
    select,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import FunctionElement
from sqlalchemy.types import NullType, TypeDecorator, TypeEngine

from waypost.store.bulk_statements import IS_WRITER
from waypost.store.schema import POSTGRESQL

upsert = postgresql.insert


class _ListParameter(TypeDecorator[Any]):
    """A list: an array where the engine has them, else one JSON text."""

    impl = Text
    cache_ok = True

    def __init__(self, *, is_numeric: bool) -> None:
        super().__init__()
        self.is_numeric = is_numeric

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the type for a dialect. See SQLAlchemy."""
        if dialect.name != POSTGRESQL:
            return dialect.type_descriptor(Text())
        return dialect.type_descriptor(ARRAY(BigInteger() if self.is_numeric else Text()))

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """Return the value to be bound. See SQLAlchemy."""
        members = list(value)
        return members if dialect.name == POSTGRESQL else msgspec.json.encode(members).decode()


class _EqualsAny(FunctionElement[Any]):
    name = "equals_any"
    type = NullType()  # SQLite's compiler would render a boolean as `... = 1`, which no index serves
    inherit_cache = True


def equals_any(column: ColumnElement[Any], name: str) -> ColumnElement[Any]:
    """Return a condition: the column equals one member of a parameter, which is any collection.

    Args:
        column: text or whole numbers.
    """
    of_numbers = isinstance(column.type, Integer)
    return _EqualsAny(column, bindparam(name, type_=_ListParameter(is_numeric=of_numbers)))


@compiles(_EqualsAny, "sqlite")
def _render_json_list(element: _EqualsAny, compiler: Any, **kw: Any) -> str:
    column, members = (compiler.process(clause, **kw) for clause in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({members}))"  # noqa: S608  only column and parameter names


@compiles(_EqualsAny, POSTGRESQL)
def _render_array(element: _EqualsAny, compiler: Any, **kw: Any) -> str:
    column, members = (compiler.process(clause, **kw) for clause in element.clauses)
    return f"{column} = ANY({members})"


def select_for_update(connection: Connection, statement: Select[Any], *, of: Table | None = None) -> Select[Any]:
    """Return a query whose rows are locked until the transaction ends, if the connection is the writer's.

    Several processes write at once on PostgreSQL, and what one decides from must still be true when it
    writes. The query defines the order in which rows are locked, so that two transactions cannot deadlock. Of a join,
    only the rows of one table are locked.
    """
    return statement.with_for_update(of=of) if IS_WRITER in connection.info else statement


RowValue = TypeVar("RowValue")


def read_one(
    connection: Connection, query: Executable, read: Callable[[Any], RowValue], **parameters: Any
) -> RowValue | None:
    """Return the one row of a query as a value; None if there is none."""
    row = connection.execute(query, parameters).one_or_none()
    return None if row is None else read(row)


def read_all(
    connection: Connection, query: Executable, read: Callable[[Any], RowValue], **parameters: Any
) -> list[RowValue]:
    """Return the rows of a query as values."""
    return [read(row) for row in connection.execute(query, parameters)]


def read_dicts(connection: Connection, query: Executable, **parameters: Any) -> list[dict[str, Any]]:
    """Return the rows of a query by the names of their columns."""
    return [dict(row) for row in connection.execute(query, parameters).mappings()]


def read_dict(connection: Connection, query: Executable) -> dict[str, Any] | None:
    """Return the one row of a query by the names of its columns; None if there is none."""
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else dict(row)


def skip_through(connection: Connection, next_value: Executable, last: Any, **parameters: Any) -> Iterator[Any]:
    """Yield the different values of a column, found by skipping through its index.

    Args:
        next_value: returns the first value after its parameter `last`, or None.
        last: before the first value.
    """
    while (last := connection.execute(next_value, {**parameters, "last": last}).scalar_one_or_none()) is not None:
        yield last


def row_values(table: Table, value: Any, **columns: Any) -> dict[str, Any]:
    """Return a value as a row: a column is the attribute of its name, unless it is given, or there is none."""
    names = [name for name in table.c.keys() if name not in columns and hasattr(value, name)]  # noqa: SIM118
    return {name: getattr(value, name) for name in names} | columns


def is_of_app(table: Table, partner_id: int, app_id: str) -> ColumnElement[bool]:
    """Return the condition of rows that belong to an app, which belongs to a partner; of another's there are none."""
    return and_(table.c.app_id == app_id, table.c.partner_id == partner_id)


def contains_escaped(column: ColumnElement[Any], part: str) -> ColumnElement[bool]:
    """Return a condition: a text contains a part, in which no character is a placeholder."""
    return column.contains(part, autoescape=True)


def filter_conditions(
    *conditions: tuple[Callable[[Any, Any], Any], ColumnElement[Any], Any],
) -> list[ColumnElement[bool]]:
    """Return the conditions of a filter whose values are given.

    Args:
        conditions: an operator such as `operator.eq`, a column, and a value; None: it is not given.
    """
    return [compares(column, value) for compares, column, value in conditions if value is not None]


def select_row(table: Table, row: type[NamedTuple]) -> Select[Any]:
    """Select the columns named by the fields of a named tuple, in their order.

    Rows are read with `_make`: one tuple is copied, and the type checker knows each field.
    """
    return select(*(table.c[name] for name in row._fields))


class RowReader(Generic[RowValue]):
    """Reads rows as domain values: each field is the row's column of that name, unless it is overridden.

    Created once, at import: msgspec (0.22) analyses a type at its first use, and two threads that do so at
    the same time crash the process.
    """

    def __init__(self, value_type: type[RowValue]) -> None:
        self._value_type = value_type
        self._names = tuple(field.name for field in fields(cast("Any", value_type)))
        msgspec.json.Decoder(value_type)  # analyses it now

    def __call__(self, row: Any, **overrides: Any) -> RowValue:
        """Return the value of a row."""
        columns = {name: getattr(row, name) for name in self._names if name not in overrides}
        return msgspec.convert(columns | overrides, self._value_type)
