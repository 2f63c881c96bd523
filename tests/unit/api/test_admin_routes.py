"""The operations of the admin API: a wrong declaration fails when the process starts."""

from typing import Annotated, Any

import pytest
from msgspec import UNSET, Meta, Struct, UnsetType

from tests.support.declared_responses import difference
from waypost.admin.operation import AdminOperations, field_meanings
from waypost.admin.provisioning import AdminContext
from waypost.admin.routes import ROUTES


class Described(Struct):
    name: Annotated[str, Meta(description="Its name.")]


class Undescribed(Struct):
    name: str


class Named(Struct):
    name: str
    app_token: str | UnsetType = UNSET


async def named(context: AdminContext, fields: Described, app_id: str, position: int) -> Named: ...


async def unnamed(context: AdminContext, fields: Undescribed) -> Named: ...


async def without_fields(context: AdminContext) -> Named: ...


async def without_response(context: AdminContext, app_id: str) -> Any: ...


def test_request_is_read_as_the_function_takes_it() -> None:
    operation = AdminOperations()

    operation("PUT", "/apps/{app_id}/jobs/{position}")(named)
    operation("GET", "/jobs")(without_fields)
    operation("POST", "/jobs")(without_fields)

    with_fields, reading, action = operation.rows
    assert with_fields.request_type is Described
    assert with_fields.response_type is Named
    assert with_fields.path_numbers == {"app_id": False, "position": True}
    assert field_meanings(with_fields.request_type) == {"name": "Its name."}
    assert reading.request_type is None
    assert field_meanings(action.request_type) == {}


@pytest.mark.parametrize(
    ("path", "function", "expected"),
    [
        ("/apps", unnamed, "Undescribed.name needs an Annotated type with a description"),
        ("/apps/{app_id}", named, "named must take the context, one struct at most, app_id"),
        ("/apps/{app_id}", without_fields, "without_fields must take the context, one struct at most, app_id"),
        ("/apps/{app_id}", without_response, "without_response must say the type of its response"),
    ],
)
def test_wrong_declaration_is_an_error(path: str, function: Any, expected: str) -> None:
    with pytest.raises(TypeError, match=expected):
        AdminOperations()("POST", path)(function)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (Named("a"), ""),
        (Named("a", app_token="b"), ""),
        ({"name": "a", "secret": "b"}, '{"name":"a","secret":"b"} is not {"name":"a"}'),
        ({"name": 7}, "Expected `str`, got `int` - at `$.name`"),
        ({}, "Object missing required field `name`"),
    ],
)
def test_response_is_compared_with_its_declaration(response: Any, expected: str) -> None:
    assert difference(Named, response) == expected


def test_no_operation_is_declared_twice() -> None:
    assert len({row.name for row in ROUTES}) == len(ROUTES)
