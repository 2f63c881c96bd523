"""The table of operations that the command line, its tools and the client read: made from their declarations.

They cannot import the declarations, which load the whole service. `make reference` writes the table, and a test
compares it.
"""

import json
import re
from collections.abc import Callable, Mapping
from inspect import cleandoc, signature
from typing import Any, Final, cast

from msgspec import inspect

from waypost.admin.operation import AnyFields
from waypost.admin.routes import PATH_PARAMETERS
from waypost.admin.routes import ROUTES as ADMIN_ROUTES
from waypost.simulator.apis.control_operations import declared_struct
from waypost.simulator.serving.control_api import CALLS

_SECTION: Final = re.compile(r"\n\n(?:Args|Raises|Returns|Source|Yields)\b.*", re.DOTALL)
_PARAMETER: Final = re.compile(r"([^/]+)/\{(\w+)\}")
_KINDS: Final[dict[type[inspect.Type], str]] = {
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.StrType: "text",
    inspect.BoolType: "flag",
    inspect.LiteralType: "text",
    inspect.EnumType: "text",
}


def operation_table() -> str:
    """Return the table as JSON, one operation a line."""
    rows = [
        (row.method, row.path.replace(":path", ""), row.function, _fields(row.request_type), row.path_numbers)
        for row in ADMIN_ROUTES
    ]
    for method, path, function in CALLS:
        struct = declared_struct(function)
        reads_body_itself = struct is None and "request" in signature(function).parameters
        rows.append((method, path, function, None if reads_body_itself else _fields(struct), {}))
    lines = [
        f"{json.dumps(f'{method} {path}')}: "
        + json.dumps(
            {"effect": _effect(function), "parameters": _parameters(path, numbers), "fields": fields},
            ensure_ascii=False,
        )
        for method, path, function, fields, numbers in rows
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _effect(function: Callable[..., Any]) -> str:
    """Return the docstring without what it says about arguments, errors and sources."""
    return _SECTION.sub("", cleandoc(function.__doc__ or ""))


def _parameters(path: str, numbers: Mapping[str, bool]) -> dict[str, Any]:
    """Return kind and meaning of each parameter of a path."""
    is_ours = path.startswith("/admin/")
    return {
        name: {
            "kind": "integer" if numbers.get(name) else "text",
            "meaning": PATH_PARAMETERS[f"{collection}/{{{name}}}"] if is_ours else "",
        }
        for collection, name in _PARAMETER.findall(path)
    }


def _fields(struct: Any) -> dict[str, Any] | None:
    """Return the fields of a request by name; None if any are accepted."""
    if struct is None:
        return {}
    if struct == AnyFields:
        return None
    info = cast("inspect.StructType", inspect.type_info(struct))
    return {field.encode_name: _field(field) for field in info.fields}


def _field(field: inspect.Field) -> dict[str, Any]:
    """Return what is known about a field: what it is, what it means, and its default if that is no null."""
    kind, meaning = _unwrap(field.type)
    described: dict[str, Any] = {"kind": _KINDS.get(type(kind), "json")}
    if meaning:
        described["meaning"] = meaning
    if field.required:
        described["is_required"] = True
    elif isinstance(field.default, bool | int | float | str):
        described["default"] = field.default
    if isinstance(kind, inspect.LiteralType) and all(isinstance(value, str) for value in kind.values):
        described["choices"] = list(kind.values)
    return described


def _unwrap(kind: inspect.Type) -> tuple[inspect.Type, str]:
    """Return a type without null and what may be absent, and its meaning."""
    meaning = ""
    while isinstance(kind, inspect.Metadata | inspect.UnionType):
        if isinstance(kind, inspect.Metadata):
            schema = cast("dict[str, str]", kind.extra_json_schema or {})
            meaning = meaning or schema.get("description", "")
            kind = kind.type
            continue
        present = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
        if len(present) != 1:
            break
        [kind] = present
    return kind, meaning
