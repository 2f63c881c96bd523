"""Table: when a callback that was not taken is tried again."""

import random
from typing import Final

from waypost.base.backoff import delay_ms

# fmt: off
SCHEDULE_S: Final = (  # Source: facts 4.6 leave it open; day-long like the best (field, section C)
    1, 5, 30, 120, 300, 900, 1800, 3600, 7200, 14400, 21600, 28800, 36000,
)
# fmt: on


def wait_ms(attempt: int, chance: random.Random) -> int | None:
    """How long to wait after attempt number `attempt`; None when the callback is given up.

    The schedule with its first try spans about 32 hours.
    """
    return delay_ms(SCHEDULE_S, attempt, chance) if attempt <= len(SCHEDULE_S) else None
