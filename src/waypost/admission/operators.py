"""The admission of outbound jobs: the circuit and slots of their operator account, the slots and pace of their source.

An outage is a state of the operator account, not of each message. While an operator is away, its messages wait, and one
at a time tests it. All of this is in memory. Source: decisions 0092, 0098, 0119.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from waypost.admission.circuits import OPERATOR_CIRCUITS, Circuit, CircuitEvent, CircuitState
from waypost.admission.pacing import Pacer
from waypost.admission.schedules import operator_retry_after_ms, operator_retry_ms
from waypost.admission.slots import OPERATOR_SLOTS, SLOT_RETRY_MS, SLOW_RESPONSE_MS, SlotClass, SlotHolder, Slots
from waypost.base.backoff import travel_due_ms
from waypost.base.clock import Clock
from waypost.base.telemetry.logs import log
from waypost.domain.app import AppRoute, OperatorAccount
from waypost.domain.outcome import OperatorUnavailable, Outcome, OutcomeUncertain
from waypost.domain.wait_reasons import WaitReason
from waypost.queue.job import Job, NotBefore
from waypost.store.queue.job_subjects import SubjectKind

PROBE_TURN_MS: Final = 200
"""For so long a probe is left to other sources than the one whose probe failed: the cause may be the source."""

ROUTE_CHECK_MS: Final = 5_000
"""Interval at which a job of each waiting source is let through, not to be sent: its account may have been changed."""

TRAVEL_CHECK_MS: Final = 60_000
"""The same while the clock is being advanced; longer where the grid is coarser."""

EXPIRED_AT_ONCE: Final = 48
"""How many more are let through when one of them is found to have waited for all its lifetime."""

RESPONSE_WEIGHT: Final = 0.25
"""Weight of the last response in the mean time."""

# fmt: off
JOINT_CLASSES: Final = {  # of a job, by the classes of its account and its source
    # account           source
    (SlotClass.FAST, SlotClass.FAST): SlotClass.FAST,
    (SlotClass.FAST, SlotClass.NEW):  SlotClass.NEW,
    (SlotClass.FAST, SlotClass.SLOW): SlotClass.SLOW,
    (SlotClass.NEW,  SlotClass.FAST): SlotClass.NEW,
    (SlotClass.NEW,  SlotClass.NEW):  SlotClass.NEW,
    (SlotClass.NEW,  SlotClass.SLOW): SlotClass.SLOW,
    (SlotClass.SLOW, SlotClass.FAST): SlotClass.NEW,   # perhaps only another source of the account is slow
    (SlotClass.SLOW, SlotClass.NEW):  SlotClass.SLOW,
    (SlotClass.SLOW, SlotClass.SLOW): SlotClass.SLOW,
}
# fmt: on


@dataclass(slots=True, eq=False)
class OperatorSlotHolder(SlotHolder):
    """The slots of one source or operator account, and how the operator responds to it."""

    # calls without a response, the oldest first: position, and the real time of the beginning
    calls: dict[int, int] = field(default_factory=dict[int, int])
    mean_ms: float | None = None  # of the last response times; None before the first
    fast_ms: int | None = None  # real time of the last fast response

    def slot_class(self, real_ms: int) -> SlotClass:
        """Return its class: it is slow if its mean is, or if a call takes long and none has been fast meanwhile."""
        if self.calls:
            is_fast_now = self.fast_ms is not None and real_ms - self.fast_ms < SLOW_RESPONSE_MS
            if not is_fast_now and real_ms - next(iter(self.calls.values())) >= SLOW_RESPONSE_MS:
                return SlotClass.SLOW
        if self.mean_ms is None:
            return SlotClass.NEW
        return SlotClass.SLOW if self.mean_ms >= SLOW_RESPONSE_MS else SlotClass.FAST

    def end_call(self, position: int, real_ms: int) -> None:
        """Record that the call of a job has ended."""
        began_ms = self.calls.pop(position, None)
        if began_ms is None:
            return
        took_ms = real_ms - began_ms
        if took_ms < SLOW_RESPONSE_MS:
            self.fast_ms = real_ms
        mean_ms = took_ms if self.mean_ms is None else self.mean_ms
        self.mean_ms = mean_ms + RESPONSE_WEIGHT * (took_ms - mean_ms)


@dataclass(slots=True, eq=False)
class OperatorDestination(OperatorSlotHolder):
    """One operator account: its slots, its circuit, and the groups that wait for it."""

    circuit: Circuit = field(default_factory=lambda: Circuit(OPERATOR_CIRCUITS))
    cause: OperatorUnavailable = field(default_factory=lambda: OperatorUnavailable(""))  # of the last failure
    probe_group: str | None = None  # the group of the last probe that failed
    # the groups that wait, with the time when a job of each is let through to find its route
    check_due_ms: dict[str, int] = field(default_factory=dict[str, int])
    # how many more jobs of a group are let through at once
    checks_left: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def is_away(self) -> bool:
        """True while its messages wait."""
        return self.circuit.state is not CircuitState.CLOSED

    def take_check(self, group: str, now_ms: int, *, is_travelling: bool) -> bool:
        """True if a job of a waiting group is let through now, only to find its route and its age."""
        if self.checks_left.get(group, 0) > 0:
            self.checks_left[group] -= 1
            return True
        next_ms = now_ms + ROUTE_CHECK_MS
        if is_travelling:
            next_ms = travel_due_ms(now_ms + TRAVEL_CHECK_MS, now_ms - (self.circuit.failing_since_ms or now_ms))
        if now_ms < self.check_due_ms.setdefault(group, next_ms):
            return False
        self.check_due_ms[group] = next_ms
        return True

    def not_before(self, group: str, now_ms: int, *, is_travelling: bool) -> NotBefore | None:
        """Return until when nothing of a group is sent; None if one of its jobs may test the circuit."""
        until_ms = self.circuit.blocked_until_ms(now_ms, is_travelling=is_travelling)
        if self.circuit.state is CircuitState.OPEN and self.probe_group == group and len(self.check_due_ms) > 1:
            turn_ms = self.circuit.until_ms + PROBE_TURN_MS
            until_ms = max(until_ms or 0, turn_ms) if now_ms < turn_ms else until_ms
        if until_ms is None:
            return None
        return NotBefore(min(until_ms, self.check_due_ms[group]), WaitReason.OPERATOR_AWAY, whole_group=True)


@dataclass(slots=True, eq=False)
class OutboundSource(OperatorSlotHolder):
    """The slots of one source, which is a group of the queue, and its operator account."""

    account: OperatorAccount | None = None  # None until it has been found
    per_second: int | None = None  # its own throughput; None: the default
    destination: OperatorDestination = field(default_factory=OperatorDestination)
    holders: tuple[OperatorSlotHolder, OperatorSlotHolder] = field(init=False)  # itself and its destination

    def __post_init__(self) -> None:
        """Set the holders."""
        self.holders = self, self.destination


class OperatorAdmission:
    """Decides when an outbound job may start, in one process.

    Args:
        clock: its `now_ms` decides what is due, its real time what is slow.
        chance: where the jitter comes from.
        in_flight: number of slots.
        per_second: throughput of a source that has none of its own.
        clear_not_before: lets a group be claimed from at once.
    """

    def __init__(
        self,
        clock: Clock,
        chance: random.Random,
        *,
        in_flight: int,
        per_second: int,
        clear_not_before: Callable[[str], None],
    ) -> None:
        self._clock, self._chance = clock, chance
        self._clear_not_before = clear_not_before
        self.slots: Slots[OperatorSlotHolder] = Slots(clock, in_flight, OPERATOR_SLOTS, clear_not_before)
        self.pacer = Pacer(per_second=per_second)
        self._sources: dict[str, OutboundSource] = {}  # by group
        self._destinations: dict[OperatorAccount, OperatorDestination] = {}
        self._unknown = OperatorDestination()  # of sources whose account has not been found yet
        self._is_travelling = False
        self._log = log("dispatch")

    def may_start(self, job: Job, now_ms: int, in_flight: int) -> NotBefore | None:
        """Return None to start a job, or until when it waits, and why; a job that is started may be only a probe."""
        group = job.concurrency_group
        source = self._sources.get(group)
        if source is None:
            source = self._sources[group] = OutboundSource(destination=self._unknown)
        destination = source.destination
        is_blocked = destination.circuit.state is not CircuitState.CLOSED and self._is_blocked(job, destination)
        if is_blocked:
            if destination.take_check(group, now_ms, is_travelling=self._is_travelling):
                return None
            wait = destination.not_before(group, now_ms, is_travelling=self._is_travelling)
            if wait is not None:
                return wait
        real_ms = self._clock.real_ms()
        slot_class = JOINT_CLASSES[destination.slot_class(real_ms), source.slot_class(real_ms)]
        is_only_account = slot_class is SlotClass.FAST and len(self._destinations) == 1
        limited = (source,) if is_only_account else source.holders
        if not self.slots.has_room(group, slot_class, limited, real_ms):
            return NotBefore(now_ms + SLOT_RETRY_MS, WaitReason.SLOTS, whole_group=True)
        wait = self.pacer.check(job, now_ms, in_flight)
        if wait is None:
            self.slots.take(job.position, slot_class, source.holders, real_ms)
            if is_blocked:
                destination.circuit.begin_probe(job.position, now_ms)
        return wait

    def find_block(self, job: Job, route: AppRoute) -> OperatorUnavailable | None:
        """Return why a message waits after all, now that its account is known; None where it is sent."""
        source = self._sources.get(job.concurrency_group)
        if source is None or source.account is not route.account:
            source = self.set_account(job, route.account)
        if source.per_second != route.app.throughput:
            source.per_second = route.app.throughput
            self.pacer.set_throughput(route.app.phone_number, route.app.throughput)
        if self.pacer.paused_accounts:
            business_id, now_ms = route.app.business_account_id, self._clock.now_ms()
            pause = self.pacer.account_pause(job, route.account, now_ms, business_account_id=business_id)
            if pause is not None:
                return pause
        destination = source.destination
        is_blocked = destination.circuit.state is not CircuitState.CLOSED and self._is_blocked(job, destination)
        return destination.cause if is_blocked else None

    def set_account(self, job: Job, account: OperatorAccount) -> OutboundSource:
        """Note the operator account of a job and of its group; the next of the group are not even claimed if it waits.

        An account that has been changed, by a new token for example, is another one.
        """
        group = job.concurrency_group
        source = self._sources.get(group)
        if source is None:
            source = self._sources[group] = OutboundSource(destination=self._unknown)
        previous, source.account = source.account, account
        if previous != account:
            source.destination = self._destinations.setdefault(account, OperatorDestination())
            source.holders = source, source.destination
            if previous is not None:
                self._drop_group(previous, group)
        self.slots.move(job.position, source.holders)
        return source

    def is_open(self, account: OperatorAccount) -> bool:
        """True while messages of an account wait for its operator."""
        destination = self._destinations.get(account)
        return destination is not None and destination.is_away

    def begin_call(self, job: Job) -> None:
        """Note that the operator is called for a job."""
        real_ms = self._clock.real_ms()
        for holder in self.slots.held.get(job.position, ()):
            holder.calls[job.position] = real_ms

    def end_call(self, job: Job) -> None:
        """Note that the operator has responded, or will not any more."""
        if job.subject.kind is SubjectKind.MESSAGE:
            self.pacer.record_response(job, self._clock.now_ms())
        real_ms = self._clock.real_ms()
        for holder in self.slots.held.get(job.position, ()):
            holder.end_call(job.position, real_ms)

    def record_outcome(self, job: Job, account: OperatorAccount, outcome: Outcome) -> None:
        """Record what a call to the operator for a message has shown of the operator."""
        source = self._sources[job.concurrency_group]
        destination = source.destination if source.account is account else self._destinations.get(account)
        if destination is None:
            return  # its account was changed meanwhile
        match outcome:
            case OperatorUnavailable(retry_reason=reason) if reason in OPERATOR_CIRCUITS.thresholds:
                event = self._record_failure(destination, job, outcome)
            case OutcomeUncertain(text=text):
                event = self._record_failure(destination, job, OperatorUnavailable(text), is_uncertain=True)
            case _:
                self._record_success(destination, account)
                return
        if event is CircuitEvent.TRIPPED:
            self._log.warning(
                "the operator is away: its messages wait", account=account.id, cause=destination.cause.text
            )

    def pause_peers(
        self, job: Job, account: OperatorAccount, outcome: OperatorUnavailable, business_id: str = ""
    ) -> None:
        """Pause the jobs that wait besides this one, for the first delay of the schedule.

        A job that is rejected after that pauses them again.
        """
        until_ms = self._clock.now_ms() + operator_retry_ms(outcome, 1, self._chance)
        self.pacer.pause_account(job, account, outcome, until_ms, business_account_id=business_id)

    def release(self, job: Job) -> None:
        """Return what a job took when it was admitted: it has ended, or is parked."""
        source = self._sources.get(job.concurrency_group)
        if source is not None and not job.is_parked and source.destination.circuit.probe_position == job.position:
            source.destination.circuit.probe_position = None  # without an outcome: another may be sent
            self._wake(source.destination)
        self.slots.release(job.position)

    def expect_expired(self, job: Job) -> None:
        """Let more jobs of a group through, because one has waited for all its lifetime: others may have, too."""
        group = job.concurrency_group
        destination = self._sources[group].destination
        if destination.is_away and not destination.checks_left.get(group):
            destination.checks_left[group] = EXPIRED_AT_ONCE
            self._clear_not_before(group)

    def set_travelling(self, is_travelling: bool) -> None:
        """Note that the clock is being advanced, or no longer: then operators that are away are tested again."""
        self._is_travelling = is_travelling
        for destination in self._destinations.values():
            if not is_travelling and destination.circuit.state is CircuitState.OPEN:
                destination.circuit.until_ms = destination.circuit.travel_until_ms = self._clock.now_ms()
                self._wake(destination)

    def _is_blocked(self, job: Job, destination: OperatorDestination) -> bool:
        """True if a job waits for the operator that is away: a message that does not test it."""
        return job.subject.kind is SubjectKind.MESSAGE and destination.circuit.probe_position != job.position

    def _record_failure(
        self, destination: OperatorDestination, job: Job, cause: OperatorUnavailable, *, is_uncertain: bool = False
    ) -> CircuitEvent | None:
        destination.cause = cause
        event = destination.circuit.record_failure(
            job.position,
            self._clock.now_ms(),
            self._chance,
            cause=None if is_uncertain else cause.retry_reason,
            retry_after_ms=operator_retry_after_ms(cause),
        )
        if not self._is_travelling:  # an operator may be back before the clock is advanced
            destination.circuit.travel_until_ms = 0
        if event is not None:
            destination.probe_group = job.concurrency_group
            self._wake(destination)
        return event

    def _record_success(self, destination: OperatorDestination, account: OperatorAccount) -> None:
        now_ms = self._clock.now_ms()
        away_ms = now_ms - (destination.circuit.failing_since_ms or now_ms)
        if destination.circuit.record_success(now_ms):
            self._log.info("the operator is back", account=account.id, away_ms=away_ms)
            self._wake(destination)
            destination.check_due_ms.clear()
            destination.checks_left.clear()

    def _wake(self, destination: OperatorDestination) -> None:
        """Let the groups that wait be claimed from at once: each gets its new time."""
        for group in destination.check_due_ms:
            self._clear_not_before(group)

    def _drop_group(self, account: OperatorAccount, group: str) -> None:
        """Note that a group is another account's now; an account that has none left was changed or is unused."""
        destination = self._destinations[account]
        destination.check_due_ms.pop(group, None)
        destination.checks_left.pop(group, None)
        if all(source.account != account for source in self._sources.values()):
            del self._destinations[account]
