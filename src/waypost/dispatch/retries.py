"""Table: which failure of the operator is tried again, and when."""

import random
from typing import Final

from waypost.base.backoff import delay_ms
from waypost.domain.outcome import Unavailable

# fmt: off
_OUTAGE = (1, 2, 5, 10, 30, 60, 120, 300)
SCHEDULES_S: Final = {  # Source: operator's facts 5.2, 5.3, 8. Codes not named here follow the outage's.
    # code   waits in seconds; the last repeats
    131056: (1, 4, 16, 64, 256),   # pair rate: 4^n
    130429: (1, 2, 4, 8, 16, 30),  # throughput
    4:      (5, 10, 30, 60, 300),
    80007:  (30, 60, 300, 900),
    80008:  (30, 60, 300, 900),
    131048: (60, 300, 900, 3600),  # spam rate
    131057: (10, 20, 30, 60),      # maintenance of about a minute
    190:    (60, 120, 300),        # until somebody puts in a new token
    0:      (1, 2, 5, 10, 30, 60), # not reached
}
# fmt: on


def wait_ms(outcome: Unavailable, attempt: int, chance: random.Random) -> int:
    """How long to wait before the next try; the operator's own wish, when it is longer, counts."""
    wait = delay_ms(SCHEDULES_S.get(outcome.code, _OUTAGE), attempt, chance)
    return max(wait, round((outcome.retry_after_s or 0) * 1000))
