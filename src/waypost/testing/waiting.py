"""Waiting, never for longer than was said."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

Found = TypeVar("Found")
_LOOK_AGAIN_S: Final = 0.01


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
        """Whether it has passed."""
        return time.monotonic() >= self._until_s


def looked_up(look: Callable[[], Found | None], within_s: float) -> Found | None:
    """What is found as soon as it is there, or None when the time is over; looks at least once."""
    deadline = Deadline(within_s)
    while (found := look()) is None and not deadline.is_over:
        time.sleep(_LOOK_AGAIN_S)
    return found
