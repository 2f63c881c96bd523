"""The routes of the admin API: each operation takes what its row declares."""

import re
from inspect import signature

import pytest

from waypost.admin.provisioning import AdminContext
from waypost.admin.route import AdminRoute, EmptyBody
from waypost.admin.routes import ROUTES


@pytest.mark.parametrize("row", ROUTES, ids=lambda row: row.name)
def test_each_operation_takes_the_body_and_the_path_parameters_of_its_row(row: AdminRoute) -> None:
    struct = [] if row.request_type in (None, EmptyBody) else [row.request_type]
    numbers = {"partner_id": int, "subscription_id": int, "position": int}
    parts = {name: numbers.get(name, str) for name in re.findall(r"\{(\w+)(?::path)?\}", row.path)}

    parameters = signature(row.function, eval_str=True).parameters

    kinds = [parameter.annotation for parameter in parameters.values()]
    assert kinds == [AdminContext, *struct, *parts.values()]
    assert list(parameters)[len(kinds) - len(parts) :] == list(parts)


def test_no_operation_is_listed_twice() -> None:
    assert len({row.name for row in ROUTES}) == len(ROUTES)
