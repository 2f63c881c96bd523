"""How pages write numbers, durations, times, phone numbers and JSON."""

import json
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any


def plain(number: float) -> str:
    """A number as a chart gives it, its thousands apart: below ten to a tenth, from ten on whole."""
    text = f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"
    return text.replace(",", "\u202f")


def duration(ms: float) -> str:
    """Milliseconds as people say them: `35 ms`, `1.2 s`, `10 s`; number and unit stay on one line."""
    if ms < 1:
        return "under 1\u00a0ms"
    if ms < 1000:
        return f"{ms:.0f}\u00a0ms"
    return f"{ms / 1000:.0f}\u00a0s" if ms >= 10_000 or ms % 1000 == 0 else f"{ms / 1000:.1f}\u00a0s"


def grouped(number: float | None) -> str:
    """A number with its thousands apart, as exact as it is; nothing for None."""
    return "" if number is None else f"{number:,}".replace(",", "\u202f")


def iso(at_ms: int | None) -> str:
    """A time as `<time datetime>` takes it."""
    if at_ms is None:
        return ""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")


def exact(at_ms: int | None) -> str:
    """A time as people read it, to the millisecond, in UTC."""
    if at_ms is None:
        return ""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + " UTC"


@lru_cache(maxsize=4096)
def phone(digits: str | None) -> str:
    """A phone number grouped as in its country: `+44 20 7946 0958`; what is no number stays as it is."""
    if not digits or not (digits.isascii() and digits.isdecimal()) or not 8 <= len(digits) <= 15:
        return digits or ""
    import phonenumbers  # here, because its tables are large

    try:
        number = phonenumbers.parse(f"+{digits}")
    except phonenumbers.NumberParseException:
        return f"+{digits}"
    grouped = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.INTERNATIONAL)
    return grouped.replace("-", " ")


def pretty(value: Any) -> str:
    """JSON as people read it; a text that is none stays as it is."""
    if isinstance(value, (str, bytes)):
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
    return json.dumps(value, indent=2, ensure_ascii=False)
