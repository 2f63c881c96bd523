"""Reading JSON of unknown shape: each function gives the value in one type, or None."""

from typing import Any, cast


def an_object(value: object) -> dict[str, Any] | None:
    """The value when it is a JSON object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def a_list(value: object) -> list[Any] | None:
    """The value when it is a JSON array."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def a_text(value: object) -> str | None:
    """The value when it is a JSON string."""
    return value if isinstance(value, str) else None


def an_integer(value: object) -> int | None:
    """The value when it is a whole number, or a string of at most nine digits that spells one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return None


def objects(value: object) -> list[dict[str, Any]]:
    """The objects in an array; an absent or otherwise shaped value has none."""
    return [one for one in map(an_object, a_list(value) or []) if one is not None]


def texts(value: object) -> list[str]:
    """The strings in an array."""
    return [one for one in a_list(value) or [] if isinstance(one, str)]
