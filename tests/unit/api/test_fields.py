"""A struct of fields is read in its order; a declaration that says too little does not start, and none is left out."""

import importlib
import pkgutil
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import UNSET, Struct, UnsetType

import waypost.api
from waypost.api.asgi import PathTree
from waypost.api.fields import Field, FieldType, describe_fields, omit_empty, read_fields, request_fields
from waypost.api.operation import APP, AppCall, Operations
from waypost.api.routes import ROUTES
from waypost.domain.errors import ApiError
from waypost.wire.responses import OperatorObject, Success, schema_of, success


class Order(Struct, rename="camel"):
    """An order."""

    order_name: Annotated[str, Field("The name.", "Tea", "1 to 5 characters", 5, strip=True)]
    size: Annotated[int, Field("The size.", "2", "a number from 1 to 9", between=(1, 9))] = 1
    kind: Annotated[Literal["", "small", "large"], Field("The kind.", "small", "small or large")] = ""
    is_urgent: Annotated[bool, Field("Whether it is urgent.", "true")] = False
    items: Annotated[list[str] | None, Field("The items.", '["tea"]', "a list of texts")] = None


@pytest.mark.parametrize(
    ("form", "order"),
    [
        ({"orderName": " Tea "}, Order("Tea")),
        ({"orderName": "Tea", "size": "9", "kind": "", "isUrgent": "yes"}, Order("Tea", 9, "", True)),
        (
            {"orderName": "Tea", "size": "", "kind": "large", "items": '["a","b"]'},
            Order("Tea", 1, "large", False, ["a", "b"]),
        ),
    ],
)
def test_fields_are_read(form: dict[str, str], order: Order) -> None:
    assert read_fields(Order, form.get) == order


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ({}, "1 to 5 characters"),
        ({"orderName": "  "}, "1 to 5 characters"),
        ({"orderName": "Teapot", "size": "x"}, "orderName must be at most 5 characters."),  # the first in the order
        ({"orderName": "Tea", "size": "10"}, "size must be a number from 1 to 9"),
        ({"orderName": "Tea", "size": "ten"}, "size"),
        ({"orderName": "Tea", "kind": "huge"}, "kind must be small or large"),
        ({"orderName": "Tea", "isUrgent": "perhaps"}, "isUrgent"),
        ({"orderName": "Tea", "items": "tea"}, "items must be a list of texts"),
    ],
)
def test_first_wrong_field_is_named(form: dict[str, str], text: str) -> None:
    with pytest.raises(ApiError) as raised:
        read_fields(Order, form.get)

    assert text in raised.value.explanation


def test_empty_members_are_omitted() -> None:
    assert omit_empty(Order("Tea", items=["a"])) == {"orderName": "Tea", "size": 1, "isUrgent": False, "items": ["a"]}


class Stored(Success):
    """A response."""

    id: str
    parts: list[dict[str, Any]]
    note: str | UnsetType = UNSET
    ended_on: int | None = None


class Passed(OperatorObject):
    """An object of the operator."""

    kind: Literal["a", "b"]


def test_schema_follows_from_the_struct() -> None:
    assert schema_of(Stored) == {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "parts": {
                "type": "array",
                "items": {"type": "object", "properties": {}, "required": [], "additionalProperties": True},
            },
            "note": {"type": "string"},
            "ended_on": {"type": ["integer", "null"]},
            "status": {"const": "success"},
        },
        "required": ["id", "parts", "ended_on", "status"],
        "additionalProperties": False,
    }
    assert schema_of(Passed)["additionalProperties"] is True
    assert schema_of(Passed)["properties"] == {"kind": {"enum": ["a", "b"]}}


class Undescribed(Struct):
    """Fields without a meaning."""

    name: str


class Unschematic(Struct):
    """A response with a type that JSON lacks."""

    value: complex


async def undescribed(call: AppCall, fields: Undescribed) -> Success:
    return Success()


async def described(call: AppCall) -> Success:
    return Success()


def test_field_without_meaning_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"Undescribed\.name needs"):
        request_fields(Undescribed)
    with pytest.raises(TypeError, match=r"Undescribed\.name needs"):
        Operations("a source")("POST", f"{APP}/x", Success)(undescribed)


def test_response_that_is_not_json_is_an_error() -> None:
    with pytest.raises(TypeError, match="a response cannot hold"):
        Operations("a source")("POST", f"{APP}/x", Unschematic)(described)


def test_two_operations_of_one_path_are_an_error() -> None:
    paths, endpoint = PathTree(), object()
    paths.add("/a/{id}", "GET", endpoint)  # pyright: ignore[reportArgumentType]

    with pytest.raises(ValueError, match=r"GET /a/\{id\} is declared twice"):
        paths.add("/a/{id}", "GET", endpoint)  # pyright: ignore[reportArgumentType]


def test_json_body_has_objects_where_a_form_has_their_text() -> None:
    types = {field.name: field.type for field in describe_fields(Order)}
    assert (types["items"], types["orderName"]) == (FieldType.JSON, FieldType.TEXT)

    types = {field.name: field.type for field in describe_fields(Order, is_json=True)}
    assert (types["items"], types["orderName"]) == (FieldType.OBJECT, FieldType.TEXT)


def test_members_of_a_usual_response_follow_its_status() -> None:
    response = success(link=str, size=int)

    assert msgspec.json.encode(response(link="a", size=1)) == b'{"status":"success","link":"a","size":1}'
    assert schema_of(response)["required"] == ["status", "link", "size"]


def test_every_declared_operation_is_served() -> None:
    modules = pkgutil.walk_packages(waypost.api.__path__, "waypost.api.")
    subjects = [value for module in modules for value in vars(importlib.import_module(module.name)).values()]
    declared = {row.name for subject in subjects if isinstance(subject, Operations) for row in subject.rows}

    assert declared == {row.name for row in ROUTES}
