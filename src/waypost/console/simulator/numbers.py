"""Parsing of numbers in the simulator's forms."""

from typing import Final

from waypost.console.web.errors import InvalidPageRequest

_MAX_DIGITS: Final = 18


def parse_seconds_ms(text: str, name: str) -> int | None:
    """Return seconds, with or without a fraction, in ms; None for an empty field.

    Raises:
        InvalidPageRequest: the text is not a number.
    """
    text = text.strip().replace(",", ".")
    if not text:
        return None
    head, point, tail = text.partition(".")
    is_number = head.isascii() and head.isdecimal() and (not point or tail.isdecimal())
    if not is_number or len(text) > _MAX_DIGITS:
        raise InvalidPageRequest(f"{text[:40]!r} is not a number of seconds.", f"Enter a number for {name}.")
    return round(float(text) * 1000)


def parse_whole(text: str) -> int | str:
    """Return a whole number; other text unchanged, so that the control API rejects and explains it."""
    text = text.strip()
    is_whole = text.lstrip("-").isascii() and text.removeprefix("-").isdecimal()
    return int(text) if is_whole and len(text) <= _MAX_DIGITS else text


def parse_fraction(text: str) -> float | str:
    """Return a number with a fraction; other text unchanged, as `whole` does."""
    text = text.strip().replace(",", ".")
    head, point, tail = text.partition(".")
    is_number = text.isascii() and (head or "0").isdecimal() and (not point or tail.isdecimal())
    return float(text) if is_number and text and len(text) <= _MAX_DIGITS else text
