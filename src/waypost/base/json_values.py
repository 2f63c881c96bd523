"""Readers of JSON of unknown shape: each function accepts any value and returns one type.

For a value of another type, functions named `…_or_none` return None; the others return an empty value.
"""

import math
import re
from typing import Any, Final

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,32}(?:\.[0-9]{0,32})?(?:[eE][+-]?[0-9]{1,4})?", re.ASCII)
_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}


def object_or_none(value: object) -> dict[str, Any] | None:
    """Return the value if it is a JSON object."""
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType]


def list_or_none(value: object) -> list[Any] | None:
    """Return the value if it is a JSON array."""
    return value if isinstance(value, list) else None  # pyright: ignore[reportUnknownVariableType]


def text_or_none(value: object) -> str | None:
    """Return the value if it is a JSON string."""
    return value if isinstance(value, str) else None


def integer_or_none(value: object) -> int | None:
    """Return the value if it is a whole number, or a string of at most 16 digits that spells one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 16:
        return int(value)
    return None


def number_or_none(value: object) -> float | None:
    """Return the value if it is a finite number, or a string that spells one in ASCII; a boolean is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def boolean_of(value: object, default: bool) -> bool:
    """Return the boolean, which may be a string or a number; the default for any other value."""
    return _BOOLEANS.get(str(value).strip().lower(), default)


def object_of(value: object) -> dict[str, Any]:
    """Return the JSON object, or an empty one."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def list_of(value: object) -> list[Any]:
    """Return the JSON array, or an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def objects_in(value: object) -> list[dict[str, Any]]:
    """Return the objects in a JSON array."""
    return [member for member in map(object_or_none, list_of(value)) if member is not None]


def texts_in(value: object) -> list[str]:
    """Return the strings in a JSON array."""
    return [text for text in list_of(value) if isinstance(text, str)]


def coerced_text(value: object) -> str:
    """Return the text, or another value converted to text; None is an empty text."""
    return value if isinstance(value, str) else "" if value is None else str(value)
