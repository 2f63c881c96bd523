"""Reading what a message shows: its shape is its sender's, so each function takes anything and gives one type."""

import math
from typing import Any, cast


def text_of(value: object) -> str:
    """A text or a number as text; anything else is empty."""
    if isinstance(value, str):
        return value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else ""


def map_of(value: object) -> dict[str, Any]:
    """An object; anything else is an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def maps_of(value: object) -> list[dict[str, Any]]:
    """The objects in a list; anything else has none."""
    listed = cast("list[object]", value) if isinstance(value, list | tuple) else []
    return [cast("dict[str, Any]", one) for one in listed if isinstance(one, dict)]


def degrees_of(value: object, at_most: float) -> float | None:
    """A latitude or a longitude; None where it is none."""
    try:
        degrees = float(text_of(value))
    except (ValueError, OverflowError):
        return None
    return degrees if math.isfinite(degrees) and abs(degrees) <= at_most else None


def whole_of(value: object) -> int | None:
    """A whole number; None where it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 17 else None
