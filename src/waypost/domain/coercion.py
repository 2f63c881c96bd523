"""Readers of loosely typed values: numbers as text, text as numbers, booleans in any spelling."""

import math
import re
from contextlib import suppress
from typing import Final

from waypost.domain.errors import wrong_type

Text = str | int | float
"""A text; some clients send a number."""
Flag = bool | int | float | str
"""A boolean in any spelling."""

_MAX_INT64: Final = 2**63 - 1
_NUMBER: Final = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")
"""What `float` reads, without separators, names, and digits of other scripts."""
_WHOLE: Final = re.compile(r"\s*(-?[0-9]{1,30})(?:\.0*)?\s*")

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
    number = math.nan
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        with suppress(OverflowError):
            number = float(value)
    if not math.isfinite(number):
        raise wrong_type(name, "a number")
    return number


def read_integer(value: Text, name: str) -> int:
    """Return a value as an integer of at most 64 bits; a text has no exponent, and no decimals but zeros.

    Raises:
        ApiError: it is not an integer of that range.
    """
    if isinstance(value, int):
        whole = value
    elif isinstance(value, str):
        digits = _WHOLE.fullmatch(value)
        if digits is None:
            raise wrong_type(name, "a whole number" if _NUMBER.fullmatch(value) else "a number")
        whole = int(digits[1])
    else:
        number = read_number(value, name)
        if not number.is_integer():
            raise wrong_type(name, "a whole number")
        whole = int(number)
    if not -_MAX_INT64 <= whole <= _MAX_INT64:
        raise wrong_type(name, "a whole number within 64 bits")
    return whole
