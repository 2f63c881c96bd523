"""Numbers as people type them into the simulator's forms."""

from typing import Final

from waypost.console.web.not_found import NotMeant

_MOST_DIGITS: Final = 18


def seconds_as_ms(text: str, name: str) -> int | None:
    """Seconds, perhaps with a fraction, in milliseconds; None where nothing was typed.

    Raises:
        NotMeant: it is no number of seconds.
    """
    text = text.strip().replace(",", ".")
    if not text:
        return None
    head, point, tail = text.partition(".")
    is_number = head.isascii() and head.isdecimal() and (not point or tail.isdecimal())
    if not is_number or len(text) > _MOST_DIGITS:
        raise NotMeant(f"{text[:40]!r} is no number of seconds.", f"Type a number for {name}.")
    return round(float(text) * 1000)


def whole(text: str) -> int | str:
    """A whole number; what is none stays a text, which the control door refuses with what it takes."""
    text = text.strip()
    is_whole = text.lstrip("-").isascii() and text.removeprefix("-").isdecimal()
    return int(text) if is_whole and len(text) <= _MOST_DIGITS else text


def fraction(text: str) -> float | str:
    """A number with a fraction; likewise."""
    text = text.strip().replace(",", ".")
    head, point, tail = text.partition(".")
    is_number = text.isascii() and (head or "0").isdecimal() and (not point or tail.isdecimal())
    return float(text) if is_number and text and len(text) <= _MOST_DIGITS else text
