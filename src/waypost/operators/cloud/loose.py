"""Reading what may be of any shape: what is missing or odd is empty, never an error."""

from typing import Any


def as_dict(value: Any) -> dict[str, Any]:
    """The object, or an empty one."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def as_list(value: dict[str, Any], name: str) -> list[Any]:
    """The list of that name, or an empty one."""
    found = value.get(name)
    return found if isinstance(found, list) else []  # pyright: ignore[reportUnknownVariableType]


def as_text(value: Any) -> str:
    """The text, or what else it is as one; nothing is an empty one."""
    return value if isinstance(value, str) else "" if value is None else str(value)


def as_seconds(value: Any) -> int:
    """Seconds since the epoch, given so or in milliseconds; 0 where it is no time.

    Source: operator's facts 7.3: both have been met. What would be a year beyond 5000 is in milliseconds.
    """
    number = as_number(value) or 0
    return number // 1000 if number >= 100_000_000_000 else number


def as_number(value: Any) -> int | None:
    """The whole number, given as one or as digits; None otherwise."""
    text = as_text(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None
