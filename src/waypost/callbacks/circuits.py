"""Circuits: whether an address is called at all, by how it has been lately.

Tables: the states of a circuit, and what moves it from one to another. A circuit lives in memory.
What has to outlive the process is in the store: since when an address takes nothing, until when its
receiver asked to be left alone, and that it is paused. Source: decision 0042.
"""

import random
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from waypost.base.backoff import delay_ms


class State(StrEnum):
    """Of one subscription's address."""

    CLOSED = "closed"  # it is called
    OPEN = "open"  # it is not called before a time
    HALF_OPEN = "half-open"  # one callback tries it
    PAUSED = "paused"  # it is not called before somebody resumes it


class Came(StrEnum):
    """What moves a circuit."""

    TAKEN = "a callback was taken"
    TRIPPED = "as many in a row were not as open the circuit"
    PROBE_FAILED = "the one that tried a half-open circuit was not"
    ASKED = "the receiver asked to be left alone for a while"
    DUE = "the time has come to try"
    PAUSED = "the subscription was paused"
    RESUMED = "it is paused no longer, or has another address"


FAILING: Final = 3
"""After so many failures in a row a circuit opens."""

PROBES_S: Final = (1, 2, 4, 8, 16, 32, 60)
"""How long a circuit stays open, by how often it was tried in vain; the last one repeats."""

TRAVEL_SHARE: Final = 8
"""While time is moved by hand: tries of an address are an eighth of the time apart for which it has failed."""
TRAVEL_LEAST_MS: Final = 60_000

# fmt: off
STEPS: Final = {  # what is not here leaves a circuit as it is
    (State.CLOSED,    Came.TRIPPED):      State.OPEN,
    (State.CLOSED,    Came.ASKED):        State.OPEN,
    (State.CLOSED,    Came.PAUSED):       State.PAUSED,
    (State.OPEN,      Came.DUE):          State.HALF_OPEN,
    (State.OPEN,      Came.TAKEN):        State.CLOSED,  # of a callback that was begun before
    (State.OPEN,      Came.RESUMED):      State.HALF_OPEN,
    (State.OPEN,      Came.PAUSED):       State.PAUSED,
    (State.HALF_OPEN, Came.TAKEN):        State.CLOSED,
    (State.HALF_OPEN, Came.PROBE_FAILED): State.OPEN,
    (State.HALF_OPEN, Came.ASKED):        State.OPEN,
    (State.HALF_OPEN, Came.PAUSED):       State.PAUSED,
    (State.PAUSED,    Came.RESUMED):      State.HALF_OPEN,
}
# fmt: on


def travel_grid_ms(failing_ms: int) -> int | None:
    """While time is moved by hand: the grid of tries of an address that has failed for so long.

    A moved clock passes hours in which nobody outside can change anything. The grid is the same for
    all addresses, a minute doubled as often as fits, so that their tries share the stops of the clock.
    None: the usual waits, up to eight minutes. Source: decision 0066.
    """
    if failing_ms < TRAVEL_SHARE * TRAVEL_LEAST_MS:
        return None
    return TRAVEL_LEAST_MS << (failing_ms // (TRAVEL_SHARE * TRAVEL_LEAST_MS)).bit_length() - 1


@dataclass(slots=True)
class Circuit:
    """One address's.

    Attributes:
        failures: in a row.
        probes: how often an open circuit was tried in vain.
        until_ms: while it is open, when it may be tried.
        travel_until_ms: the same while time is moved by hand: never before `until_ms`.
        taken_ms: when it last took a callback.
        failing_since_ms: it has taken nothing since then; None while it takes.
    """

    state: State = State.CLOSED
    failures: int = 0
    probes: int = 0
    until_ms: int = 0
    travel_until_ms: int = 0
    taken_ms: int = 0
    failing_since_ms: int | None = None

    def step(self, came: Came) -> State:
        """Go where the table says, and give where that is."""
        self.state = STEPS.get((self.state, came), self.state)
        return self.state

    def takes(self, now_ms: int) -> None:
        """A callback was taken."""
        self.failures = self.probes = self.travel_until_ms = 0
        self.taken_ms, self.failing_since_ms = now_ms, None
        self.step(Came.TAKEN)

    def fails(self, now_ms: int, chance: random.Random, *, is_probe: bool, asked_ms: int) -> None:
        """A callback was not taken.

        Args:
            now_ms: by the clock that rules follow.
            chance: where the jitter comes from.
            is_probe: it was let through to try the circuit.
            asked_ms: for how long the receiver asked to be left alone; 0: it did not.
        """
        self.failures += 1
        if self.failing_since_ms is None:
            self.failing_since_ms = now_ms
        if asked_ms:
            self.until_ms = max(self.until_ms, now_ms + asked_ms)
            self.step(Came.ASKED)
        elif is_probe and self.state is State.HALF_OPEN:
            self._stay_away(now_ms, chance, Came.PROBE_FAILED)
        elif self.state is State.CLOSED and self.failures >= FAILING:
            self._stay_away(now_ms, chance, Came.TRIPPED)

    def _stay_away(self, now_ms: int, chance: random.Random, came: Came) -> None:
        self.probes += 1
        self.until_ms = now_ms + delay_ms(PROBES_S, self.probes, chance)
        grid_ms = travel_grid_ms(now_ms - (self.failing_since_ms or now_ms))
        if grid_ms is not None:
            self.travel_until_ms = (now_ms // grid_ms + 1) * grid_ms
        self.step(came)

    def begin(self, now_ms: int, *, failing_since_ms: int | None, asked_until_ms: int | None) -> None:
        """Go on from what the store has of an earlier process."""
        self.failing_since_ms = failing_since_ms
        if asked_until_ms is not None and asked_until_ms > now_ms:
            self.state, self.until_ms = State.OPEN, asked_until_ms
        elif failing_since_ms is not None:
            self.state = State.HALF_OPEN
