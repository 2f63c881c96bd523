"""The fields of an operation: a struct whose annotations say what each is for, and how it is read and checked."""

import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from waypost.domain.coercion import read_flag, read_integer
from waypost.domain.errors import ApiError, ErrorCode, invalid_field, missing_parameter
from waypost.wire.forms import read_json

Fields = TypeVar("Fields", bound=msgspec.Struct)


class FieldType(StrEnum):
    """The type that a field's text is parsed as."""

    TEXT = "text"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    JSON = "JSON text"
    FILE = "file"
    OBJECT = "object"  # of a JSON body


_PLAIN_TYPES: Final = {
    str: FieldType.TEXT,
    int: FieldType.INTEGER,
    bool: FieldType.BOOLEAN,
    datetime.date: FieldType.TEXT,
    bytes: FieldType.FILE,  # of a form in parts, which the operation streams itself
}

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Field:
    """Describes a field, in its `Annotated` type; a struct without it cannot be an operation's."""

    meaning: str  # one sentence
    example: str = ""  # a value as it is sent in a form
    accepted: str = ""  # for the error of a missing or invalid value; empty: the meaning
    max_chars: int | None = None  # of a text
    between: tuple[int, int] | None = None  # the least and the greatest value of a number
    kind: str = "String"  # its type in the documented error of a missing field
    missing: str = ""  # for the error of a missing value, if it says less
    strip: bool = False  # True if blanks around a text do not count
    # the text that an empty one stands for; empty: the field counts as absent, unless it may be None and is a text or
    # has a `read` of its own
    empty: str = ""
    # reads a text of a rule of its own; takes the text and the name, and raises ApiError
    read: Callable[[str, str], Any] | None = None
    errors: tuple[ErrorCode, ...] = ()  # the codes of its errors
    is_required: bool = False  # True if the operation itself returns the error of a missing value


@dataclass(frozen=True, slots=True)
class RequestField:
    """A field of a form, a JSON body or a query, as it is read and as the reference describes it."""

    name: str  # as it is sent
    key: str  # the name with that of its struct, which no other field has
    attribute: str  # its name in the struct
    type: FieldType
    required: bool  # True if the operation returns an error without it
    is_checked: bool  # True if the error is returned when it is read
    meaning: str  # one sentence
    example: str  # a value as it is sent in a form
    missing: str  # for the error of a missing value: what is accepted
    kind: str  # its type in that error
    json_type: Any  # of JSON text, the msgspec type that decodes it; its JSON Schema goes into the document
    choices: tuple[str, ...]  # the accepted texts; empty: others are accepted, too
    between: tuple[int, int] | None  # the least and the greatest value of a number
    max_chars: int | None  # of a text
    errors: tuple[ErrorCode, ...]  # the codes of a text that is no value of it
    empty: str  # the text that an empty one stands for
    keeps_empty: bool  # True if an empty text is a value, too
    read: Callable[[str], Any]  # returns the value of a text; raises ApiError


@cache
def request_fields(struct: type[msgspec.Struct]) -> tuple[RequestField, ...]:
    """Return the fields of a struct, in its order.

    Raises:
        TypeError: a field has no `Field`.
    """
    hints = get_type_hints(struct, include_extras=True)
    return tuple(_request_field(struct, each, hints[each.name]) for each in msgspec.structs.fields(struct))


def read_fields(struct: type[Fields], text_of: Callable[[str], str | None]) -> Fields:
    """Return a struct of the fields of a form or a query.

    Raises:
        ApiError: the first field, in the struct's order, that is missing or invalid.
    """
    values: dict[str, Any] = {}
    for field in request_fields(struct):
        text = text_of(field.name)
        if field.is_checked and (not text or text.isspace()):
            raise missing_parameter(field.name, field.missing, field.kind)
        if text or (text is not None and field.keeps_empty):
            values[field.attribute] = field.read(text or field.empty)
    return struct(**values)


def describe_fields(struct: type[msgspec.Struct], *, is_json: bool = False) -> tuple[RequestField, ...]:
    """Return the fields of a struct for the reference; `is_json`: of a JSON body."""
    return tuple(
        replace(field, type=FieldType.OBJECT) if is_json and field.type is FieldType.JSON else field
        for field in request_fields(struct)
    )


def keep_text(text: str, _field: str) -> str:
    """Return a text as it is: the `read` of a field that the operation reads itself, after others."""
    return text


def omit_empty(fields: msgspec.Struct | Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that are not empty, by their wire names."""
    members = fields if isinstance(fields, Mapping) else msgspec.to_builtins(fields)
    return {name: value for name, value in members.items() if value not in (None, "")}


def _request_field(struct: type[msgspec.Struct], each: msgspec.structs.FieldInfo, hint: Any) -> RequestField:
    field = next((extra for extra in get_args(hint) if isinstance(extra, Field)), None)
    if field is None:
        raise TypeError(f"{struct.__name__}.{each.name} needs an Annotated type with a Field")
    name, type_ = each.encode_name, get_args(hint)[0]
    may_be_none = get_origin(type_) is UnionType and NoneType in get_args(type_)
    if may_be_none:  # `list[str] | None`: None if it is absent
        [type_] = [option for option in get_args(type_) if option is not NoneType]
    accepted = field.accepted or field.meaning[:1].lower() + field.meaning[1:].rstrip(".")
    is_choice = get_origin(type_) is Literal
    field_type = FieldType.TEXT if is_choice else _PLAIN_TYPES.get(type_, FieldType.JSON)
    read, errors = _value_reader(type_, name, field, accepted)
    return RequestField(
        name=name,
        key=f"{name}@{struct.__name__}",
        attribute=each.name,
        type=field_type,
        required=each.required or field.is_required,
        is_checked=each.required,
        meaning=field.meaning,
        example=field.example,
        missing=field.missing or accepted,
        kind=field.kind,
        json_type=type_ if field_type is FieldType.JSON else None,
        choices=get_args(type_) if is_choice else (),
        between=field.between,
        max_chars=field.max_chars,
        errors=errors,
        empty=field.empty,
        keeps_empty=bool(field.empty) or (may_be_none and (type_ is str or field.read is not None)),
        read=read,
    )


def _value_reader(
    type_: Any, name: str, field: Field, accepted: str
) -> tuple[Callable[[str], Any], tuple[ErrorCode, ...]]:
    """Return the function that reads a text, and the codes of its errors."""
    if field.read is not None:
        read = field.read
        return lambda text: read(text, name), field.errors
    if get_origin(type_) is Literal:
        return lambda text: _read_choice(text, name, get_args(type_), accepted), (ErrorCode.FIELD_BROKEN,)
    if type_ is str:
        errors = () if field.max_chars is None else (ErrorCode.FIELD_BROKEN,)
        return lambda text: _read_text(text.strip() if field.strip else text, name, field.max_chars), errors
    if type_ is int:
        errors = (ErrorCode.WRONG_TYPE,) if field.between is None else (ErrorCode.WRONG_TYPE, ErrorCode.FIELD_BROKEN)
        return lambda text: _read_integer(text, name, field.between, accepted), errors
    if type_ is bool:
        return lambda text: read_flag(text, name), (ErrorCode.WRONG_TYPE,)
    if type_ is datetime.date:
        return lambda text: _read_date(text, name), (ErrorCode.FIELD_BROKEN,)
    decoder = msgspec.json.Decoder(type_)
    return lambda text: read_json(text, decoder, name=name, accepted=accepted), (ErrorCode.UNREADABLE,)


def _read_choice(text: str, name: str, choices: tuple[str, ...], accepted: str) -> str:
    if text not in choices:
        raise invalid_field(name, accepted)
    return text


def _read_text(text: str, name: str, max_chars: int | None) -> str:
    if max_chars is not None and len(text) > max_chars:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"{name} must be at most {max_chars} characters.")
    return text


def _read_integer(text: str, name: str, between: tuple[int, int] | None, accepted: str) -> int:
    number = read_integer(text, name)
    if between is not None and not between[0] <= number <= between[1]:
        raise invalid_field(name, accepted)
    return number


def _read_date(text: str, name: str) -> datetime.date:
    try:
        if _DATE.fullmatch(text):
            return datetime.date.fromisoformat(text)
    except ValueError:
        pass
    raise invalid_field(name, "a date as YYYY-MM-DD")
