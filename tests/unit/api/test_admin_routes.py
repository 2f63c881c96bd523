"""The admin API's table: each operation is called with what its row says."""

import re
from inspect import signature

import pytest

from waypost.admin.provisioning import AdminContext
from waypost.admin.route import AdminRoute, EmptyBody
from waypost.admin.routes import ROUTES


@pytest.mark.parametrize("row", ROUTES, ids=lambda row: row.name)
def test_each_operation_takes_the_struct_and_the_path_of_its_row(row: AdminRoute) -> None:
    struct = [] if row.request_type in (None, EmptyBody) else [row.request_type]
    numbers = {"partner_id": int, "subscription_id": int, "position": int}
    parts = {name: numbers.get(name, str) for name in re.findall(r"\{(\w+)(?::path)?\}", row.path)}

    asked = signature(row.function, eval_str=True).parameters

    kinds = [one.annotation for one in asked.values()]
    assert kinds == [AdminContext, *struct, *parts.values()]
    assert list(asked)[len(kinds) - len(parts) :] == list(parts)


def test_no_operation_stands_twice() -> None:
    assert len({row.name for row in ROUTES}) == len(ROUTES)
