"""Circuits of operator accounts: what opens and closes them, and what may be sent meanwhile."""

import random
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest

from tests.support.builders import APP, OPERATOR
from tests.support.manual_clock import ManualClock
from waypost.admission.circuits import OPERATOR_CIRCUITS
from waypost.admission.operators import PROBE_TURN_MS, ROUTE_CHECK_MS, OperatorAdmission
from waypost.dispatch.retries import TRACED_ATTEMPTS, is_traced
from waypost.domain.app import AppRoute
from waypost.domain.outcome import (
    OperatorAccepted,
    OperatorRejected,
    OperatorUnavailable,
    Outcome,
    OutcomeUncertain,
    RetryReason,
)
from waypost.queue.job import Job
from waypost.store.queue.jobs import QueueName, read_subject

NOT_REACHED = OperatorUnavailable("not reached", retry_reason=RetryReason.NOT_REACHED)
TEMPORARY = OperatorUnavailable("down", 131016, retry_reason=RetryReason.OUTAGE)
UNCERTAIN = OutcomeUncertain("a gateway's page")
OTHER_OPERATOR = replace(OPERATOR, id="other")


def new_job(position: int = 1, source: str = "s") -> Job:
    return Job(
        position=position,
        queue=QueueName.OUTBOUND,
        concurrency_group=source,
        ordering_key=f"{source} {position}",
        subject=read_subject(QueueName.OUTBOUND, f"message {position}"),
        due_ms=0,
        attempt=0,
        defects=0,
        was_in_flight=False,
    )


@dataclass
class CircuitSetUp:
    """Circuits on a clock that the test advances; what they wake is listed."""

    clock: ManualClock = field(default_factory=ManualClock)
    woken: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.admission = OperatorAdmission(
            self.clock, random.Random(1), in_flight=64, per_second=1000, clear_not_before=self.woken.append
        )

    def send(self, job: Job, outcome: Outcome, account: object = OPERATOR) -> bool:
        """Send a message with an outcome, if it may be sent now; return True if it was sent."""
        assert account in (OPERATOR, OTHER_OPERATOR)
        used = OPERATOR if account is OPERATOR else OTHER_OPERATOR
        if self.admission.may_start(job, self.clock.now_ms(), 0) is not None:
            return False
        if self.admission.find_block(job, AppRoute(APP, used)) is not None:
            return False
        self.admission.begin_call(job)
        self.admission.end_call(job)
        self.admission.record_outcome(job, used, outcome)
        self.admission.release(job)
        return True

    def wait_of(self, job: Job) -> int | None:
        """Return how long the group of a job has to wait; None if the job is started."""
        now_ms = self.clock.now_ms()
        wait = self.admission.may_start(job, now_ms, 0)
        return None if wait is None else wait.until_ms - now_ms

    def open(self) -> None:
        """Open the circuit with as few failures as possible."""
        position = 0
        while not self.admission.is_open(OPERATOR):
            assert self.send(new_job(position), NOT_REACHED)
            position += 1


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [(NOT_REACHED, RetryReason.NOT_REACHED), (TEMPORARY, RetryReason.OUTAGE), (UNCERTAIN, None)],
    ids=["not reached", "temporary error", "uncertain"],
)
def test_circuit_opens_after_failures_in_a_row_of_several_messages(outcome: Outcome, cause: RetryReason | None) -> None:
    setup, threshold = CircuitSetUp(), OPERATOR_CIRCUITS.thresholds[cause]
    for position in range(threshold.failures - 1):
        setup.send(new_job(position), outcome)
    was_open = setup.admission.is_open(OPERATOR)

    setup.send(new_job(99), outcome)

    assert (was_open, setup.admission.is_open(OPERATOR)) == (False, True)


@pytest.mark.parametrize("outcome", [TEMPORARY, UNCERTAIN], ids=["temporary error", "uncertain"])
def test_one_message_that_fails_again_and_again_opens_no_circuit(outcome: Outcome) -> None:
    setup = CircuitSetUp()

    for _ in range(40):
        setup.send(new_job(1), outcome)

    assert not setup.admission.is_open(OPERATOR)


@pytest.mark.parametrize(
    "outcome",
    [
        OperatorAccepted("wamid.1"),
        OperatorRejected(131051, "unknown type"),
        OperatorUnavailable("too fast", 130429, retry_reason=RetryReason.THROUGHPUT),
        OperatorUnavailable("expired", 190, retry_reason=RetryReason.CREDENTIAL),
    ],
    ids=["accepted", "rejected", "throughput", "credential"],
)
def test_any_other_response_shows_that_the_operator_is_there(outcome: Outcome) -> None:
    setup = CircuitSetUp()
    for position in range(2):
        setup.send(new_job(position), NOT_REACHED)
    setup.send(new_job(3), outcome)
    setup.send(new_job(4), NOT_REACHED)
    was_open = setup.admission.is_open(OPERATOR)
    setup.open()
    setup.clock.advance(ms=1000)

    setup.send(new_job(5), outcome)

    assert (was_open, setup.admission.is_open(OPERATOR)) == (False, False)


def test_while_a_circuit_is_open_one_message_at_a_time_is_sent() -> None:
    setup = CircuitSetUp()
    setup.open()
    before = setup.send(new_job(10), NOT_REACHED)
    setup.clock.advance(ms=500)

    first, second = setup.wait_of(new_job(10)), setup.wait_of(new_job(11))

    assert not before
    assert first is None
    assert second is not None


def test_probes_of_a_long_outage_are_a_few_seconds_apart() -> None:
    setup, sent_ms = CircuitSetUp(), list[int]()
    setup.open()

    for position in range(10, 10_000):
        setup.clock.advance(ms=100)
        wait = setup.admission.may_start(new_job(position), setup.clock.now_ms(), 0)
        if wait is None and setup.admission.find_block(new_job(position), AppRoute(APP, OPERATOR)) is None:
            setup.admission.record_outcome(new_job(position), OPERATOR, NOT_REACHED)
            setup.admission.release(new_job(position))
            sent_ms.append(setup.clock.now_ms())

    gaps_ms = [later - first for first, later in pairwise(sent_ms[4:])]
    longest_ms = 1000 * OPERATOR_CIRCUITS.probe_delays_s[-1]
    assert 0.8 * longest_ms <= min(gaps_ms) <= max(gaps_ms) <= 1.2 * longest_ms + 100


def test_every_source_that_waits_is_woken_when_a_probe_succeeds() -> None:
    setup = CircuitSetUp()
    for position, source in enumerate(("s", "t", "u")):
        setup.send(new_job(position, source), NOT_REACHED)
    for position, source in enumerate(("s", "t", "u")):
        assert setup.wait_of(new_job(position, source)) is not None
    setup.clock.advance(ms=1000)
    setup.woken.clear()

    sent = setup.send(new_job(4, "t"), OperatorAccepted("wamid.4"))

    assert sent
    assert sorted(setup.woken) == ["s", "t", "u"]
    assert [setup.wait_of(new_job(position, source)) for position, source in enumerate(("s", "t", "u"))] == [None] * 3


def test_outage_of_one_account_delays_no_other() -> None:
    setup = CircuitSetUp()
    setup.open()

    sent = setup.send(new_job(10, "t"), OperatorAccepted("wamid.10"), OTHER_OPERATOR)

    assert sent
    assert setup.admission.is_open(OPERATOR)
    assert not setup.admission.is_open(OTHER_OPERATOR)


def test_probe_that_failed_is_followed_by_one_of_another_source() -> None:
    setup = CircuitSetUp()
    setup.send(new_job(5, "t"), NOT_REACHED)
    setup.open()
    assert setup.wait_of(new_job(5, "t")) is not None
    setup.clock.advance(ms=600)
    assert setup.send(new_job(10), NOT_REACHED)
    wait_ms, others_wait_ms = setup.wait_of(new_job(11)), setup.wait_of(new_job(5, "t"))

    assert wait_ms is not None
    assert others_wait_ms is not None
    assert wait_ms - others_wait_ms == PROBE_TURN_MS


def test_probe_without_an_outcome_does_not_block_the_account() -> None:
    setup = CircuitSetUp()
    setup.open()
    setup.clock.advance(ms=500)
    assert setup.wait_of(new_job(10)) is None
    assert setup.wait_of(new_job(11)) is not None

    setup.clock.advance(ms=OPERATOR_CIRCUITS.probe_timeout_ms)

    assert setup.wait_of(new_job(11)) is None


def test_probe_that_ends_without_an_outcome_is_soon_followed_by_another() -> None:
    setup = CircuitSetUp()
    setup.open()
    setup.clock.advance(ms=500)
    assert setup.wait_of(new_job(10)) is None

    setup.admission.release(new_job(10))
    setup.clock.advance(ms=500)

    assert setup.wait_of(new_job(11)) is None


def test_operator_that_is_away_again_at_once_is_probed_less_and_less_often() -> None:
    setup, waits_ms = CircuitSetUp(), list[int]()
    for _ in range(5):
        setup.open()
        wait_ms = setup.wait_of(new_job(10))
        assert wait_ms is not None
        waits_ms.append(wait_ms)
        setup.clock.advance(ms=wait_ms)
        assert setup.send(new_job(10), OperatorAccepted("wamid.10"))

    assert waits_ms == sorted(waits_ms)
    assert waits_ms[-1] > 8 * waits_ms[0]


def test_source_whose_account_was_changed_is_let_through_to_find_it() -> None:
    setup = CircuitSetUp()
    setup.open()
    assert setup.wait_of(new_job(10)) is not None
    changed = OPERATOR.replace_fields(token="a new one")
    setup.clock.advance(ms=ROUTE_CHECK_MS)

    assert setup.wait_of(new_job(10)) is None
    assert setup.admission.find_block(new_job(10), AppRoute(APP, changed)) is None
    assert setup.wait_of(new_job(11)) is None


def test_long_outage_leaves_few_attempts_in_the_trace_of_a_message() -> None:
    traced = [attempt for attempt in range(1, 100_000) if is_traced(attempt)]

    assert traced[:TRACED_ATTEMPTS] == list(range(1, TRACED_ATTEMPTS + 1))
    assert len(traced) < 50
