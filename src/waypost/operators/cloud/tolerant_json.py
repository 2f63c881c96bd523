"""Tolerant readers of the operator's texts, names, numbers and times: a missing or invalid value is empty, no error.

The values are stored unchanged, so they contain only what each storage engine can hold: no U+0000, no half
surrogate pair, and no name that is too long for an index.
"""

import hashlib
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

import msgspec

from waypost.base.written_numbers import WrittenNumber
from waypost.domain.outcome import MAX_OPERATOR_ID_CHARS

MAX_NAME_CHARS: Final = MAX_OPERATOR_ID_CHARS
"""PostgreSQL indexes at most 2,704 bytes. Source: PostgreSQL, "B-Tree Indexes"; the operator's names have 100."""

NOT_JSON: Final = (msgspec.DecodeError, RecursionError, ValueError)
"""Raised for a text that is not JSON, not even after repairs; `ValueError` for a number of thousands of digits."""

NOT_AN_OBJECT: Final = "it is not an object"
MAX_REPAIRED_BYTES: Final = 256 * 1024
"""A longer text is not repaired as a whole: it could take a second for each MB. A web page is not either."""

MAX_DEPTH: Final = 100
"""Maximum number of nested values in a part of a damaged text; the operator's deepest documented content has 12."""

_decode_json: Final[Callable[[bytes], Any]] = msgspec.json.Decoder().decode


def _read_number(text: str) -> WrittenNumber:
    number = WrittenNumber(text)
    if not math.isfinite(number):
        raise msgspec.DecodeError("a number is out of range")
    return number


_decode_written: Final[Callable[[bytes], Any]] = msgspec.json.Decoder(float_hook=_read_number).decode


def decode_webhook(text: bytes) -> Any:
    """Do as `decode`, but each number with a point or an exponent is a `WrittenNumber`: it is passed on as it came."""
    return decode(text, _decode_written)


def decode(text: bytes, decode_json: Callable[[bytes], Any] = _decode_json) -> Any:
    """Return the value of a JSON text, with U+FFFD in place of what a text of ours cannot contain.

    This is U+0000, which PostgreSQL cannot hold, half a surrogate pair, and each byte that is not UTF-8. A number that
    JSON does not have, such as `NaN`, is null.

    Raises:
        msgspec.DecodeError, RecursionError, ValueError: not a JSON text, not even after repairs.
    """
    try:
        value = decode_json(text)
    except (msgspec.DecodeError, UnicodeError):
        if len(text) > MAX_REPAIRED_BYTES or text.lstrip().startswith(b"<"):
            raise
        for pattern, replacement in _REPAIRS:  # bytes and escapes that no string can have
            text = pattern.sub(replacement, text)
        text = text.decode("utf-8", "replace").encode()
        try:
            value = decode_json(text)
        except msgspec.DecodeError:
            text = _STRING_OR_NUMBER.sub(_repair_value, text)
            value = decode_json(text)
    # A zero has no other spelling: unescaped, it is not allowed in a JSON text.
    return _replace_zeros(value) if b"\\u0000" in text else value


def decode_parts(text: bytes, levels: int) -> Any:
    """Return the value of a damaged JSON text; a part of it that cannot be read is `msgspec.Raw`, with its bytes.

    Args:
        text: that `decode` may not be able to read.
        levels: of containers that may be divided into their members; what is deeper is read as a whole or not at all.
    """
    try:
        if not is_too_deep(text):
            return decode_webhook(text)
    except NOT_JSON:
        pass
    parts = _divide(text) if levels else None
    if parts is None:
        return msgspec.Raw(text.strip())
    if isinstance(parts, list):
        return [decode_parts(part, levels - 1) for part in parts]
    return {name: decode_parts(part, levels - 1) for name, part in parts.items()}


def _repair_escape(match: re.Match[bytes]) -> bytes:
    """Return a valid escape unchanged; half a surrogate pair, or an unknown or incomplete escape, is U+FFFD."""
    return match[0] if match["valid"] else rb"\ufffd"


def _join_pair(match: re.Match[bytes]) -> bytes:
    """Return the UTF-8 of a character whose two surrogates were each encoded as if they were characters."""
    return match[0].decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16").encode()


def _repair_value(match: re.Match[bytes]) -> bytes:
    """Return a string with its control characters escaped; null for a number that JSON does not have."""
    if match["string"] is None:
        is_finite = match[0].lstrip(b"+-")[:1].isdigit() and math.isfinite(float(match[0]))
        return match[0] if is_finite else b"null"
    return _CONTROL.sub(lambda control: b"\\u%04x" % control[0][0], match[0])


_REPAIRS: Final[tuple[tuple[re.Pattern[bytes], Any], ...]] = (
    (re.compile(rb"\A\xef\xbb\xbf"), b""),  # a byte order mark
    (re.compile(rb"\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]"), _join_pair),  # CESU-8
    (re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]|\xc0\x80|\x00"), b"\xef\xbf\xbd"),  # half of a pair, or U+0000
    (
        re.compile(
            rb"""\\(?:(?P<valid>["\\/bfnrt]|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"""
            rb"""|u(?![dD][89a-fA-F])[0-9a-fA-F]{4})|u[0-9a-fA-F]{0,4}|[^"\\\x80-\xff]?)"""
        ),
        _repair_escape,
    ),
)
_STRING_OR_NUMBER: Final = re.compile(  # none begins within another, so that no text is scanned again and again
    rb"""(?P<string>"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z))|[+-]?(?:NaN|nan|Infinity|inf)\b"""
    rb"""|[+-]?(?<![\d.])\d[\d.]*[eE][+-]?\d{3,}""",
    re.DOTALL,
)
_CONTROL: Final = re.compile(rb"[\x00-\x1f]")
_TOKEN: Final = re.compile(rb"""(?P<string>"[^"\\]*(?:\\.[^"\\]*)*(?:"|(?P<open>\\?\Z)))|[\[\]{},:]""", re.DOTALL)
_CLOSING: Final = {b"{": b"}", b"[": b"]"}


def is_too_deep(text: bytes) -> bool:
    """True if more than `MAX_DEPTH` values are nested in each other, which not everything that reads JSON can read."""
    return text.count(b"{") + text.count(b"[") > MAX_DEPTH and _depth(text) > MAX_DEPTH


def _depth(text: bytes) -> int:
    """Return the number of values nested in each other, counted without reading them."""
    depth = deepest = 0
    for match in _TOKEN.finditer(text):
        if match[0] in _CLOSING:
            depth += 1
            deepest = max(deepest, depth)
        elif match[0] in (b"}", b"]"):
            depth -= 1
    return deepest


def _divide(text: bytes) -> list[bytes] | dict[str, bytes] | None:
    """Return the members of an array, or of an object by name; None where its brackets or quotes do not match."""
    text = text.strip().removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] not in _CLOSING:
        return None
    parts: list[bytes] = []
    names: list[bytes] = []
    open_brackets: list[bytes] = []
    begin = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if match["open"] is not None:  # a string that ends nowhere
            return None
        if token in _CLOSING:
            open_brackets.append(_CLOSING[token])
            begin = begin or match.end()
        elif token in (b"}", b"]"):
            if not open_brackets or open_brackets.pop() != token:
                return None
            if not open_brackets:
                if match.end() != len(text):
                    return None
                if len(names) > len(parts) or text[begin : match.start()].strip():
                    parts.append(text[begin : match.start()])
        elif len(open_brackets) == 1 and token == b",":
            parts.append(text[begin : match.start()])
            begin = match.end()
        elif len(open_brackets) == 1 and token == b":" and len(names) == len(parts):
            names.append(text[begin : match.start()])
            begin = match.end()
    if open_brackets:
        return None
    if text[:1] == b"[":
        return None if names else [part for part in parts if part.strip()]
    return _read_members(names, parts)


def _read_members(names: list[bytes], parts: list[bytes]) -> dict[str, bytes] | None:
    """Return the members of an object by name; None where one has no name, or the name of another."""
    try:
        members = {decode(name): part if part.strip() else b"null" for name, part in zip(names, parts, strict=True)}
    except (*NOT_JSON, TypeError):
        return None
    return members if len(members) == len(parts) and all(isinstance(name, str) for name in members) else None


def _replace_zeros(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, list):
        return [_replace_zeros(member) for member in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        members = cast("dict[Any, Any]", value)
        return {_replace_zeros(name): _replace_zeros(member) for name, member in members.items()}
    return value


def parse_text(value: Any) -> str:
    """Return the text, or another value converted to text; None, or a part that cannot be read, is an empty text."""
    return value if isinstance(value, str) else "" if value is None or isinstance(value, msgspec.Raw) else str(value)


def wrong_name(members: dict[str, Any], names: Iterable[str]) -> str | None:
    """Return which identifying member has neither a text nor a number as its value, as a sentence; None if none has."""
    for name in names:
        value = members.get(name)
        if value is not None and not isinstance(value, (str, int, float)):
            return f"{name} is neither text nor number"
    return None


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
