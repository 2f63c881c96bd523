"""Readers of JSON members of any type: messages come from others, so each function returns one sure type."""

import math


def text_of(value: object) -> str:
    """Return a text or number as text; anything else as empty."""
    if isinstance(value, str):
        return value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else ""


def degrees_of(value: object, at_most: float) -> float | None:
    """Return a latitude or longitude; None if the value is not one."""
    try:
        degrees = float(text_of(value))
    except (ValueError, OverflowError):
        return None
    return degrees if math.isfinite(degrees) and abs(degrees) <= at_most else None
