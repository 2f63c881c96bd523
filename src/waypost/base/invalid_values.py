"""Descriptions of invalid JSON values in our words: errors of msgspec use those of Python."""

import re
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, cast, get_args, get_origin

import msgspec
from msgspec import Meta, Struct, UnsetType
from msgspec.structs import fields

# fmt: off
_TYPE_NAMES: Final[dict[object, str]] = {  # types without limits
    NoneType: "null", bool: "true or false", int: "a whole number", float: "a number", str: "a text",
    bytes: "base64 text", dict: "an object",
}
_JSON_TYPES: Final = {  # as msgspec names them
    "null": "null", "bool": "true or false", "int": "a whole number", "float": "a number", "str": "a text",
    "bytes": "base64 text", "array": "a list", "object": "an object",
}
_FOUND_TYPES: Final = {"bool": "a boolean", "int": "a number"}
_SIZES: Final = {"str": "characters", "bytes": "bytes", "array": "entries", "object": "members"}
_BOUNDS: Final = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
# fmt: on
_LOCATED: Final = re.compile(r"(?s)(.*) - at `(?:key` in `)?\$\.?(.*)`")
_WRONG_TYPE: Final = re.compile(r"Expected `(.+?)`(?:, got `(.+)`)?")
_WRONG_SIZE: Final = re.compile(r"Expected `(\w+)` of length (>=|<=)? ?(\d+)(?:, got \d+)?")
_OUT_OF_BOUNDS: Final = re.compile(r"Expected `\w+` (>=|<=|>|<) (\S+)")
_MEMBER: Final = re.compile(r"Object (missing required|contains unknown) field `(.*)`", re.DOTALL)
_OTHER_VALUE: Final = re.compile(r"Invalid (?:enum )?value (.+)", re.DOTALL)
_MALFORMED: Final = re.compile(r"JSON is malformed: .* \(byte (\d+)\)")
_STEP: Final = re.compile(r"[^.\[\]]+|\[[\d.]+\]")
MAX_SHOWN_CHARS: Final = 100


@dataclass(frozen=True, slots=True)
class InvalidValue:
    """A value within a JSON value that is not of its type."""

    path: str  # of the value, such as `buttons[1].text`; empty: the JSON value itself
    rule: str  # what it must be, and what it is; follows its name in a sentence
    accepted: str  # the accepted values


def describe_invalid_value(error: msgspec.ValidationError, expected: Any) -> InvalidValue:
    """Return what is wrong with a JSON value.

    Args:
        error: of decoding it. Its text is used only if it is ours, from a struct's own check.
        expected: the type that it was to be decoded as.
    """
    located = _LOCATED.fullmatch(str(error))
    text, path = (located[1], located[2].replace("[...]", ".<name>")) if located else (str(error), "")
    path = path.removeprefix(".")
    if error.__cause__ is not None:  # a check of the struct
        return InvalidValue(path, text, accepted_values(_type_at(expected, path)))
    if member := _MEMBER.fullmatch(text):
        is_missing, name = member[1] == "missing required", member[2][:MAX_SHOWN_CHARS]
        path = f"{path}.{name}" if path else name
        if is_missing:
            return InvalidValue(path, "is required", accepted_values(_type_at(expected, path)))
        parent = _type_at(expected, path.removesuffix(name).removesuffix("."))
        names = [field.encode_name for struct in _structs_of(parent) for field in fields(struct)]
        return InvalidValue(path, "is unknown", ", ".join(names) or accepted_values(parent))
    accepted = accepted_values(_type_at(expected, path))
    if wrong := _WRONG_TYPE.fullmatch(text):
        types = [_JSON_TYPES.get(name, name) for name in wrong[1].split(" | ") if name != "null"] or ["null"]
        found = f", not {_found_type(wrong[2], wrong[1])}" if wrong[2] else ""
        return InvalidValue(path, f"must be {_join(types)}{found}", accepted)
    if size := _WRONG_SIZE.fullmatch(text):
        bound = f"{_BOUNDS[size[2]]} " if size[2] else ""
        unit = _SIZES.get(size[1], "entries")
        return InvalidValue(path, f"must have {bound}{size[3]} {unit if size[3] != '1' else _singular(unit)}", accepted)
    if bounds := _OUT_OF_BOUNDS.fullmatch(text):
        return InvalidValue(path, f"must be {_BOUNDS[bounds[1]]} {bounds[2]}", accepted)
    if other := _OTHER_VALUE.fullmatch(text):
        return InvalidValue(path, f"must be {accepted}, not {other[1][:MAX_SHOWN_CHARS]}", accepted)
    if text.endswith("out of range"):
        return InvalidValue(path, "must be a smaller number", accepted)
    return InvalidValue(path, f"must be {accepted}", accepted)


def name_type(value: object) -> str:
    """Return the type of a JSON value in our words, such as `a number`."""
    match value:
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case None:
            return "null"
        case list():
            return "a list"
        case _:
            return "an object"


def describe_malformed_json(error: Exception) -> str:
    """Return where a text stops to be JSON; follows its name in a sentence."""
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return f"is not UTF-8 at byte {error.start}"
    if malformed := _MALFORMED.fullmatch(str(error)):
        return f"is not valid JSON at byte {malformed[1]}"
    if str(error) == "Input data was truncated":
        return "is not valid JSON: it ends before a quote, bracket or brace is closed"
    return "is not valid JSON"


def _found_type(name: str, expected: str) -> str:
    if name == "float" and "int" in expected:
        return "a number with a decimal point"
    return _FOUND_TYPES.get(name) or _JSON_TYPES.get(name, name)


def _singular(unit: str) -> str:
    return "entry" if unit == "entries" else unit.removesuffix("s")


def _join(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _type_at(expected: Any, path: str) -> Any:
    """Return the type at a path; as much of the path as the types declare."""
    type_ = expected
    for step in _STEP.findall(path):
        inner = _inner_type(type_, step)
        if inner is None:
            break
        type_ = inner
    return type_


def _structs_of(type_: Any) -> list[type[Struct]]:
    """Return the structs among the alternatives of a type."""
    origin = get_origin(type_) or type_
    if origin is Annotated:
        return _structs_of(get_args(type_)[0])
    if origin in (Union, UnionType):
        return [struct for one in get_args(type_) for struct in _structs_of(one)]
    return [origin] if isinstance(origin, type) and issubclass(origin, Struct) else []


def _inner_type(type_: Any, step: str) -> Any:
    """Return the type of a member or an entry; None if the type declares none."""
    origin, arguments = get_origin(type_) or type_, get_args(type_)
    if origin is Annotated:
        return _inner_type(arguments[0], step)
    if origin in (Union, UnionType):
        return next((inner for one in arguments if (inner := _inner_type(one, step)) is not None), None)
    if step.startswith("["):
        return arguments[0] if origin in (list, tuple) and arguments else None
    if origin is dict:
        return arguments[1] if arguments else None
    if isinstance(origin, type) and issubclass(origin, Struct):
        return next((field.type for field in fields(origin) if field.encode_name == step), None)
    return None


def _literal_text(value: object) -> str:
    return "null" if value is None else str(value.value if isinstance(value, Enum) else value)


@cache
def accepted_by(struct: type[Struct]) -> str:
    """Return the members of a struct with their accepted values; `?` marks optional ones."""
    members = (
        f"{field.encode_name}{'' if field.required else '?'}: {accepted_values(field.type)}" for field in fields(struct)
    )
    return f"{{{', '.join(members)}}}" if fields(struct) else "an object without members"


def accepted_values(type_: Any, limits: Meta | None = None) -> str:
    """Return a text of the values that a type accepts within limits."""
    origin, arguments, within = get_origin(type_) or type_, get_args(type_), limits or Meta()
    if origin is Annotated:
        texts = [meta.extra["accepted"] for meta in arguments[1:] if meta.extra]
        return texts[-1] if texts else accepted_values(arguments[0], arguments[1])
    if origin in (Union, UnionType):
        types = sorted((item for item in arguments if item is not UnsetType), key=lambda item: item is not NoneType)
        return " or ".join(map(accepted_values, types))
    if origin is Literal or (isinstance(origin, type) and issubclass(origin, Enum)):
        return _join([_literal_text(one) for one in arguments or cast("type[Enum]", origin)])
    if isinstance(origin, type) and issubclass(origin, Struct):
        return accepted_by(origin)
    size = f"{within.min_length} to {within.max_length}" if within.min_length else f"at most {within.max_length}"
    if origin in (list, tuple, set, frozenset):
        entries = f", each {accepted_values(arguments[0])}" if arguments and arguments[0] is not Any else ""
        return f"a list of {size if within.max_length else 'any number'}{entries}"
    if within.max_length is not None:
        return f"{size} characters"
    if within.gt is not None:
        return f"more than {within.gt}, at most {within.le}"
    if within.ge is not None:
        return f"at least {within.ge}" if within.le is None else f"{within.ge} to {within.le}"
    return _TYPE_NAMES.get(cast("object", origin), "any JSON value")  # of a list: partly unknown
