"""Reading JSON values that nobody promises the shape of: what is not as expected counts as empty."""

from collections.abc import Mapping
from typing import Any, cast


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def first(value: Any) -> Mapping[str, Any]:
    """The first object of a list."""
    found = objects(value)
    return found[0] if found else {}


def members(value: Any) -> Mapping[str, Any]:
    """The members of an object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
