"""Table: what keeps the operator from taking something, and when it is tried again."""

import random
from typing import Final

from waypost.base.backoff import delay_ms
from waypost.domain.outcome import Again, Unavailable

# fmt: off
SCHEDULES_S: Final = {  # Source: operator's facts 5.2, 5.3, 8. Which code is which row: `operators/cloud/codes.py`
    # what keeps it       waits in seconds; the last repeats
    Again.NOT_REACHED:   (1, 2, 5, 10, 30, 60),
    Again.OUTAGE:        (1, 2, 5, 10, 30, 60, 120, 300),
    Again.THROUGHPUT:    (1, 2, 4, 8, 16, 30),
    Again.PAIR:          (1, 4, 16, 64, 256),     # 4^n
    Again.SPAM:          (60, 300, 900, 3600),
    Again.MAINTENANCE:   (10, 20, 30, 60),        # it takes about a minute
    Again.CALLS:         (5, 10, 30, 60, 300),
    Again.ACCOUNT_CALLS: (30, 60, 300, 900),      # counted by the hour
    Again.CREDENTIAL:    (60, 120, 300),          # until somebody puts in a new token
    Again.ONCE:          (1,),                    # tried once more, then final
}
# fmt: on
LONGEST_WISH_S: Final = 3600
"""A longer wish is asked about again after an hour: it may have been a mistake, or be over."""


def wait_ms(outcome: Unavailable, attempt: int, chance: random.Random) -> int:
    """How long to wait before the next try; the operator's own wish, when it is longer, counts.

    Args:
        outcome: of the last try.
        attempt: how many tries there have been.
        chance: where the jitter comes from.
    """
    wait = delay_ms(SCHEDULES_S[outcome.again], attempt, chance)
    wish_s = min(outcome.retry_after_s or 0, LONGEST_WISH_S)
    return max(wait, round(wish_s * 1000))


def one_more_try_ms(chance: random.Random) -> int:
    """How long to wait before the one more try that some refusals are given."""
    return delay_ms(SCHEDULES_S[Again.ONCE], 1, chance)
