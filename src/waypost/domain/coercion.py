"""Values as clients write them: numbers as text, text as numbers, booleans in every spelling."""

import math
from typing import Final

from waypost.domain.errors import invalid_field

Text = str | int | float
"""A text that some clients write as a number."""
Flag = bool | int | float | str
"""A boolean in any spelling."""

_MOST: Final = 2**63 - 1

# fmt: off
_FLAGS: Final = {
    "true":  True,  "1": True,  "1.0": True,  "yes": True, "y": True,  "on":  True,  "t": True,
    "false": False, "0": False, "0.0": False, "no": False, "n": False, "off": False, "f": False,
    "null":  False, "":  False,
}
# fmt: on


def read_flag(value: Flag, name: str) -> bool:
    """A boolean.

    Raises:
        Refused: it is none.
    """
    flag = _FLAGS.get(str(value).strip().lower())
    if flag is None:
        raise invalid_field(name, "true or false")
    return flag


def as_text(value: Text | None) -> str:
    """A text; a number as it is written, nothing as an empty one."""
    if isinstance(value, str):
        return value
    return "" if value is None else str(value)


def read_number(value: Text, name: str) -> float:
    """A finite number.

    Raises:
        Refused: it is none.
    """
    try:
        number = float(value)
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise invalid_field(name, "a number")
    return number


def read_integer(value: Text, name: str) -> int:
    """A whole number within 64 bits.

    Raises:
        Refused: it is none.
    """
    if isinstance(value, int):
        whole = value
    elif isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        whole = int(value)
    else:
        number = read_number(value, name)
        if not number.is_integer():
            raise invalid_field(name, "a whole number")
        whole = int(number)
    if not -_MOST <= whole <= _MOST:
        raise invalid_field(name, "a whole number within 64 bits")
    return whole
