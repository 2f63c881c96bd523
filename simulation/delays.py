"""Real delays, at random, where a run on PostgreSQL looks at its server: the steps of a seed must not follow from them.

Real time is the one thing of such a run that no seed decides. A busy machine delays the harness or the server at any
point; this does it on purpose.
"""

import random
import time
from typing import Any, Final

from simulation.postgresql import DatabaseRun

POINTS: Final = (
    DatabaseRun.step,
    DatabaseRun.settle,
    DatabaseRun.wait_ready,
    DatabaseRun.collect_notifications,
    DatabaseRun._are_waiting,
    DatabaseRun._is_in_cycle,
    DatabaseRun._wait_for_lock,
    DatabaseRun._wait_for_end,
)
SHARE: Final = 0.1
"""Of the calls of each."""


def delay_at_random(most_ms: float) -> None:
    """Let calls of each point begin later by up to so many milliseconds; once in a process."""
    sleep, chance = time.sleep, random.SystemRandom()  # the real ones: those of a run are virtual, and of its seed

    def delayed(point: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            if chance.random() < SHARE:
                sleep(chance.random() * most_ms / 1000)
            return point(*args, **options)

        return call

    for point in POINTS:
        setattr(DatabaseRun, point.__name__, delayed(point))
