"""How texts, times and counts read in a failure."""

from datetime import UTC, datetime
from typing import Final

_SHORT: Final = 96


def shortened(text: str, at_most: int = _SHORT) -> str:
    """A text in one line that is not too long."""
    line = " ".join(text.split())
    return line if len(line) <= at_most else f"{line[: at_most - 1]}…"


def times(count: int) -> str:
    """How often, in words."""
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def clock_time(at_ms: int) -> str:
    """The time of a day, to the millisecond."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return at.strftime("%H:%M:%S.") + f"{at_ms % 1000:03d}"
