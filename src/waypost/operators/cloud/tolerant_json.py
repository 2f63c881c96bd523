"""Tolerant readers of the operator's texts, names, numbers and times: a missing or invalid value is empty, no error.

The values are stored unchanged, so they contain only what each storage engine can hold: no U+0000,
and no name that is too long for an index.
"""

import hashlib
from typing import Any, Final

import msgspec

from waypost.domain.outcome import MAX_OPERATOR_ID_CHARS

MAX_NAME_CHARS: Final = MAX_OPERATOR_ID_CHARS
"""PostgreSQL indexes at most 2,704 bytes. Source: PostgreSQL, "B-Tree Indexes"; the operator's names have 100."""

_decode_json: Final = msgspec.json.Decoder().decode


def decode(text: bytes) -> Any:
    """Return the value of a JSON text, with U+FFFD in place of U+0000, which PostgreSQL cannot hold.

    Raises:
        msgspec.DecodeError, RecursionError, UnicodeError: not a JSON text.
    """
    value = _decode_json(text)
    # A zero has no other spelling: unescaped, it is not allowed in a JSON text.
    return _replace_zeros(value) if b"\\u0000" in text else value


def _replace_zeros(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, list):
        return [_replace_zeros(member) for member in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {_replace_zeros(name): _replace_zeros(member) for name, member in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value


def parse_text(value: Any) -> str:
    """Return the text, or another value converted to text; None is an empty text."""
    return value if isinstance(value, str) else "" if value is None else str(value)


def parse_name(value: Any) -> str:
    """Return an identifying text; one that is too long is cut and ends with its digest."""
    text = value if isinstance(value, str) else parse_text(value)
    if len(text) <= MAX_NAME_CHARS:
        return text
    return f"{text[:100]}~{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def parse_seconds(value: Any) -> int:
    """Return seconds since the epoch, from seconds or milliseconds; 0 if it is not a time.

    Source: operator's facts 7.3: both occur. A number that would be a year beyond 5000 is in milliseconds.
    """
    number = parse_number(value) or 0
    return number // 1000 if number >= 100_000_000_000 else number


def parse_number(value: Any) -> int | None:
    """Return the whole number, from a number or from digits; None otherwise."""
    text = value if isinstance(value, str) else parse_text(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None
