"""Rows as the values they are handed on as: named tuples, and values of the domain."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar, cast

import msgspec
from sqlalchemy import Row, Select, Table, select

Value = TypeVar("Value")


def select_row(table: Table, row: type[NamedTuple]) -> Select[Any]:
    """Select the columns that the fields of a named tuple are called after, in their order.

    What it finds is read with `_make`: a copy of one tuple, and the type checker knows each field.
    """
    return select(*(table.c[name] for name in row._fields))


def columns_getter(names: Iterable[str]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """What gives these columns, at least two, of a row that is about to be written."""
    return itemgetter(*names)


class RowReader(Generic[Value]):
    """Reads rows as values of the domain: each field is the row's column of that name, but for those that are given.

    Made once, where a module is imported: what msgspec (0.22) knows of a type it gathers at the first use, and two
    threads that do so at the same time end the process.

    Args:
        kind: a dataclass.
    """

    def __init__(self, kind: type[Value]) -> None:
        self._kind = kind
        self._names = tuple(one.name for one in fields(cast("Any", kind)))
        msgspec.json.Decoder(kind)  # gathers it now

    def __call__(self, row: Row[Any], **given: Any) -> Value:
        """The value.

        Raises:
            AttributeError: the row lacks a column.
            msgspec.ValidationError: a column is not of its field's type.
        """
        columns = {name: getattr(row, name) for name in self._names if name not in given}
        return msgspec.convert(columns | given, self._kind)
