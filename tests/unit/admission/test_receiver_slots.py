"""Concurrency slots of callbacks: how many each receiver gets, by its recent health."""

from tests.support.manual_clock import ManualClock
from waypost.admission.circuits import RECEIVER_CIRCUITS, Circuit, CircuitState
from waypost.admission.receivers import REPLAY_SHARE, CallbackReceiver, ReceiverAdmission
from waypost.admission.slots import CROWDED_SLOTS, RECEIVER_SLOTS, SlotClass
from waypost.queue.job import Job
from waypost.store.queue.job_subjects import JobSubject, QueueName, SubjectKind
from waypost.store.queue.jobs import live_group, replay_group

MAX_SLOTS_PER_SLOW_RECEIVER = RECEIVER_SLOTS[SlotClass.SLOW].each
MAX_SLOTS_WHEN_CROWDED = RECEIVER_SLOTS[SlotClass.FAST].each_when_crowded
MAX_SLOW_SLOTS = RECEIVER_SLOTS[SlotClass.SLOW].together


class SlotHarness:
    """Acquires slots, and records the groups that were woken."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.woken: list[str] = []
        self.lease_number = 0
        self.admission = ReceiverAdmission(
            self.clock, in_flight=256, clear_not_before=self.woken.append, lease_number=lambda _: self.lease_number
        )
        self._position = 0

    def add_receiver(self, subscription: int, *, was_slow: bool = False, circuit: Circuit | None = None) -> None:
        receiver = CallbackReceiver(circuit=circuit or Circuit(RECEIVER_CIRCUITS), is_known=True, was_slow=was_slow)
        self.admission.receivers[subscription] = receiver

    def acquire(self, group: str, *, is_replay: bool = False) -> Job | None:
        """Return a new job that has got a slot; None where its group is held."""
        self._position += 1
        subject = JobSubject(SubjectKind.CALLBACK, "id")
        job = Job(self._position, QueueName.CALLBACKS, group, "key", subject, 0, 0, 0, False, is_replay=is_replay)
        hold = self.admission.may_start(job, self.clock.now_ms(), 0)
        assert hold is None or hold.until_ms > self.clock.now_ms()
        return job if hold is None else None

    def fill(self, subscription: int) -> list[Job]:
        """Acquire all slots that a receiver gets now; at most as many as the queue has for one group."""
        jobs: list[Job] = []
        while len(jobs) < 64 and (job := self.acquire(live_group(subscription))) is not None:
            jobs.append(job)
        return jobs


def test_fast_receiver_gets_all_its_slots_while_many_are_free() -> None:
    harness = SlotHarness()
    harness.add_receiver(1)

    assert len(harness.fill(1)) == 64


def test_unknown_receiver_gets_one_slot() -> None:
    harness = SlotHarness()

    assert len(harness.fill(1)) == 1


def test_slow_receiver_gets_few_slots() -> None:
    harness = SlotHarness()
    harness.add_receiver(1, was_slow=True)

    assert len(harness.fill(1)) == MAX_SLOTS_PER_SLOW_RECEIVER


def test_receiver_that_keeps_callbacks_waiting_is_slow_before_it_responds() -> None:
    harness = SlotHarness()
    harness.add_receiver(1)
    assert harness.acquire(live_group(1))
    harness.clock.advance(ms=1_000)

    assert len(harness.fill(1)) == MAX_SLOTS_PER_SLOW_RECEIVER - 1


def test_all_slow_receivers_together_leave_half_of_the_slots_to_the_fast_ones() -> None:
    harness = SlotHarness()
    for subscription in range(1, 41):
        harness.add_receiver(subscription, was_slow=True)
    harness.add_receiver(99)

    acquired = sum(len(harness.fill(subscription)) for subscription in range(1, 41))

    assert acquired == MAX_SLOW_SLOTS
    assert harness.admission.slots.slots_in_use == MAX_SLOW_SLOTS
    assert harness.acquire(live_group(99))


def test_slow_slots_go_to_the_receiver_that_has_waited_longest() -> None:
    harness = SlotHarness()
    for subscription in range(1, 19):
        harness.add_receiver(subscription, was_slow=True)
    full = [harness.fill(subscription) for subscription in range(1, 17)]
    assert harness.acquire(live_group(17)) is None
    assert harness.acquire(live_group(18)) is None
    harness.woken.clear()

    harness.admission.release(full[0][0])

    assert live_group(17) in harness.woken
    assert live_group(18) not in harness.woken
    assert harness.acquire(live_group(1)) is None  # the one that released it waits behind the others
    assert harness.acquire(live_group(18)) is None
    assert harness.acquire(live_group(17))


def test_receivers_that_turn_slow_all_at_once_do_not_take_every_slot() -> None:
    harness = SlotHarness()
    for subscription in range(1, 11):
        harness.add_receiver(subscription)

    acquired = [len(harness.fill(subscription)) for subscription in range(1, 11)]

    assert sum(acquired) <= CROWDED_SLOTS + 8 * MAX_SLOTS_WHEN_CROWDED
    assert min(acquired) == MAX_SLOTS_WHEN_CROWDED


def test_open_circuit_admits_nothing_and_then_one_probe() -> None:
    harness = SlotHarness()
    harness.add_receiver(
        1, circuit=Circuit(RECEIVER_CIRCUITS, CircuitState.OPEN, until_ms=harness.clock.now_ms() + 1_000)
    )
    assert harness.fill(1) == []

    harness.clock.advance(ms=1_000)

    assert len(harness.fill(1)) == 1
    assert harness.admission.receivers[1].circuit.state is CircuitState.HALF_OPEN


def test_paused_subscription_is_checked_when_it_may_have_changed() -> None:
    harness = SlotHarness()
    harness.add_receiver(1, circuit=Circuit(RECEIVER_CIRCUITS, CircuitState.PAUSED))
    assert harness.fill(1) == []

    harness.admission.receivers[1].may_have_changed = True
    [check] = harness.fill(1)
    harness.admission.release(check)

    assert harness.fill(1) == []
    harness.admission.receivers[1].may_have_changed = True
    assert harness.fill(1) == []  # so soon after the last check
    harness.clock.advance(ms=2_000)
    assert len(harness.fill(1)) == 1


def test_replays_of_a_receiver_get_few_slots_beside_its_live_callbacks() -> None:
    harness = SlotHarness()
    harness.add_receiver(1)

    replays = [harness.acquire(replay_group(1), is_replay=True) for _ in range(REPLAY_SHARE + 5)]

    assert sum(job is not None for job in replays) == REPLAY_SHARE
    assert harness.acquire(live_group(1))


def test_fast_receiver_gets_all_its_slots_also_where_slow_ones_hold_theirs() -> None:
    harness = SlotHarness()
    for subscription in range(1, 41):
        harness.add_receiver(subscription, was_slow=True)
        harness.fill(subscription)
    harness.add_receiver(99)

    assert len(harness.fill(99)) == 64


def test_health_is_forgotten_when_another_process_may_have_called_the_receiver() -> None:
    """What this process knew may be hours old: it would hold callbacks back from a receiver that is well."""
    harness = SlotHarness()
    harness.lease_number = 1
    until_ms = harness.clock.now_ms() + 60_000
    harness.acquire(live_group(1))
    harness.admission.receivers[1].is_known = True
    harness.admission.receivers[1].circuit = Circuit(RECEIVER_CIRCUITS, state=CircuitState.OPEN, until_ms=until_ms)

    assert harness.acquire(live_group(1)) is None
    harness.lease_number = 2

    assert harness.acquire(live_group(1)) is not None
    assert not harness.admission.receivers[1].is_known
