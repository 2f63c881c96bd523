"""Typed reading of rows: as named tuples, and as domain values."""

from dataclasses import fields
from typing import Any, Generic, NamedTuple, TypeVar, cast

import msgspec
from sqlalchemy import Select, Table, select

RowValue = TypeVar("RowValue")


def select_row(table: Table, row: type[NamedTuple]) -> Select[Any]:
    """Select the columns named by the fields of a named tuple, in their order.

    Rows are read with `_make`: one tuple is copied, and the type checker knows each field.
    """
    return select(*(table.c[name] for name in row._fields))


class RowReader(Generic[RowValue]):
    """Reads rows as domain values: each field is the row's column of that name, unless it is overridden.

    Created once, at import: msgspec (0.22) analyses a type at its first use, and two threads that do so at
    the same time crash the process.

    Args:
        value_type: a dataclass.
    """

    def __init__(self, value_type: type[RowValue]) -> None:
        self._value_type = value_type
        self._names = tuple(field.name for field in fields(cast("Any", value_type)))
        msgspec.json.Decoder(value_type)  # analyses it now

    def __call__(self, row: Any, **overrides: Any) -> RowValue:
        """Return the value.

        Raises:
            AttributeError: the row lacks a column.
            msgspec.ValidationError: a column is not of its field's type.
        """
        columns = {name: getattr(row, name) for name in self._names if name not in overrides}
        return msgspec.convert(columns | overrides, self._value_type)
