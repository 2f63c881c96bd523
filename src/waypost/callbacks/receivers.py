"""The receiver of one subscription as this process knows it: its circuit, and the callbacks in flight to it."""

from dataclasses import dataclass, field
from typing import Final

from waypost.callbacks.circuits import Circuit, CircuitEvent, CircuitState
from waypost.domain.callbacks import Subscription
from waypost.domain.wait_reasons import WaitReason

SLOW_RESPONSE_MS: Final = 1_000
"""A receiver that takes so long to respond is slow."""

SUBSCRIPTION_CHECK_MS: Final = 2_000
"""Minimum interval between two checks of a subscription that gets no callbacks, when it may have changed."""

UNREPORTED_CHECK_MS: Final = 3_600_000
"""How long a subscription's callbacks wait before it is checked, if no change is reported: a report may be lost."""


@dataclass(slots=True)
class CallbackReceiver:
    """The receiver of one subscription.

    Attributes:
        is_known: whether the subscription has been read.
        has_responded: to this process, at its current URL.
        was_slow: its last response took long.
        started_ms: the callbacks in flight to it, by position, with the real time when each was started;
            the oldest first.
        replays: which of these are replays.
        probe_position: the position of the callback that tests a circuit that is not closed; None without one.
        may_have_changed: the subscription may have changed since it was read.
        checked_ms: when a job was last let through to read the subscription; 0: the next one is at once.
        blocked_since_ms: no job has been let through since then; 0: none was held back.
        pause_known_from: only reads from this one on know that it was paused.
        retry_requests: how many requests to call it at once have been followed.
        has_waiting_group: its jobs, or its replays, wait for a slot or for its circuit.
    """

    circuit: Circuit = field(default_factory=Circuit)
    is_known: bool = False
    url: str = ""
    has_responded: bool = False
    was_slow: bool = False
    started_ms: dict[int, int] = field(default_factory=dict[int, int])
    replays: set[int] = field(default_factory=set[int])
    probe_position: int | None = None
    may_have_changed: bool = False
    checked_ms: int = 0
    blocked_since_ms: int = 0
    pause_known_from: int = 0
    retry_requests: int = 0
    has_waiting_group: bool = False

    @property
    def wait_reason(self) -> WaitReason:
        """Why callbacks wait where its circuit lets none start."""
        match self.circuit.state:
            case CircuitState.CLOSED:
                return WaitReason.RECEIVER_NEW
            case CircuitState.PAUSED:
                return WaitReason.SUBSCRIPTION_PAUSED
            case CircuitState.OPEN | CircuitState.HALF_OPEN:
                return WaitReason.RECEIVER_PAUSE if self.circuit.is_paused_by_receiver else WaitReason.RECEIVER_FAILING

    def is_slow(self, real_ms: int) -> bool:
        """True if its last response took long, or one takes long now, or may: this is unknown before a probe."""
        if self.was_slow or self.circuit.state is not CircuitState.CLOSED:
            return True
        oldest_ms = next(iter(self.started_ms.values()), None)
        return oldest_ms is not None and real_ms - oldest_ms >= SLOW_RESPONSE_MS

    def blocked_until_ms(self, now_ms: int, *, is_travelling: bool = False) -> int | None:
        """Return until when nothing is sent there, by the state of its circuit; None where a callback may start."""
        open_until_ms = self.circuit.until_ms
        if is_travelling:
            open_until_ms = max(open_until_ms, self.circuit.travel_until_ms)
        match self.circuit.state:
            case CircuitState.CLOSED:
                return now_ms + SUBSCRIPTION_CHECK_MS if not self.is_known and self.probe_position is not None else None
            case CircuitState.HALF_OPEN:
                return None if self.probe_position is None else now_ms + SUBSCRIPTION_CHECK_MS
            case CircuitState.OPEN if now_ms >= open_until_ms:
                return None if self.probe_position is None else now_ms + SUBSCRIPTION_CHECK_MS
            case CircuitState.OPEN:
                return self._check_until_ms(now_ms, open_until_ms, is_travelling=is_travelling)
            case CircuitState.PAUSED:
                return self._check_until_ms(now_ms, now_ms + UNREPORTED_CHECK_MS, is_travelling=is_travelling)

    def _check_until_ms(self, now_ms: int, until_ms: int, *, is_travelling: bool) -> int | None:
        """Return until when nothing is sent there; None to let one job through to read the subscription."""
        if is_travelling and not self.may_have_changed:
            return until_ms  # a check would be one more stop of the clock
        if self.may_have_changed and self.probe_position is not None:
            return now_ms + SUBSCRIPTION_CHECK_MS
        self.blocked_since_ms = self.blocked_since_ms or now_ms
        check_ms = self.blocked_since_ms + UNREPORTED_CHECK_MS
        if self.may_have_changed:
            check_ms = self.checked_ms + SUBSCRIPTION_CHECK_MS
        return min(check_ms, until_ms) if check_ms > now_ms else None

    def admit(self, position: int, now_ms: int) -> None:
        """Start a callback, or let its job through to read whether it may start."""
        self.blocked_since_ms = 0
        if self.circuit.state is CircuitState.OPEN and now_ms >= self.circuit.until_ms:
            self.circuit.apply(CircuitEvent.DUE)
        if not self.is_known or self.circuit.state is not CircuitState.CLOSED:
            self.probe_position = position
            if self.circuit.state in (CircuitState.OPEN, CircuitState.PAUSED):
                self.may_have_changed, self.checked_ms = False, now_ms

    def may_be_called(self, position: int) -> bool:
        """True if a callback that was let through may be posted after all: much may have happened since."""
        if self.circuit.state is CircuitState.HALF_OPEN:
            return self.probe_position == position
        return self.circuit.state is CircuitState.CLOSED

    def update(self, subscription: Subscription | None, now_ms: int, read_number: int) -> None:
        """Update the receiver from its subscription.

        Args:
            subscription: None where it was deleted; then all that waits may start, to be ended.
            now_ms: by the clock that due times follow.
            read_number: the number of the read; one that was begun before it was paused does not count.
        """
        if subscription is None:
            self.is_known, self.circuit = True, Circuit()
            return
        if not self.is_known:
            self.is_known, self.url, self.retry_requests = True, subscription.url, subscription.retry_requests
            self.circuit.restore(
                now_ms,
                failing_since_ms=subscription.failing_since_ms,
                retry_after_until_ms=subscription.retry_after_until_ms,
            )
        if read_number < self.pause_known_from:
            return
        if not subscription.receives_callbacks:
            self.circuit.apply(CircuitEvent.PAUSED)
        elif self.circuit.state is CircuitState.PAUSED:
            self.circuit.failing_since_ms = subscription.failing_since_ms
            self._restart_circuit()
        elif subscription.url != self.url:
            self._restart_circuit()
        elif subscription.retry_requests > self.retry_requests:
            self.circuit.apply(CircuitEvent.RESUMED)
        self.url = subscription.url
        self.retry_requests = max(self.retry_requests, subscription.retry_requests)

    def _restart_circuit(self) -> None:
        self.circuit.failures = self.circuit.probes = 0
        self.was_slow = self.has_responded = False
        self.circuit.apply(CircuitEvent.RESUMED)
