"""One subscription's address as this process has lately met it: its circuit, and what is on its way there."""

from dataclasses import dataclass, field
from typing import Final

from waypost.callbacks.circuits import Came, Circuit, State
from waypost.domain.callbacks.subscription import Subscription

SLOW_MS: Final = 1_000
"""An address that takes so long to answer is slow."""

LOOK_MS: Final = 2_000
"""How often at most a subscription that is not called is looked at, when it may have changed."""


PAUSED_MS: Final = 3_600_000
"""How long the callbacks of a paused subscription wait before it is looked at, if nothing is heard of it."""


@dataclass(slots=True)
class Address:
    """Where the callbacks of one subscription go.

    Attributes:
        is_known: whether the subscription has been looked at.
        was_slow: its last answer took long.
        began_ms: what is on its way there, by position, with the real time when it was let go;
            the oldest first.
        replays: which of these are replays.
        probe: the position of what tries a circuit that is not closed; None where nothing does.
        heard: the subscription may have changed since it was looked at.
        looked_ms: when it was let through last to be looked at.
        sure_from: only looks from this one on know that it was paused.
    """

    circuit: Circuit = field(default_factory=Circuit)
    is_known: bool = False
    url: str = ""
    was_slow: bool = False
    began_ms: dict[int, int] = field(default_factory=dict[int, int])
    replays: set[int] = field(default_factory=set[int])
    probe: int | None = None
    heard: bool = False
    looked_ms: int = 0
    sure_from: int = 0

    def is_slow(self, real_ms: int) -> bool:
        """Whether it took long to answer last, or takes long now, or may: nobody knows before a probe."""
        if self.was_slow or self.circuit.state is not State.CLOSED:
            return True
        oldest_ms = next(iter(self.began_ms.values()), None)
        return oldest_ms is not None and real_ms - oldest_ms >= SLOW_MS

    def held_until_ms(self, now_ms: int, *, is_travelling: bool = False) -> int | None:
        """Until when nothing goes there, as far as its circuit says; None where something may go."""
        open_until_ms = self.circuit.until_ms
        if is_travelling:
            open_until_ms = max(open_until_ms, self.circuit.travel_until_ms)
        match self.circuit.state:
            case State.CLOSED:
                return now_ms + LOOK_MS if not self.is_known and self.probe is not None else None
            case State.HALF_OPEN:
                return None if self.probe is None else now_ms + LOOK_MS
            case State.OPEN if now_ms >= open_until_ms:
                return None if self.probe is None else now_ms + LOOK_MS
            case State.OPEN:
                return self._until_a_look(now_ms, open_until_ms)
            case State.PAUSED:
                return self._until_a_look(now_ms, now_ms + PAUSED_MS)

    def _until_a_look(self, now_ms: int, until_ms: int) -> int | None:
        """Until when it is held where it is not called; None to let one through to look at it."""
        if not self.heard:
            return until_ms
        if self.probe is not None:
            return now_ms + LOOK_MS
        look_ms = self.looked_ms + LOOK_MS
        return min(look_ms, until_ms) if look_ms > now_ms else None

    def let_through(self, position: int, now_ms: int) -> None:
        """Something goes there, or is let through to look whether it may."""
        if self.circuit.state is State.OPEN and now_ms >= self.circuit.until_ms:
            self.circuit.step(Came.DUE)
        if not self.is_known or self.circuit.state is not State.CLOSED:
            self.probe = position
            if self.circuit.state in (State.OPEN, State.PAUSED):
                self.heard, self.looked_ms = False, now_ms

    def may_be_called(self, position: int) -> bool:
        """Whether what was let through is to be posted after all: much may have happened since."""
        if self.circuit.state is State.HALF_OPEN:
            return self.probe == position
        return self.circuit.state is State.CLOSED

    def see(self, subscription: Subscription | None, now_ms: int, look: int) -> None:
        """The subscription as it was found.

        Args:
            subscription: None where it was deleted; then all that waits may go, to be ended.
            now_ms: by the clock that rules follow.
            look: the number of the look; one that was begun before it was paused does not count.
        """
        if subscription is None:
            self.is_known, self.circuit = True, Circuit()
            return
        if not self.is_known:
            self.is_known, self.url = True, subscription.url
            self.circuit.begin(
                now_ms, failing_since_ms=subscription.failing_since_ms, asked_until_ms=subscription.asked_until_ms
            )
        if look < self.sure_from:
            return
        if not subscription.is_told:
            self.circuit.step(Came.PAUSED)
        elif self.circuit.state is State.PAUSED:
            self.circuit.failing_since_ms = subscription.failing_since_ms
            self._begin_anew()
        elif subscription.url != self.url:
            self._begin_anew()
        self.url = subscription.url

    def _begin_anew(self) -> None:
        self.circuit.failures = self.circuit.probes = 0
        self.was_slow = False
        self.circuit.step(Came.RESUMED)
