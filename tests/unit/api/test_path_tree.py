"""A path finds its endpoints by its segments: literals before parameters, and a path that has the method before one that lacks it."""

from typing import Any

import pytest

from waypost.api.asgi import PathTree

ENDPOINT: Any = object()


def tree(*rows: str) -> PathTree:
    paths = PathTree()
    for row in rows:
        method, _, template = row.partition(" ")
        paths.add(template, method, ENDPOINT)
    return paths


PATHS = tree(
    "GET /apps", "GET /apps/{app_id}", "PUT /apps/{app_id}", "GET /apps/{app_id}/templates",
    "GET /apps/{app_id}/{kind}", "POST /apps/new", "DELETE /apps/{app_id}/templates/{template_id}",
)  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "template", "parameters"),
    [
        ("GET", "/apps", "/apps", {}),
        ("GET", "/apps/7", "/apps/{app_id}", {"app_id": "7"}),
        ("POST", "/apps/new", "/apps/new", {}),
        ("GET", "/apps/new", "/apps/{app_id}", {"app_id": "new"}),  # the literal path lacks the method
        ("PATCH", "/apps/new", "/apps/new", {}),  # 405 of the preferred path
        ("GET", "/apps/7/templates", "/apps/{app_id}/templates", {"app_id": "7"}),
        ("GET", "/apps/7/keys", "/apps/{app_id}/{kind}", {"app_id": "7", "kind": "keys"}),
        (
            "DELETE",
            "/apps/7/templates/9",
            "/apps/{app_id}/templates/{template_id}",
            {"app_id": "7", "template_id": "9"},
        ),
        ("GET", "/apps/{app_id}", "/apps/{app_id}", {"app_id": "{app_id}"}),
    ],
)
def test_a_path_is_found_with_its_parameters(method: str, path: str, template: str, parameters: dict[str, str]) -> None:
    found = PATHS.find(path, method)

    assert found is not None
    assert (found[0].template, found[1]) == (template, parameters)


@pytest.mark.parametrize(
    "path", ["", "/", "apps", "/app", "/apps/", "//apps", "/apps//templates", "/apps/7/templates/9/x", "/apps\n"]
)
def test_another_path_is_not_found(path: str) -> None:
    assert PATHS.find(path, "GET") is None


def test_one_path_has_one_template() -> None:
    with pytest.raises(ValueError, match="are one path"):
        tree("GET /apps/{app_id}", "PUT /apps/{id}")
