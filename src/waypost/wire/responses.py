"""The structs of responses, declared where their operations are, and their JSON Schema."""

from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import UNSET, Struct, UnsetType, defstruct, structs

Schema = dict[str, Any]
_PLAIN_SCHEMAS: Final[dict[Any, Schema]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    bytes: {"type": "string", "format": "binary"},
    Any: {},
}


class Success(Struct, kw_only=True):
    """The usual response; a struct that extends it has its own members first."""

    status: Literal["success"] = "success"


def response(**members: Any) -> type[Struct]:
    """Return the struct of a response with these members, by their types, in their order."""
    return _response(Struct, members)


def passed_on(**members: Any) -> type[Struct]:
    """Return the struct of an operator's object that is passed on: it has these members, and others."""
    return _response(OperatorObject, members)


def _response(base: type[Struct], members: dict[str, Any]) -> type[Struct]:
    fields: list[Any] = []
    for name, type_ in members.items():
        arguments = get_args(type_)
        has_one_value = get_origin(type_) is Literal and len(arguments) == 1
        default = arguments if has_one_value else (UNSET,) if UnsetType in arguments else ()
        fields.append((name, type_, *default))
    return defstruct("Response", fields, bases=(base,), kw_only=True)


def success(**members: Any) -> type[Struct]:
    """Return the struct of the usual response: the status, and then these members."""
    return response(status=Literal["success"], **members)


class Confirmation(Success):
    """The text of what was done."""

    message: str


class OperatorObject(Struct):
    """An object of the operator that is passed on: it has the members of the struct, and others."""


def schema_of(type_: Any) -> Schema:
    """Return the JSON Schema of the values of a type.

    Raises:
        TypeError: responses have no such type.
    """
    if type_ in _PLAIN_SCHEMAS:
        return _PLAIN_SCHEMAS[type_]
    origin, arguments = get_origin(type_), get_args(type_)
    if origin is Literal:
        return {"const": arguments[0]} if len(arguments) == 1 else {"enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": schema_of(arguments[0])}
    if origin is dict:
        return {"type": "object", "properties": {}, "required": [], "additionalProperties": True}
    if origin in (UnionType, Union):
        return _union_schema([option for option in arguments if option is not UnsetType])
    if isinstance(type_, type) and issubclass(type_, Struct):
        hints = get_type_hints(type_)
        members = structs.fields(type_)
        optional = {each.name for each in members if UnsetType in get_args(hints[each.name])}
        return {
            "type": "object",
            "properties": {each.encode_name: schema_of(hints[each.name]) for each in members},
            "required": [each.encode_name for each in members if each.name not in optional],
            "additionalProperties": issubclass(type_, OperatorObject),
        }
    raise TypeError(f"a response cannot hold {type_!r}")


def _union_schema(options: list[Any]) -> Schema:
    if len(options) == 1:
        return schema_of(options[0])
    if NoneType in options:
        schema = _union_schema([option for option in options if option is not NoneType])
        return schema | {"type": [schema["type"], "null"]}
    return {"anyOf": [schema_of(option) for option in options]}
