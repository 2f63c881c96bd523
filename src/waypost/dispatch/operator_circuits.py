"""Circuits of operator accounts: while an operator is away, its messages wait, and one at a time tests it.

An outage is a state of the operator account, not of each message. Tables: how many failures open a
circuit, and how far apart the probes are. All of this is in memory: after a restart a few messages fail
again, and open it again. Source: decision 0092.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from waypost.base.backoff import delay_ms, travel_due_ms
from waypost.base.clock import Clock
from waypost.base.telemetry.logs import log
from waypost.dispatch.retries import MAX_OPERATOR_RETRY_AFTER_S
from waypost.domain.app import OperatorAccount
from waypost.domain.outcome import OperatorUnavailable, Outcome, OutcomeUncertain, RetryReason
from waypost.domain.wait_reasons import WaitReason
from waypost.queue.concurrency_groups import MayStart
from waypost.queue.job import Job, NotBefore
from waypost.store.queue.job_subjects import SubjectKind


@dataclass(frozen=True, slots=True)
class OpenThreshold:
    """The number of failures in a row that open a circuit, and of messages that they concern at least.

    Several messages where the cause may be the message itself.
    """

    failures: int
    messages: int


# fmt: off
OPEN_THRESHOLDS: Final = {  # Source: decision 0092. Any other outcome shows that the operator is there
    # cause; None: uncertain         failures, of messages
    RetryReason.NOT_REACHED: OpenThreshold(3,  1),
    RetryReason.OUTAGE:      OpenThreshold(10, 3),
    None:                    OpenThreshold(10, 3),
}
# fmt: on

OPERATOR_PROBE_DELAYS_S: Final = (0.25, 0.5, 1, 2, 3)
"""How long a circuit stays open, by the number of failed probes; the last one repeats."""

STABLE_MS: Final = 10_000
"""A circuit that was closed for less continues its delays when it opens again: the operator is not stable."""

PROBE_TIMEOUT_MS: Final = 10_000
"""A probe without an outcome after this time does not keep another from being sent."""

PROBE_TURN_MS: Final = 200
"""For so long a probe is left to other sources than the one whose probe failed: the cause may be the source."""

ROUTE_CHECK_MS: Final = 5_000
"""Interval at which a job of each waiting source is let through, not to be sent: its account may have been changed."""

TRAVEL_CHECK_MS: Final = 60_000
"""The same while the clock is being advanced; longer where the grid is coarser."""

EXPIRED_AT_ONCE: Final = 48
"""How many more are let through when one of them is found to have waited for all its lifetime."""


class OperatorCircuitState(StrEnum):
    """The state of one operator account's circuit."""

    CLOSED = "closed"  # messages are sent
    OPEN = "open"  # nothing is sent before a time
    HALF_OPEN = "half-open"  # one message tests it


@dataclass(slots=True)
class OperatorCircuit:
    """The circuit of one operator account.

    Attributes:
        failures: in a row.
        failed_positions: of the jobs that failed; as many as are needed to open it.
        probes: how often an open circuit was tested and failed.
        until_ms: while it is open, when it may be tested.
        since_ms: when it was opened.
        closed_ms: when it was closed last.
        probe_position: the position of the job that tests it; None without one.
        probe_ms: when that was started.
        probe_group: the group of the last probe that failed.
        cause: of the last failure.
        check_due_ms: the groups that wait, with the time when a job of each is let through to find its route.
        checks_left: how many more jobs of a group are let through at once.
    """

    state: OperatorCircuitState = OperatorCircuitState.CLOSED
    failures: int = 0
    failed_positions: set[int] = field(default_factory=set[int])
    probes: int = 0
    until_ms: int = 0
    since_ms: int = 0
    closed_ms: int | None = None
    probe_position: int | None = None
    probe_ms: int = 0
    probe_group: str | None = None
    cause: OperatorUnavailable = field(default_factory=lambda: OperatorUnavailable(""))
    check_due_ms: dict[str, int] = field(default_factory=dict[str, int])
    checks_left: dict[str, int] = field(default_factory=dict[str, int])

    def blocked_until_ms(self, group: str, now_ms: int) -> int | None:
        """Return until when nothing of a group is sent; None if one of its jobs may test the circuit."""
        if self.state is OperatorCircuitState.HALF_OPEN:
            timeout_ms = self.probe_ms + PROBE_TIMEOUT_MS
            return timeout_ms if now_ms < timeout_ms else None
        until_ms = self.until_ms
        if self.probe_group == group and self.check_due_ms.keys() - {group}:
            until_ms += PROBE_TURN_MS
        return until_ms if now_ms < until_ms else None

    def end_probe(self, until_ms: int) -> None:
        """Wait for the next probe."""
        self.state, self.probe_position, self.until_ms = OperatorCircuitState.OPEN, None, until_ms

    def take_check(self, group: str, now_ms: int, *, is_travelling: bool) -> bool:
        """True if a job of a waiting group is let through now, only to find its route and its age."""
        if self.checks_left.get(group, 0) > 0:
            self.checks_left[group] -= 1
            return True
        next_ms = now_ms + ROUTE_CHECK_MS
        if is_travelling:
            next_ms = travel_due_ms(now_ms + TRAVEL_CHECK_MS, now_ms - self.since_ms)
        if now_ms < self.check_due_ms.setdefault(group, next_ms):
            return False
        self.check_due_ms[group] = next_ms
        return True

    def record_failure(self, job: Job, threshold: OpenThreshold, now_ms: int) -> bool:
        """Count a failure; return True if it opens the circuit."""
        self.failures += 1
        if len(self.failed_positions) < threshold.messages:
            self.failed_positions.add(job.position)
        is_closed = self.state is OperatorCircuitState.CLOSED
        if not is_closed or self.failures < threshold.failures or len(self.failed_positions) < threshold.messages:
            return False
        if self.closed_ms is None or now_ms - self.closed_ms >= STABLE_MS:
            self.probes, self.since_ms = 0, now_ms
        return True

    def close(self, now_ms: int) -> list[str]:
        """Close it, and return the groups that were made to wait."""
        groups = list(self.check_due_ms)
        self.state, self.closed_ms = OperatorCircuitState.CLOSED, now_ms
        self.probe_position = self.probe_group = None
        self.check_due_ms.clear()
        self.checks_left.clear()
        return groups


class OperatorCircuits:
    """The circuits of all operator accounts that have failed, in one process.

    Args:
        clock: its `now_ms` decides what is due.
        chance: where the jitter comes from.
        pace: decides whether a message may be sent while its operator is there.
        clear_not_before: lets a group be claimed from at once.
    """

    def __init__(
        self, clock: Clock, chance: random.Random, *, pace: MayStart, clear_not_before: Callable[[str], None]
    ) -> None:
        self._clock = clock
        self._chance = chance
        self._pace = pace
        self._clear_not_before = clear_not_before
        self._circuits: dict[OperatorAccount, OperatorCircuit] = {}
        self._accounts: dict[str, OperatorAccount] = {}  # by group, as it was last found
        self._is_travelling = False
        self._log = log("dispatch")

    def may_start(self, job: Job, now_ms: int, in_flight: int) -> NotBefore | None:
        """Return None to start a job, or how long its group waits; a job that is started may be only a probe."""
        circuit = self._open_circuit(job)
        if circuit is None or circuit.probe_position == job.position:
            return self._pace(job, now_ms, in_flight)
        group = job.concurrency_group
        if circuit.take_check(group, now_ms, is_travelling=self._is_travelling):
            return None
        until_ms = circuit.blocked_until_ms(group, now_ms)
        if until_ms is not None:
            check_ms = circuit.check_due_ms[group]
            return NotBefore(min(until_ms, check_ms), WaitReason.OPERATOR_AWAY, whole_group=True)
        wait = self._pace(job, now_ms, in_flight)
        if wait is None:
            circuit.state = OperatorCircuitState.HALF_OPEN
            circuit.probe_position, circuit.probe_ms = job.position, now_ms
        return wait

    def blocking_cause(self, job: Job, account: OperatorAccount) -> OperatorUnavailable | None:
        """Return why a message of this account is not sent now; None where it is, perhaps as a probe.

        The account of the job's group is noted: the next of the group are not even claimed.
        """
        group = job.concurrency_group
        previous = self._accounts.get(group)
        if previous is not account:
            self._accounts[group] = account
            if previous is not None and previous != account:
                self._drop_group(previous, group)
        circuit = self._open_circuit(job)
        return None if circuit is None or circuit.probe_position == job.position else circuit.cause

    def is_open(self, account: OperatorAccount) -> bool:
        """True while messages of an account wait for its operator."""
        circuit = self._circuits.get(account)
        return circuit is not None and circuit.state is not OperatorCircuitState.CLOSED

    def record_outcome(self, job: Job, account: OperatorAccount, outcome: Outcome) -> None:
        """Record what a call to the operator for a message has shown of the operator."""
        match outcome:
            case OperatorUnavailable(retry_reason=reason) if reason in OPEN_THRESHOLDS:
                self._record_failure(job, account, outcome, OPEN_THRESHOLDS[reason])
            case OutcomeUncertain(text=text):
                self._record_failure(job, account, OperatorUnavailable(text), OPEN_THRESHOLDS[None])
            case _:
                self._record_response(account)

    def release(self, job: Job) -> None:
        """Note that a job has ended; if it was a probe without an outcome, another may be sent soon."""
        circuit = self._open_circuit(job)
        if circuit is not None and circuit.probe_position == job.position:
            circuit.end_probe(self._next_probe_ms(circuit))
            self._wake(circuit)

    def expect_expired(self, job: Job) -> None:
        """Let more jobs of a group through, because one has waited for all its lifetime: others may have, too."""
        circuit = self._open_circuit(job)
        if circuit is not None and not circuit.checks_left.get(job.concurrency_group):
            circuit.checks_left[job.concurrency_group] = EXPIRED_AT_ONCE
            self._clear_not_before(job.concurrency_group)

    def set_travelling(self, is_travelling: bool) -> None:
        """Note that the clock is being advanced, or no longer: then operators that are away are tested again."""
        self._is_travelling = is_travelling
        for circuit in self._circuits.values():
            if not is_travelling and circuit.state is OperatorCircuitState.OPEN:
                circuit.until_ms = self._clock.now_ms()
                self._wake(circuit)

    def _open_circuit(self, job: Job) -> OperatorCircuit | None:
        if not self._circuits or job.subject.kind is not SubjectKind.MESSAGE:
            return None
        account = self._accounts.get(job.concurrency_group)
        circuit = None if account is None else self._circuits.get(account)
        return circuit if circuit is not None and circuit.state is not OperatorCircuitState.CLOSED else None

    def _record_failure(
        self, job: Job, account: OperatorAccount, cause: OperatorUnavailable, threshold: OpenThreshold
    ) -> None:
        circuit = self._circuits.get(account)
        if circuit is None:
            circuit = self._circuits[account] = OperatorCircuit()
        circuit.cause = cause
        now_ms = self._clock.now_ms()
        if circuit.record_failure(job, threshold, now_ms):
            self._log.warning("the operator is away: its messages wait", account=account.id, cause=cause.text)
        elif circuit.probe_position != job.position:
            return  # it was started before the circuit opened, or does not open it
        circuit.probes += 1
        circuit.probe_group = job.concurrency_group
        retry_after_ms = round(1000 * min(cause.retry_after_s or 0, MAX_OPERATOR_RETRY_AFTER_S))
        circuit.end_probe(max(self._next_probe_ms(circuit), now_ms + retry_after_ms))
        self._wake(circuit)

    def _record_response(self, account: OperatorAccount) -> None:
        circuit = self._circuits.get(account)
        if circuit is None:
            return
        circuit.failures = 0
        circuit.failed_positions.clear()
        if circuit.state is OperatorCircuitState.CLOSED:
            return
        now_ms = self._clock.now_ms()
        self._log.info("the operator is back", account=account.id, away_ms=now_ms - circuit.since_ms)
        for group in circuit.close(now_ms):
            self._clear_not_before(group)

    def _next_probe_ms(self, circuit: OperatorCircuit) -> int:
        now_ms = self._clock.now_ms()
        due_ms = now_ms + delay_ms(OPERATOR_PROBE_DELAYS_S, max(1, circuit.probes), self._chance)
        return travel_due_ms(due_ms, now_ms - circuit.since_ms) if self._is_travelling else due_ms

    def _wake(self, circuit: OperatorCircuit) -> None:
        """Let the groups that wait be claimed from at once: each gets its new time."""
        for group in circuit.check_due_ms:
            self._clear_not_before(group)

    def _drop_group(self, account: OperatorAccount, group: str) -> None:
        """Note that a group is another account's now; an account that has none left was changed or is unused."""
        circuit = self._circuits.get(account)
        if circuit is not None:
            circuit.check_due_ms.pop(group, None)
            circuit.checks_left.pop(group, None)
        if account not in self._accounts.values():
            self._circuits.pop(account, None)
