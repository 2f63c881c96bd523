"""Slots of the outbound queue: how many each source and operator account gets, by its response times."""

import random
from dataclasses import replace

import pytest

from tests.support.builders import OPERATOR
from tests.support.manual_clock import ManualClock
from waypost.admission.operators import OperatorAdmission
from waypost.admission.slots import FAST_ACTIVE_MS, OPERATOR_SLOTS, SLOW_RESPONSE_MS, SlotClass
from waypost.queue.job import Job
from waypost.store.queue.job_subjects import JobSubject, QueueName, SubjectKind

IN_FLIGHT = 64
RESERVED_FOR_FAST = int(IN_FLIGHT * OPERATOR_SLOTS[SlotClass.SLOW].reserve)
FAST_MS = 50
NEW_SHARE = OPERATOR_SLOTS[SlotClass.NEW].account_share


class SlotHarness:
    """Acquires slots, and records the groups that were woken."""

    def __init__(self, in_flight: int = IN_FLIGHT) -> None:
        self.clock = ManualClock()
        self.woken: list[str] = []
        self.admission = OperatorAdmission(
            self.clock, random.Random(1), in_flight=in_flight, per_second=1_000_000, clear_not_before=self.woken.append
        )
        self._position = 0

    def acquire(self, source: str, account: str | None = None) -> Job | None:
        """Return a new job that has got a slot and calls the operator; None where its group waits.

        The account becomes known once the job is claimed, as in dispatch.
        """
        self._position += 1
        subject = JobSubject(SubjectKind.MESSAGE, "id")
        job = Job(
            self._position, QueueName.OUTBOUND, source, str(self._position), subject, 0, 0, 0, was_in_flight=False
        )
        wait = self.admission.may_start(job, self.clock.now_ms(), 0)
        if wait is not None:
            assert wait.until_ms > self.clock.now_ms()
            assert wait.whole_group
            return None
        if account is not None:
            self.admission.set_account(job, replace(OPERATOR, id=account))
        self.admission.begin_call(job)
        return job

    def fill(self, source: str, account: str) -> list[Job]:
        """Acquire all slots that a source gets now."""
        jobs: list[Job] = []
        while (job := self.acquire(source, account)) is not None:
            jobs.append(job)
        return jobs

    def respond(self, *jobs: Job, after_ms: int = FAST_MS) -> None:
        """Let the operator respond to jobs, and end them."""
        self.clock.advance(ms=after_ms)
        for job in jobs:
            self.admission.end_call(job)
            self.admission.release(job)

    def add_fast(self, source: str, account: str) -> None:
        """Let a source become known as fast."""
        job = self.acquire(source, account)
        assert job is not None
        self.respond(job)

    def add_slow(self, source: str, account: str) -> None:
        """Let a source become known as slow."""
        job = self.acquire(source, account)
        assert job is not None
        self.respond(job, after_ms=16_000)


def test_fast_sources_of_the_only_account_get_all_slots() -> None:
    harness = SlotHarness()
    for source in "abcdefgh":
        harness.add_fast(source, "one")

    held = [job for _ in range(8) for source in "abcdefgh" if (job := harness.acquire(source, "one"))]

    assert len(held) >= IN_FLIGHT - 4
    assert harness.admission.slots.slots_in_use == len(held)


def test_new_source_gets_one_slot_until_its_first_response() -> None:
    harness = SlotHarness()

    [job] = harness.fill("a", "one")
    harness.respond(job)

    assert len(harness.fill("a", "one")) == IN_FLIGHT * 3 // 4


@pytest.mark.parametrize("accounts", [1, 2, 10, 40])
def test_slow_accounts_together_leave_slots_to_a_fast_one(accounts: int) -> None:
    """The slots of a slow one shrink, and a fast one always finds some."""
    harness = SlotHarness()
    for nth in range(accounts):
        harness.add_slow(f"slow{nth}", f"account{nth}")
    harness.add_fast("fast", "healthy")

    for nth in range(accounts):
        harness.fill(f"slow{nth}", f"account{nth}")
    free = IN_FLIGHT - harness.admission.slots.slots_in_use

    assert harness.admission.slots.slots_in_use >= accounts / 2
    assert free >= RESERVED_FOR_FAST
    assert len(harness.fill("fast", "healthy")) >= free // 2


@pytest.mark.parametrize("accounts", [1, 2, 10])
def test_fast_accounts_that_turn_slow_at_once_leave_slots_to_another(accounts: int) -> None:
    harness = SlotHarness()
    harness.add_fast("fast", "healthy")
    for nth in range(accounts):
        harness.add_fast(f"turning{nth}", f"account{nth}")
    for _ in range(IN_FLIGHT):
        for nth in range(accounts):
            harness.acquire(f"turning{nth}", f"account{nth}")
    harness.clock.advance(ms=SLOW_RESPONSE_MS)

    assert not [job for nth in range(accounts) if (job := harness.acquire(f"turning{nth}", f"account{nth}"))]
    assert harness.acquire("fast", "healthy")


def test_account_that_hangs_gets_few_slots_however_many_sources_it_has() -> None:
    """Each second some of its sources are tried, because only one of them may be slow: those are limited too."""
    harness = SlotHarness()
    harness.add_fast("fast", "healthy")
    for nth in range(100):
        harness.add_fast(f"source{nth}", "hanging")
    harness.acquire("source0", "hanging")

    for _ in range(60):
        harness.clock.advance(ms=SLOW_RESPONSE_MS)
        for nth in range(100):
            harness.acquire(f"source{nth}", "hanging")
        harness.add_fast("fast", "healthy")
    assert harness.admission.slots.slots_in_use < IN_FLIGHT // 2


def test_slow_source_does_not_slow_down_another_of_its_account() -> None:
    harness = SlotHarness()
    harness.add_fast("fast", "one")
    for nth in range(5):
        harness.add_slow(f"slow{nth}", "one")
        harness.fill(f"slow{nth}", "one")
    harness.clock.advance(ms=20_000)

    probe = harness.acquire("fast", "one")
    assert probe is not None
    harness.respond(probe)
    again = harness.acquire("fast", "one")

    assert again is not None


def test_slow_source_alone_gets_most_of_the_slots() -> None:
    harness = SlotHarness()
    harness.add_slow("slow", "one")
    harness.clock.advance(ms=FAST_ACTIVE_MS)

    assert len(harness.fill("slow", "one")) >= IN_FLIGHT // 2


def test_slow_account_gets_its_slots_back_when_it_is_fast_again() -> None:
    harness = SlotHarness()
    harness.add_slow("slow", "one")
    for _ in range(2):  # known as fast, and active
        harness.add_fast("other", "healthy")
    few = harness.fill("slow", "one")
    harness.respond(*few)
    for _ in range(10):
        harness.add_fast("slow", "one")

    assert len(harness.fill("slow", "one")) > 2 * len(few)


def test_one_hung_call_does_not_make_a_source_slow_that_responds_fast() -> None:
    harness = SlotHarness()
    harness.add_fast("a", "one")
    assert harness.acquire("a", "one")
    harness.clock.advance(ms=30_000)
    harness.add_fast("a", "one")
    harness.add_fast("a", "one")

    assert len(harness.fill("a", "one")) >= IN_FLIGHT // 2


def test_sources_whose_account_is_not_found_yet_leave_slots() -> None:
    """As after a start, when much is queued: nothing is known of any account."""
    harness = SlotHarness()

    held = [job for nth in range(100) if (job := harness.acquire(f"source{nth}"))]

    assert len(held) == IN_FLIGHT * NEW_SHARE
    for job in held:
        harness.admission.set_account(job, replace(OPERATOR, id="hanging"))
    assert harness.acquire("healthy", "healthy")


def test_groups_that_wait_are_woken_when_a_slot_becomes_free() -> None:
    harness = SlotHarness(in_flight=1)
    job = harness.acquire("a", "one")
    assert job is not None
    assert harness.acquire("b", "two") is None
    harness.woken.clear()

    harness.respond(job)

    assert harness.woken == ["b"]
    assert harness.acquire("b", "two")


def test_job_that_is_paced_takes_no_slot() -> None:
    harness = SlotHarness()
    harness.admission.pacer.set_throughput("a", 1)
    harness.add_fast("a", "one")

    assert harness.acquire("a", "one") is None
    assert harness.admission.slots.slots_in_use == 0
