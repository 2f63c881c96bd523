"""Request bodies and queries of the control API as structs: how they are read, and what they accept in words.

A field's type is its one declaration: the check, the member `accepted` of an error and the reference page come
from it. Where a type says too little, `field_types.accepts` has the words.
"""

import re
from collections.abc import Mapping
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict, fields

from waypost.simulator.violation import BrokenRule

# fmt: off
_PLAIN: Final = {  # types without limits
    NoneType: "null", bool: "a boolean", int: "a number", str: "a text", bytes: "base64 text", dict: "an object",
}
# fmt: on


class Body(Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON body; this one, of calls that need no more than their path, has no members."""


class Query(Struct, frozen=True):
    """Parameters of a query string; unknown ones are ignored."""


Declared = TypeVar("Declared", bound=Struct)


def read_body(struct: type[Declared], raw: bytes) -> Declared:
    """Decode a body; an empty one counts as an object without members.

    Raises:
        BrokenRule: 400, with the path of the field that is wrong.
    """
    try:
        return msgspec.json.decode(raw or b"{}", type=struct)
    except msgspec.ValidationError as error:
        raise _refused(struct, error) from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        rule = f"is not readable JSON: {error}"
        raise BrokenRule("body", rule, accepted_by(struct)) from error


def read_members(struct: type[Declared], members: Mapping[str, Any], *, strict: bool = True) -> Declared:
    """The same for members that are values already; unless strict, texts may stand for numbers.

    Raises:
        BrokenRule: 400, with the path of the field that is wrong.
    """
    try:
        return msgspec.convert(members, struct, strict=strict, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise _refused(struct, error) from error


def _refused(struct: type[Struct], error: msgspec.ValidationError) -> BrokenRule:
    rule, _, path = str(error).partition(" - at `$.")
    field = path.rstrip("`") or "body"
    top = re.split(r"[.\[]", field)[0]
    words = next((words_of(one.type) for one in fields(struct) if one.encode_name == top), accepted_by(struct))
    return BrokenRule(field, rule, words)


def given(body: Struct) -> dict[str, Any]:
    """The members that the caller gave."""
    return {name: value for name, value in asdict(body).items() if value is not UNSET}


@cache
def accepted_by(struct: type[Struct]) -> str:
    """The members that a body or a query may have, and the values of each; `?` marks those that may be absent."""
    members = (f"{one.encode_name}{'' if one.required else '?'}: {words_of(one.type)}" for one in fields(struct))
    return f"{{{', '.join(members)}}}" if fields(struct) else "an object without members"


def words_of(type_: Any, limits: Meta | None = None) -> str:
    """The values that a type accepts within limits, in words."""
    origin, arguments, within = get_origin(type_) or type_, get_args(type_), limits or Meta()
    if origin is Annotated:
        written = [one.extra["accepted"] for one in arguments[1:] if one.extra]
        return written[-1] if written else words_of(arguments[0], arguments[1])
    if origin in (Union, UnionType):
        kinds = sorted((one for one in arguments if one is not UnsetType), key=lambda one: one is not NoneType)
        return " or ".join(map(words_of, kinds))
    if origin is Literal or issubclass(origin, Enum):
        *others, last = map(str, arguments if origin is Literal else type_)
        return f"{', '.join(others)} or {last}"
    if issubclass(origin, Struct):
        return accepted_by(origin)
    size = f"{within.min_length} to {within.max_length}" if within.min_length else f"at most {within.max_length}"
    if issubclass(origin, (list, tuple)):
        return f"a list of {size if within.max_length else 'any number'}, each {words_of(arguments[0])}"
    if within.max_length is not None:
        return f"{size} characters"
    if within.gt is not None:
        return f"more than {within.gt}, at most {within.le}"
    if within.ge is not None:
        return f"at least {within.ge}" if within.le is None else f"{within.ge} to {within.le}"
    return _PLAIN[origin]
