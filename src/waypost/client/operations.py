"""The operations of the admin API and of the simulator's control API, as their declarations say.

The table is generated from the declarations, because these load the whole service, and a command starts quickly.
Source: decision 0116.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

TABLE: Final = Path(__file__).with_name("operations.json")
_IN_QUERY: Final = ("GET", "DELETE")


class DeclaredField(msgspec.Struct, frozen=True):
    """A field of a request, or a parameter of its path."""

    kind: Literal["text", "integer", "number", "flag", "json"]  # of its value; `json` is any other
    meaning: str = ""  # for people
    is_required: bool = False
    # used by the service if the field is not sent; None: null, or the field is required
    default: bool | int | float | str | None = None
    choices: tuple[str, ...] = ()  # the values of a text; empty: any


class DeclaredOperation(msgspec.Struct, frozen=True):
    """An operation."""

    effect: str  # what it does, for people
    parameters: dict[str, DeclaredField]  # of the path, by name
    fields: dict[str, DeclaredField] | None  # of the body, or for GET and DELETE of the query; None: any


class OperationRequest(NamedTuple):
    """A request for an operation; without a body, its fields are in the path's query."""

    method: str
    path: str
    body: Any


@cache
def find_operation(name: str) -> DeclaredOperation:
    """Return an operation by method and path, such as `GET /admin/partners/{partner_id}/quotas`."""
    return msgspec.json.decode(_encoded_operations()[name], type=DeclaredOperation)


def operation_request(name: str, values: Mapping[str, Any]) -> OperationRequest:
    """Return the request for an operation with these values of its parameters and fields.

    A query does not have what is None; a body has it as null.

    Raises:
        LookupError: there is no such operation, or a value of a parameter is missing.
        TypeError: a value is of no field.
    """
    operation = find_operation(name)
    method, _, path = name.partition(" ")
    fields = {key: value for key, value in values.items() if key not in operation.parameters}
    if operation.fields is not None and (unknown := fields.keys() - operation.fields):
        raise TypeError(f"{name} has no field {', '.join(sorted(unknown))}")
    path = path.format_map({key: quote(str(values[key]), safe="") for key in operation.parameters})
    if method not in _IN_QUERY:
        return OperationRequest(method, path, fields)
    given = {key: value for key, value in fields.items() if value is not None}
    query = urlencode({key: str(value).lower() if isinstance(value, bool) else value for key, value in given.items()})
    return OperationRequest(method, f"{path}?{query}" if query else path, None)


@cache
def _encoded_operations() -> Mapping[str, msgspec.Raw]:
    """Return the operations undecoded: a command uses few of them."""
    return msgspec.json.decode(TABLE.read_bytes(), type=dict[str, msgspec.Raw])
