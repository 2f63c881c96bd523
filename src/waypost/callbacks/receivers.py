"""The receiver of one subscription as this process knows it: its circuit, and the callbacks in flight to it."""

from dataclasses import dataclass, field
from typing import Final

from waypost.callbacks.circuits import Came, Circuit, State
from waypost.domain.callbacks.subscription import Subscription

SLOW_MS: Final = 1_000
"""A receiver that takes so long to respond is slow."""

LOOK_MS: Final = 2_000
"""Minimum interval between two checks of a subscription that gets no callbacks, when it may have changed."""

PAUSED_MS: Final = 3_600_000
"""How long the callbacks of a paused subscription wait before it is checked, if no change is reported."""


@dataclass(slots=True)
class Address:
    """The receiver of one subscription.

    Attributes:
        is_known: whether the subscription has been read.
        was_slow: its last response took long.
        began_ms: the callbacks in flight to it, by position, with the real time when each was started;
            the oldest first.
        replays: which of these are replays.
        probe: the position of the callback that tests a circuit that is not closed; None without one.
        heard: the subscription may have changed since it was read.
        looked_ms: when a job was last let through to read the subscription.
        sure_from: only reads from this one on know that it was paused.
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
        """True if its last response took long, or one takes long now, or may: this is unknown before a probe."""
        if self.was_slow or self.circuit.state is not State.CLOSED:
            return True
        oldest_ms = next(iter(self.began_ms.values()), None)
        return oldest_ms is not None and real_ms - oldest_ms >= SLOW_MS

    def held_until_ms(self, now_ms: int, *, is_travelling: bool = False) -> int | None:
        """Return until when nothing is sent there, by the state of its circuit; None where a callback may start."""
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
        """Return until when nothing is sent there; None to let one job through to read the subscription."""
        if not self.heard:
            return until_ms
        if self.probe is not None:
            return now_ms + LOOK_MS
        check_ms = self.looked_ms + LOOK_MS
        return min(check_ms, until_ms) if check_ms > now_ms else None

    def let_through(self, position: int, now_ms: int) -> None:
        """Start a callback, or let its job through to read whether it may start."""
        if self.circuit.state is State.OPEN and now_ms >= self.circuit.until_ms:
            self.circuit.step(Came.DUE)
        if not self.is_known or self.circuit.state is not State.CLOSED:
            self.probe = position
            if self.circuit.state in (State.OPEN, State.PAUSED):
                self.heard, self.looked_ms = False, now_ms

    def may_be_called(self, position: int) -> bool:
        """True if a callback that was let through may be posted after all: much may have happened since."""
        if self.circuit.state is State.HALF_OPEN:
            return self.probe == position
        return self.circuit.state is State.CLOSED

    def see(self, subscription: Subscription | None, now_ms: int, look: int) -> None:
        """Update the receiver from its subscription.

        Args:
            subscription: None where it was deleted; then all that waits may start, to be ended.
            now_ms: by the clock that due times follow.
            look: the number of the read; one that was begun before it was paused does not count.
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
