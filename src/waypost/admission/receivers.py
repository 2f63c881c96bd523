"""The admission of callbacks: circuit and slots of the receiver of their subscription. Source: decisions 0042, 0119."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from waypost.admission.circuits import RECEIVER_CIRCUITS, Circuit, CircuitEvent, CircuitState
from waypost.admission.slots import RECEIVER_SLOTS, SLOT_RETRY_MS, SLOW_RESPONSE_MS, SlotClass, SlotHolder, Slots
from waypost.base.clock import Clock
from waypost.domain.callbacks import Subscription
from waypost.domain.wait_reasons import WaitReason
from waypost.queue.job import Job, NotBefore
from waypost.store.queue.jobs import group_subscription_id, live_group, replay_group

REPLAY_SHARE: Final = 8
"""Slots of a receiver's replays, so that they delay no live callback."""

SUBSCRIPTION_CHECK_MS: Final = 2_000
"""Minimum interval between two checks of a subscription that gets no callbacks, when it may have changed."""

UNREPORTED_CHECK_MS: Final = 3_600_000
"""How long a subscription's callbacks wait before it is checked, if no change is reported: a report may be lost."""


@dataclass(slots=True, eq=False)
class CallbackReceiver(SlotHolder):
    """The receiver of one subscription as this process knows it: its circuit, and the callbacks in flight to it."""

    # its probe is the callback that tests it, or the job that reads whether callbacks may start
    circuit: Circuit = field(default_factory=lambda: Circuit(RECEIVER_CIRCUITS))
    is_known: bool = False  # whether the subscription has been read
    url: str = ""
    has_responded: bool = False  # to this process, at its current URL
    was_slow: bool = False  # its last response took long
    replays: set[int] = field(default_factory=set[int])  # which of its slots are replays'
    may_have_changed: bool = False  # the subscription may have changed since it was read
    checked_ms: int = 0  # when a job was last let through to read the subscription; 0: the next one is at once
    blocked_since_ms: int = 0  # no job has been let through since then; 0: none was held back
    pause_known_from: int = 0  # only reads from this one on know that it was paused
    retry_requests: int = 0  # how many requests to call it at once have been followed
    lease_number: int = 0  # of its callbacks' group

    def note_lease(self, number: int) -> None:
        """Forget its health if others may have called it since this process did: the store has what they know."""
        if number != self.lease_number:
            self.lease_number, self.is_known, self.has_responded = number, False, False
            self.circuit = Circuit(RECEIVER_CIRCUITS)

    def slot_class(self, real_ms: int) -> SlotClass:
        """Return its class: slow if its last response took long, or one takes long now, or may: before a probe."""
        if self.was_slow or self.circuit.state is not CircuitState.CLOSED:
            return SlotClass.SLOW
        if self.slots and real_ms - next(iter(self.slots.values())) >= SLOW_RESPONSE_MS:
            return SlotClass.SLOW
        return SlotClass.FAST

    def not_before(self, now_ms: int, *, is_travelling: bool = False) -> NotBefore | None:
        """Return until when nothing is sent there, by the state of its circuit; None where a callback may start.

        A job may also start only to read the subscription: one that is not known, or that may have changed.
        """
        circuit = self.circuit
        until_ms = circuit.blocked_until_ms(now_ms, is_travelling=is_travelling)
        match circuit.state:
            case CircuitState.CLOSED:
                reason = WaitReason.RECEIVER_NEW
                if not self.is_known and circuit.probe_position is not None:
                    until_ms = now_ms + SUBSCRIPTION_CHECK_MS
            case CircuitState.PAUSED:
                reason = WaitReason.SUBSCRIPTION_PAUSED
                until_ms = self._check_until_ms(now_ms, now_ms + UNREPORTED_CHECK_MS, is_travelling=is_travelling)
            case CircuitState.HALF_OPEN:
                reason = WaitReason.RECEIVER_FAILING
            case CircuitState.OPEN:
                reason = WaitReason.RECEIVER_PAUSE if circuit.is_pause else WaitReason.RECEIVER_FAILING
                test_due_ms = circuit.test_due_ms(is_travelling=is_travelling)
                if now_ms < test_due_ms:
                    until_ms = self._check_until_ms(now_ms, test_due_ms, is_travelling=is_travelling)
        return None if until_ms is None else NotBefore(until_ms, reason, whole_group=True)

    def _check_until_ms(self, now_ms: int, until_ms: int, *, is_travelling: bool) -> int | None:
        """Return until when nothing is sent there; None to let one job through to read the subscription."""
        if is_travelling and not self.may_have_changed:
            return until_ms  # a check would be one more stop of the clock
        if self.may_have_changed and self.circuit.probe_position is not None:
            return now_ms + SUBSCRIPTION_CHECK_MS
        self.blocked_since_ms = self.blocked_since_ms or now_ms
        check_ms = self.blocked_since_ms + UNREPORTED_CHECK_MS
        if self.may_have_changed:
            check_ms = self.checked_ms + SUBSCRIPTION_CHECK_MS
        return min(check_ms, until_ms) if check_ms > now_ms else None

    def begin_probe(self, position: int, now_ms: int) -> None:
        """Start the callback that tests it, or let a job through to read whether callbacks may start."""
        self.blocked_since_ms = 0
        self.circuit.begin_probe(position, now_ms)
        if self.circuit.state in (CircuitState.OPEN, CircuitState.PAUSED):
            self.may_have_changed, self.checked_ms = False, now_ms

    def may_be_called(self, position: int) -> bool:
        """True if a callback that was let through may be posted after all: much may have happened since."""
        is_probe = self.circuit.probe_position == position
        return self.circuit.state is CircuitState.CLOSED or (self.circuit.state is CircuitState.HALF_OPEN and is_probe)

    def update(self, subscription: Subscription | None, now_ms: int, read_number: int) -> None:
        """Update the receiver from its subscription.

        Args:
            subscription: None where it was deleted; then all that waits may start, to be ended.
            now_ms: by the clock that due times follow.
            read_number: the number of the read; one that was begun before it was paused does not count.
        """
        if subscription is None:
            self.is_known, self.circuit = True, Circuit(RECEIVER_CIRCUITS)
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
        self.was_slow = self.has_responded = False
        self.circuit.restart()


class ReceiverAdmission:
    """Decides when a callback may start, in one process.

    Args:
        clock: its `now_ms` decides what is due, its real time what is slow.
        in_flight: number of slots.
        clear_not_before: lets a group be claimed from at once.
        lease_number: returns a number that changes when others may have worked a group meanwhile.

    Attributes:
        receivers: by the id of their subscription.
        is_travelling: the clock is being advanced: receivers that fail are tried less often.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        in_flight: int,
        clear_not_before: Callable[[str], None],
        lease_number: Callable[[str], int],
    ) -> None:
        self._clock = clock
        self._clear_not_before = clear_not_before
        self._lease_number = lease_number
        self.slots: Slots[CallbackReceiver] = Slots(clock, in_flight, RECEIVER_SLOTS, clear_not_before)
        self.receivers: dict[int, CallbackReceiver] = {}
        self.is_travelling = False

    def may_start(self, job: Job, now_ms: int, _in_flight: int) -> NotBefore | None:
        """Return None to start a callback, or until when it waits, and why."""
        group = job.concurrency_group
        subscription_id = group_subscription_id(group)
        receiver = self.receivers.get(subscription_id)
        if receiver is None:
            receiver = self.receivers[subscription_id] = CallbackReceiver()
        if not job.is_replay:
            receiver.note_lease(self._lease_number(group))
        if job.was_in_flight:
            return None  # nothing is sent: its attempt was cut short, and is only counted
        is_probe = not receiver.is_known or receiver.circuit.state is not CircuitState.CLOSED
        if is_probe:
            wait = receiver.not_before(now_ms, is_travelling=self.is_travelling)
            if wait is not None:
                receiver.waiting.add(group)
                return wait
        real_ms, holders = self._clock.real_ms(), (receiver,)
        slot_class = receiver.slot_class(real_ms)
        if job.is_replay and len(receiver.replays) >= REPLAY_SHARE:
            receiver.waiting.add(group)
        elif self.slots.has_room(group, slot_class, holders, real_ms):
            if is_probe:
                receiver.begin_probe(job.position, now_ms)
            if job.is_replay:
                receiver.replays.add(job.position)
            self.slots.take(job.position, slot_class, holders, real_ms)
            return None
        return NotBefore(now_ms + SLOT_RETRY_MS, WaitReason.SLOTS, whole_group=True)

    def release(self, job: Job) -> None:
        """Release a job's slot, and offer it to those that wait for one."""
        position = job.position
        for receiver in self.slots.held.get(position, ()):
            receiver.replays.discard(position)
            if receiver.circuit.probe_position == position:  # without an outcome: the next callback is one
                receiver.circuit.probe_position = None
        self.slots.release(position)

    @property
    def callbacks_in_flight(self) -> dict[str, int]:
        """Number of callbacks in flight, by subscription."""
        return {str(number): len(receiver.slots) for number, receiver in self.receivers.items() if receiver.slots}

    @property
    def circuits(self) -> Counter[str]:
        """Number of receivers known to this process, by the state of their circuit."""
        return Counter(receiver.circuit.state.value for receiver in self.receivers.values() if receiver.is_known)

    def circuit_of(self, subscription_id: int) -> str | None:
        """Return the state of a receiver's circuit; None where this process does not know the receiver."""
        receiver = self.receivers.get(subscription_id)
        return None if receiver is None or not receiver.is_known else receiver.circuit.state.value

    def set_travelling(self, is_travelling: bool) -> None:
        """Note that the clock is being advanced, or no longer: then receivers that fail may be tried again."""
        self.is_travelling = is_travelling
        if not is_travelling:
            for subscription_id in self.receivers:
                self.wake(subscription_id)

    def wake(self, subscription_id: int) -> None:
        """Let a subscription's callbacks and replays be claimed from at once."""
        for group in (live_group(subscription_id), replay_group(subscription_id)):
            self._clear_not_before(group)
