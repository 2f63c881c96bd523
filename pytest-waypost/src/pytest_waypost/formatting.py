"""Texts, times and counts in failures."""

from datetime import UTC, datetime
from typing import Final

_MAX_LINE_CHARS: Final = 96


def shorten(text: str, max_chars: int = _MAX_LINE_CHARS) -> str:
    """Return a text as one line of limited length."""
    line = " ".join(text.split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"


def count_in_words(count: int) -> str:
    """Return a number of times in words."""
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def clock_time(at_ms: int) -> str:
    """Return the time of day in UTC, to the millisecond."""
    time = datetime.fromtimestamp(at_ms / 1000, UTC)
    return time.strftime("%H:%M:%S.") + f"{at_ms % 1000:03d}"
