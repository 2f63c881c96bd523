"""Waits with a timeout."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

WaitResult = TypeVar("WaitResult")
_POLL_INTERVAL_S: Final = 0.01


class Deadline:
    """The end of a wait, by the machine's steady clock: virtual time does not shorten a wait."""

    def __init__(self, within_s: float) -> None:
        self._until_s = time.monotonic() + within_s

    @property
    def left_s(self) -> float:
        """Seconds to go; never negative."""
        return max(0.0, self._until_s - time.monotonic())

    @property
    def is_over(self) -> bool:
        """True if it has passed."""
        return time.monotonic() >= self._until_s


def poll(lookup: Callable[[], WaitResult | None], within_s: float) -> WaitResult | None:
    """Return the first result that is not None, or None after the timeout; looks at least once."""
    deadline = Deadline(within_s)
    while (result := lookup()) is None and not deadline.is_over:
        time.sleep(_POLL_INTERVAL_S)
    return result
