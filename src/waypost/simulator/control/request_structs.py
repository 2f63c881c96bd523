"""Request bodies and queries of the control API as structs: reading them, and the texts of their accepted values.

A field's type is its only declaration: the check, the member `accepted` of an error and the reference page are
derived from it. `field_types.accepts` adds a text where a type does not give one.
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
from starlette.requests import Request

from waypost.base.http.bodies import has_too_many_members, read_limited_body
from waypost.simulator.control_error import ControlApiError

MAX_BODY_BYTES: Final = 4 * 1024 * 1024

# fmt: off
_TYPE_NAMES: Final = {  # types without limits
    NoneType: "null", bool: "a boolean", int: "a number", str: "a text", bytes: "base64 text", dict: "an object",
}
# fmt: on


class ControlBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON body; this class itself is the empty body of calls that need only their path."""


class ControlQuery(Struct, frozen=True):
    """Parameters of a query string; unknown ones are ignored."""


Declared = TypeVar("Declared", bound=Struct)


async def read_bytes(request: Request, max_bytes: int = MAX_BODY_BYTES) -> bytes:
    """Return the bytes of a body.

    Raises:
        ControlApiError: 413, it is too large.
    """
    body = await read_limited_body(request.stream(), max_bytes)
    if body is None:
        raise ControlApiError("body", "is too large", f"at most {max_bytes} bytes", status=413)
    return body


def read_body(struct: type[Declared], raw: bytes) -> Declared:
    """Decode a body; an empty one counts as an object without members.

    Raises:
        ControlApiError: 400, with the path of the invalid field.
    """
    if has_too_many_members(raw):
        raise ControlApiError("body", "has too many members", accepted_by(struct))
    try:
        return msgspec.json.decode(raw or b"{}", type=struct)
    except msgspec.ValidationError as error:
        raise _field_error(struct, error) from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        rule = f"is not readable JSON: {error}"
        raise ControlApiError("body", rule, accepted_by(struct)) from error


def read_members(struct: type[Declared], members: Mapping[str, Any], *, strict: bool = True) -> Declared:
    """Read a struct from members that are decoded already; unless strict, numbers may be texts.

    Raises:
        ControlApiError: 400, with the path of the invalid field.
    """
    try:
        return msgspec.convert(members, struct, strict=strict, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise _field_error(struct, error) from error


def _field_error(struct: type[Struct], error: msgspec.ValidationError) -> ControlApiError:
    rule, _, path = str(error).partition(" - at `$.")
    field = path.rstrip("`") or "body"
    top = re.split(r"[.\[]", field)[0]
    accepted = next(
        (accepted_values(item.type) for item in fields(struct) if item.encode_name == top), accepted_by(struct)
    )
    return ControlApiError(field, rule, accepted)


def present_members(body: Struct) -> dict[str, Any]:
    """Return the members that the request set."""
    return {name: value for name, value in asdict(body).items() if value is not UNSET}


@cache
def accepted_by(struct: type[Struct]) -> str:
    """Return the members of a body or a query with their accepted values; `?` marks optional ones."""
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
    if origin is Literal or issubclass(origin, Enum):
        *others, last = map(str, arguments if origin is Literal else type_)
        return f"{', '.join(others)} or {last}"
    if issubclass(origin, Struct):
        return accepted_by(origin)
    size = f"{within.min_length} to {within.max_length}" if within.min_length else f"at most {within.max_length}"
    if issubclass(origin, (list, tuple)):
        return f"a list of {size if within.max_length else 'any number'}, each {accepted_values(arguments[0])}"
    if within.max_length is not None:
        return f"{size} characters"
    if within.gt is not None:
        return f"more than {within.gt}, at most {within.le}"
    if within.ge is not None:
        return f"at least {within.ge}" if within.le is None else f"{within.ge} to {within.le}"
    return _TYPE_NAMES[origin]
