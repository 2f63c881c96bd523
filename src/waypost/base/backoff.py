"""Retry schedules as data."""

import random
from collections.abc import Sequence


def delay_ms(schedule_s: Sequence[float], attempt: int, random_source: random.Random, jitter: float = 0.2) -> int:
    """Return the wait after attempt number `attempt` (1 is the first), with jitter.

    Args:
        schedule_s: the waits in seconds; the last one repeats.
        attempt: number of attempts made.
        random_source: source of the jitter.
        jitter: 0.2 spreads the wait over plus and minus a fifth.
    """
    wait_s = schedule_s[min(attempt, len(schedule_s)) - 1]
    return round(wait_s * 1000 * (1 + jitter * (2 * random_source.random() - 1)))
