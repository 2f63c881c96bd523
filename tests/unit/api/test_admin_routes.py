"""The operations of the admin API: a wrong declaration fails when the process starts."""

from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct

from waypost.admin.operation import AdminOperations, field_meanings
from waypost.admin.provisioning import AdminContext
from waypost.admin.routes import ROUTES


class Described(Struct):
    name: Annotated[str, Meta(description="Its name.")]


class Undescribed(Struct):
    name: str


async def named(context: AdminContext, fields: Described, app_id: str, position: int) -> Any: ...


async def unnamed(context: AdminContext, fields: Undescribed) -> Any: ...


async def without_fields(context: AdminContext) -> Any: ...


def test_request_is_read_as_the_function_takes_it() -> None:
    operation = AdminOperations()

    operation("PUT", "/apps/{app_id}/jobs/{position}")(named)
    operation("GET", "/jobs")(without_fields)
    operation("POST", "/jobs")(without_fields)

    with_fields, reading, action = operation.rows
    assert with_fields.request_type is Described
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
    ],
)
def test_wrong_declaration_is_an_error(path: str, function: Any, expected: str) -> None:
    with pytest.raises(TypeError, match=expected):
        AdminOperations()("POST", path)(function)


def test_no_operation_is_declared_twice() -> None:
    assert len({row.name for row in ROUTES}) == len(ROUTES)
