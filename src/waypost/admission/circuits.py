"""Circuits: whether an operator account or a receiver is called at all, by its recent responses.

Tables: the states of a circuit, the events that move it from one to another, and the plans of operator accounts and
of receivers: how many failures open a circuit, and how far apart its probes are. A circuit lives in memory; after a
restart a few calls fail again, and open it again. Source: decisions 0042, 0092, 0119.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from waypost.base.backoff import delay_ms, travel_due_ms
from waypost.domain.outcome import RetryReason


class CircuitState(StrEnum):
    """The state of a circuit."""

    CLOSED = "closed"  # everything is sent
    OPEN = "open"  # nothing is sent before a time
    HALF_OPEN = "half-open"  # one job tests it
    PAUSED = "paused"  # nothing is sent before a person resumes it; of receivers only


class CircuitEvent(StrEnum):
    """The events that move a circuit."""

    SUCCEEDED = "a call succeeded"
    TRIPPED = "as many failed in a row as open the circuit"
    PROBE_FAILED = "the one that tested a half-open circuit failed"
    RETRY_AFTER = "the receiver sent Retry-After"
    DUE = "the time to test it has come"
    PAUSED = "the subscription was paused"
    RESUMED = "it was resumed, has another URL, or someone requested a retry"


# fmt: off
CIRCUIT_TRANSITIONS: Final = {  # an event without a row leaves a circuit as it is
    (CircuitState.CLOSED,    CircuitEvent.TRIPPED):      CircuitState.OPEN,
    (CircuitState.CLOSED,    CircuitEvent.RETRY_AFTER):  CircuitState.OPEN,
    (CircuitState.CLOSED,    CircuitEvent.PAUSED):       CircuitState.PAUSED,
    (CircuitState.OPEN,      CircuitEvent.DUE):          CircuitState.HALF_OPEN,
    (CircuitState.OPEN,      CircuitEvent.SUCCEEDED):    CircuitState.CLOSED,  # of a call that was begun before
    (CircuitState.OPEN,      CircuitEvent.RESUMED):      CircuitState.HALF_OPEN,
    (CircuitState.OPEN,      CircuitEvent.PAUSED):       CircuitState.PAUSED,
    (CircuitState.HALF_OPEN, CircuitEvent.SUCCEEDED):    CircuitState.CLOSED,
    (CircuitState.HALF_OPEN, CircuitEvent.PROBE_FAILED): CircuitState.OPEN,
    (CircuitState.HALF_OPEN, CircuitEvent.RETRY_AFTER):  CircuitState.OPEN,
    (CircuitState.HALF_OPEN, CircuitEvent.PAUSED):       CircuitState.PAUSED,
    (CircuitState.PAUSED,    CircuitEvent.RESUMED):      CircuitState.HALF_OPEN,
}
# fmt: on


@dataclass(frozen=True, slots=True)
class OpenThreshold:
    """The number of failures in a row that open a circuit, and of jobs that they concern at least.

    Several jobs where the cause may be the job itself.
    """

    failures: int
    jobs: int


@dataclass(frozen=True, slots=True)
class CircuitPlan:
    """The circuits of one kind."""

    # by the cause of a failure; None: uncertain, or of any cause
    thresholds: Mapping[RetryReason | None, OpenThreshold]
    # how long a circuit stays open, by the number of failed probes; the last one repeats
    probe_delays_s: Sequence[float]
    stable_ms: int  # a circuit that was closed for less continues its delays when it opens again
    probe_timeout_ms: int  # a probe without an outcome after this time does not keep another from being sent
    retry_after_opens: bool  # one failure with a `Retry-After` opens it


FREQUENT_PROBES: Final = 75
"""Number of probes of a receiver at a few seconds from each other: for five minutes, longer than a restart takes."""

OPERATOR_CIRCUITS: Final = CircuitPlan(  # Source: decision 0092. Any other outcome shows that the operator is there
    thresholds={
        RetryReason.NOT_REACHED: OpenThreshold(failures=3, jobs=1),
        RetryReason.OUTAGE: OpenThreshold(failures=10, jobs=3),
        None: OpenThreshold(failures=10, jobs=3),
    },
    probe_delays_s=(0.25, 0.5, 1, 2, 3),
    stable_ms=10_000,
    probe_timeout_ms=10_000,
    retry_after_opens=False,
)
RECEIVER_CIRCUITS: Final = CircuitPlan(  # Source: decision 0042
    thresholds={None: OpenThreshold(failures=3, jobs=1)},
    probe_delays_s=(1, 2, *FREQUENT_PROBES * (4,), 8, 16, 32, 60),
    stable_ms=0,
    probe_timeout_ms=60_000,  # longer than an attempt can take
    retry_after_opens=True,
)


@dataclass(slots=True)
class Circuit:
    """The circuit of one operator account or receiver."""

    plan: CircuitPlan
    state: CircuitState = CircuitState.CLOSED
    failures: int = 0  # in a row
    # of the jobs that failed; as many as are needed to open it
    failed_positions: set[int] = field(default_factory=set[int])
    probes: int = 0  # how often an open circuit was tested and failed
    until_ms: int = 0  # while it is open, when it may be tested
    travel_until_ms: int = 0  # the same while the clock is being advanced: never before `until_ms`
    failing_since_ms: int | None = None  # nothing has succeeded since then; None while it succeeds
    succeeded_ms: int = 0  # when a call last succeeded
    closed_ms: int = 0  # when it was last closed after it had been open
    probe_position: int | None = None  # the position of the job that tests it; None without one
    probe_ms: int = 0  # when that was started
    is_pause: bool = False  # it is open because of a `Retry-After`

    def apply(self, event: CircuitEvent) -> CircuitState:
        """Move to the state that the table gives, and return it."""
        self.state = CIRCUIT_TRANSITIONS.get((self.state, event), self.state)
        return self.state

    def blocked_until_ms(self, now_ms: int, *, is_travelling: bool = False) -> int | None:
        """Return until when nothing is sent; None where a job may start, in another state than closed as a probe.

        While it is paused, this is the time until which it was open before.
        """
        if self.state is CircuitState.CLOSED:
            return None
        if self.state is not CircuitState.HALF_OPEN and now_ms < self.test_due_ms(is_travelling=is_travelling):
            return self.test_due_ms(is_travelling=is_travelling)
        timeout_ms = self.probe_ms + self.plan.probe_timeout_ms
        return timeout_ms if self.probe_position is not None and now_ms < timeout_ms else None

    def test_due_ms(self, *, is_travelling: bool) -> int:
        """Return when it may be tested, while it is open."""
        return max(self.until_ms, self.travel_until_ms) if is_travelling else self.until_ms

    def begin_probe(self, position: int, now_ms: int) -> None:
        """Note the job that tests it; one that is open and due becomes half-open."""
        self.probe_position, self.probe_ms = position, now_ms
        if now_ms >= self.until_ms:
            self.apply(CircuitEvent.DUE)

    def record_success(self, now_ms: int) -> bool:
        """Record that a call succeeded; return True if this closes it."""
        self.failures = self.travel_until_ms = 0
        self.failed_positions.clear()
        self.succeeded_ms, self.failing_since_ms = now_ms, None
        if self.state is CircuitState.CLOSED or self.is_pausing(now_ms):  # the call was begun before the pause
            return False
        if self.apply(CircuitEvent.SUCCEEDED) is not CircuitState.CLOSED:
            return False
        self.closed_ms, self.probe_position, self.is_pause = now_ms, None, False
        return True

    def record_failure(
        self,
        position: int,
        now_ms: int,
        chance: random.Random,
        *,
        cause: RetryReason | None = None,
        retry_after_ms: int = 0,
    ) -> CircuitEvent | None:
        """Record that a call failed; return what this does to the circuit.

        Args:
            position: of its job.
            now_ms: by the clock that due times follow.
            chance: where the jitter comes from.
            cause: decides how many failures open it.
            retry_after_ms: as the other side requires; 0 without it.
        """
        threshold = self.plan.thresholds[cause]
        self.failures += 1
        if len(self.failed_positions) < threshold.jobs:
            self.failed_positions.add(position)
        if self.failing_since_ms is None:
            self.failing_since_ms = now_ms
        if self.state is CircuitState.CLOSED and now_ms - self.closed_ms >= self.plan.stable_ms:
            self.probes = 0
        if retry_after_ms and self.plan.retry_after_opens:
            self.until_ms = max(self.until_ms, now_ms + retry_after_ms)
            self.is_pause = True
            self.apply(CircuitEvent.RETRY_AFTER)
            return CircuitEvent.RETRY_AFTER
        if self.state is CircuitState.HALF_OPEN and self.probe_position == position:
            event = CircuitEvent.PROBE_FAILED
        elif (
            self.state is CircuitState.CLOSED
            and self.failures >= threshold.failures
            and len(self.failed_positions) >= threshold.jobs
        ):
            event = CircuitEvent.TRIPPED
        else:
            return None  # it was started before the circuit opened, or does not open it
        self.probes += 1
        wait_ms = max(delay_ms(self.plan.probe_delays_s, self.probes, chance), retry_after_ms)
        self.until_ms = now_ms + wait_ms
        self.travel_until_ms = travel_due_ms(self.until_ms, now_ms - self.failing_since_ms)
        self.probe_position, self.is_pause = None, False
        self.apply(event)
        return event

    def is_pausing(self, now_ms: int) -> bool:
        """True until the time that a `Retry-After` requires: whatever responds meanwhile was sent before it."""
        return self.is_pause and self.state is CircuitState.OPEN and now_ms < self.until_ms

    def restart(self) -> None:
        """Let the next job test it, as if nothing had failed: it is another URL, or was resumed."""
        self.failures = self.probes = 0
        self.apply(CircuitEvent.RESUMED)

    def restore(self, now_ms: int, *, failing_since_ms: int | None, retry_after_until_ms: int | None) -> None:
        """Continue from what the store has of an earlier process."""
        self.failing_since_ms = failing_since_ms
        if retry_after_until_ms is not None and retry_after_until_ms > now_ms:
            self.state, self.until_ms, self.is_pause = CircuitState.OPEN, retry_after_until_ms, True
        elif failing_since_ms is not None:
            self.state = CircuitState.HALF_OPEN
