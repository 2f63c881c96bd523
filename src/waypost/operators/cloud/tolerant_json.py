"""The operator's texts, names, numbers and times, of whatever shape: what is missing or odd is empty, never an error.

What comes from here goes into the store as it is, so that it has only what each engine can hold: no
U+0000, and no name that is too long for an index.
"""

import hashlib
from typing import Any, Final

import msgspec

from waypost.domain.outcome import MOST_ID_CHARS

MOST_CHARS_OF_NAME: Final = MOST_ID_CHARS
"""PostgreSQL takes 2,704 bytes into an index. Source: PostgreSQL, "B-Tree Indexes"; the operator's names have 100."""

_decode: Final = msgspec.json.Decoder().decode


def decode(text: bytes) -> Any:
    """What a JSON text says, with U+FFFD in the place of U+0000, which PostgreSQL cannot hold.

    Raises:
        msgspec.DecodeError, RecursionError, UnicodeError: it is none.
    """
    value = _decode(text)
    # A zero can be written in no other way: as it is, it may not be in a JSON text.
    return _without_zeros(value) if b"\\u0000" in text else value


def _without_zeros(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, list):
        return [_without_zeros(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {_without_zeros(name): _without_zeros(one) for name, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value


def as_text(value: Any) -> str:
    """The text, or what else it is as one; nothing is an empty one."""
    return value if isinstance(value, str) else "" if value is None else str(value)


def as_name(value: Any) -> str:
    """The text of what something is known or told apart by: of one that is too long, its beginning and its digest."""
    text = as_text(value)
    if len(text) <= MOST_CHARS_OF_NAME:
        return text
    return f"{text[:100]}~{hashlib.sha256(text.encode()).hexdigest()[:32]}"


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
