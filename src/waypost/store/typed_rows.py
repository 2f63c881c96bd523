"""Rows as the values they are handed on as: named tuples, and values of the domain."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

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


def value_of(kind: type[Value], row: Row[Any], **given: Any) -> Value:
    """A value of the domain: each field is the row's column of that name, but for those that are given.

    Raises:
        AttributeError: the row lacks a column.
        msgspec.ValidationError: a column is not of its field's type.
    """
    columns = {name: getattr(row, name) for name in _field_names(kind) if name not in given}
    return msgspec.convert(columns | given, kind)


@cache
def _field_names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))
