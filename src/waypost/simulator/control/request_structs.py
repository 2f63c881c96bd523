"""Request bodies and queries of the control API as structs.

A field's type is its only declaration: the check, the member `accepted` of an error and the reference page are
derived from it. `field_types.accepts` adds a text where a type does not give one.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import asdict
from starlette.requests import Request

from waypost.base.http.bodies import has_too_many_members, read_limited_body
from waypost.base.invalid_values import accepted_by, describe_invalid_value, describe_malformed_json
from waypost.base.written_numbers import json_decoder
from waypost.simulator.control_error import ControlApiError

MAX_BODY_BYTES: Final = 4 * 1024 * 1024


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
        return json_decoder(struct).decode(raw or b"{}")
    except msgspec.ValidationError as error:
        raise _field_error(struct, error) from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ControlApiError("body", describe_malformed_json(error), accepted_by(struct)) from error


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
    invalid = describe_invalid_value(error, struct)
    return ControlApiError(invalid.path or "body", invalid.rule, invalid.accepted)


def present_members(body: Struct) -> dict[str, Any]:
    """Return the members that the request set."""
    return {name: value for name, value in asdict(body).items() if value is not UNSET}
