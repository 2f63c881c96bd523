"""`column is one of these`, with the list as one value.

Core writes a parameter for each member, and so makes the statement's text anew for each list: that
cost more than the statement. Here the text stays the same, and the engine takes the list apart.
"""

from typing import Any

import msgspec
from sqlalchemy import ARRAY, BigInteger, ColumnElement, Dialect, Integer, Text, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import FunctionElement
from sqlalchemy.types import NullType, TypeDecorator, TypeEngine

from waypost.store.schema import POSTGRESQL


class _Members(TypeDecorator[Any]):
    """A list: an array where the engine has them, else one text of JSON."""

    impl = Text
    cache_ok = True

    def __init__(self, *, of_numbers: bool) -> None:
        super().__init__()
        self.of_numbers = of_numbers

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """See SQLAlchemy."""
        if dialect.name != POSTGRESQL:
            return dialect.type_descriptor(Text())
        return dialect.type_descriptor(ARRAY(BigInteger() if self.of_numbers else Text()))

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """See SQLAlchemy."""
        members = list(value)
        return members if dialect.name == POSTGRESQL else msgspec.json.encode(members).decode()


class _OneOf(FunctionElement[Any]):
    name = "one_of"
    type = NullType()  # of a boolean SQLite's compiler would make `... = 1`, which no index serves
    inherit_cache = True


def one_of(column: ColumnElement[Any], name: str) -> ColumnElement[Any]:
    """Whether a column is one of the members of a parameter, which is any collection.

    Args:
        column: text or whole numbers.
        name: of the parameter.
    """
    of_numbers = isinstance(column.type, Integer)
    return _OneOf(column, bindparam(name, type_=_Members(of_numbers=of_numbers)))


@compiles(_OneOf, "sqlite")
def _in_json(element: _OneOf, compiler: Any, **kw: Any) -> str:
    column, members = (compiler.process(each, **kw) for each in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({members}))"  # noqa: S608  no text of anybody's


@compiles(_OneOf, POSTGRESQL)
def _any_of_array(element: _OneOf, compiler: Any, **kw: Any) -> str:
    column, members = (compiler.process(each, **kw) for each in element.clauses)
    return f"{column} = ANY({members})"
