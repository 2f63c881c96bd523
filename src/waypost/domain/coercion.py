"""Readers of loosely typed values: numbers as text, text as numbers, booleans in any spelling."""

import math
from typing import Final

from waypost.domain.errors import wrong_type

Text = str | int | float
"""A text; some clients send a number."""
Flag = bool | int | float | str
"""A boolean in any spelling."""

_MAX_INT64: Final = 2**63 - 1

# fmt: off
_FLAGS: Final = {
    "true":  True,  "1": True,  "1.0": True,  "yes": True, "y": True,  "on":  True,  "t": True,
    "false": False, "0": False, "0.0": False, "no": False, "n": False, "off": False, "f": False,
    "null":  False, "":  False,
}
# fmt: on


def read_flag(value: Flag, name: str) -> bool:
    """Return a value as a boolean.

    Raises:
        ApiError: it is not a boolean.
    """
    flag = _FLAGS.get(str(value).strip().lower())
    if flag is None:
        raise wrong_type(name, "true or false")
    return flag


def coerce_text(value: Text | None) -> str:
    """Return a value as text: a number as it is written, None as an empty text."""
    if isinstance(value, str):
        return value
    return "" if value is None else str(value)


def read_number(value: Text, name: str) -> float:
    """Return a value as a finite number.

    Raises:
        ApiError: it is not a number.
    """
    try:
        number = float(value)
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise wrong_type(name, "a number")
    return number


def read_integer(value: Text, name: str) -> int:
    """Return a value as an integer of at most 64 bits.

    Raises:
        ApiError: it is not an integer of that range.
    """
    if isinstance(value, int):
        whole = value
    elif isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        whole = int(value)
    else:
        number = read_number(value, name)
        if not number.is_integer():
            raise wrong_type(name, "a whole number")
        whole = int(number)
    if not -_MAX_INT64 <= whole <= _MAX_INT64:
        raise wrong_type(name, "a whole number within 64 bits")
    return whole
