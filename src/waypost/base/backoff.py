"""Retry schedules as data."""

import random
from collections.abc import Sequence
from typing import Final

TRAVEL_SHARE: Final = 8
"""While the clock is being advanced: probes are an eighth of the time apart for which it has failed."""
TRAVEL_MIN_MS: Final = 60_000
TRAVEL_FIRST_MS: Final = 30_000
"""The grid in the first minutes, in which the usual delays are a few seconds."""
TRAVEL_SECOND_MS: Final = 1_000
"""The grid of the first half minute."""


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


def travel_grid_ms(failing_ms: int) -> int | None:
    """Return the grid of probes while the clock is being advanced, for what has failed for so long.

    A moved clock passes hours in which nothing outside can change. The grid is the same for all receivers and
    operators, so that their probes share the stops of the clock: half a minute at first, and after eight minutes a
    minute doubled as often as fits into an eighth of the time. None: the usual delays. Source: decision 0066.
    """
    if failing_ms < TRAVEL_FIRST_MS:
        return None
    if failing_ms < TRAVEL_SHARE * TRAVEL_MIN_MS:
        return TRAVEL_FIRST_MS
    return TRAVEL_MIN_MS << (failing_ms // (TRAVEL_SHARE * TRAVEL_MIN_MS)).bit_length() - 1


def travel_due_ms(due_ms: int, failing_ms: int) -> int:
    """Return when an attempt is due while the clock is being advanced: at a point of the grid, or a whole second.

    Args:
        due_ms: by the usual delays.
        failing_ms: for how long it has failed.
    """
    grid_ms = travel_grid_ms(failing_ms) or TRAVEL_SECOND_MS
    return -(-due_ms // grid_ms) * grid_ms
