"""Reading JSON whose shape nobody promises: each function takes any value and gives one type.

The functions that end with `_or_none` give None for a value of another type; the others give an empty value.
"""

from typing import Any, cast


def object_or_none(value: object) -> dict[str, Any] | None:
    """The value when it is a JSON object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def list_or_none(value: object) -> list[Any] | None:
    """The value when it is a JSON array."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def text_or_none(value: object) -> str | None:
    """The value when it is a JSON string."""
    return value if isinstance(value, str) else None


def integer_or_none(value: object) -> int | None:
    """The value when it is a whole number, or a string of at most 16 digits that spells one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 16:
        return int(value)
    return None


def object_of(value: object) -> dict[str, Any]:
    """The JSON object, or an empty one."""
    return object_or_none(value) or {}


def list_of(value: object) -> list[Any]:
    """The JSON array, or an empty one."""
    return list_or_none(value) or []


def objects_in(value: object) -> list[dict[str, Any]]:
    """The objects in a JSON array."""
    return [one for one in map(object_or_none, list_of(value)) if one is not None]


def texts_in(value: object) -> list[str]:
    """The strings in a JSON array."""
    return [one for one in list_of(value) if isinstance(one, str)]
