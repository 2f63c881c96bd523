"""Reading what a message shows: its shape is its sender's, so each function takes anything and gives one type."""

import math


def text_of(value: object) -> str:
    """A text or a number as text; anything else is empty."""
    if isinstance(value, str):
        return value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else ""


def degrees_of(value: object, at_most: float) -> float | None:
    """A latitude or a longitude; None where it is none."""
    try:
        degrees = float(text_of(value))
    except (ValueError, OverflowError):
        return None
    return degrees if math.isfinite(degrees) and abs(degrees) <= at_most else None
