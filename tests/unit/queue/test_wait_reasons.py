"""Why a job waits: the reason of its group, of its key, or its place in the queue."""

import pytest

from waypost.domain.wait_reasons import WAIT_EXPLANATIONS, WaitReason
from waypost.queue.concurrency_groups import ConcurrencyGroup
from waypost.queue.job import Job, NotBefore
from waypost.store.queue.job_subjects import JobSubject, QueueName, SubjectKind

NOW_MS = 1_760_000_000_000
SHARE = 48


def new_job(position: int, key: str = "ann", *, due_ms: int = NOW_MS, attempt: int = 0) -> Job:
    subject = JobSubject(SubjectKind.MESSAGE, f"{position}")
    return Job(position, QueueName.OUTBOUND, "s", key, subject, due_ms, attempt, 0, was_in_flight=False)


def group_of(*jobs: Job) -> ConcurrencyGroup:
    group = ConcurrencyGroup("s", is_read=True)
    assert group.enqueue(jobs)
    return group


def reason_of(group: ConcurrencyGroup, position: int, share: int = SHARE) -> WaitReason | None:
    wait = group.explain_wait(position, NOW_MS, share)
    return None if wait is None else wait.reason


def test_every_reason_has_an_explanation() -> None:
    assert WAIT_EXPLANATIONS.keys() == set(WaitReason)


def test_job_that_may_start_and_job_in_work_wait_for_nothing() -> None:
    group = group_of(new_job(1), new_job(2, "ben"))

    assert group.claim_due(NOW_MS, None) is not None

    assert [reason_of(group, 1), reason_of(group, 2)] == [None, None]


@pytest.mark.parametrize("whole_group", [True, False], ids=["group", "key"])
def test_wait_of_the_admission_is_the_reason(whole_group: bool) -> None:
    group, wait = group_of(new_job(1)), NotBefore(NOW_MS + 9, WaitReason.PAIR_PACE, whole_group=whole_group)

    assert group.claim_due(NOW_MS, lambda _job, _now_ms, _in_flight: wait) is None

    assert group.explain_wait(1, NOW_MS, SHARE) == wait


def test_job_behind_another_of_its_key_waits_for_its_order() -> None:
    assert reason_of(group_of(new_job(1), new_job(2)), 2) is WaitReason.ORDER


@pytest.mark.parametrize(("attempt", "reason"), [(0, WaitReason.NOT_DUE), (1, WaitReason.RETRY)])
def test_job_that_is_due_later_waits_for_its_time(attempt: int, reason: WaitReason) -> None:
    assert reason_of(group_of(new_job(1, due_ms=NOW_MS + 1, attempt=attempt)), 1) is reason


def test_job_beyond_the_share_of_its_group_waits_for_a_slot() -> None:
    group = group_of(new_job(1), new_job(2, "ben"))
    assert group.claim_due(NOW_MS, None) is not None

    assert reason_of(group, 2, share=1) is WaitReason.SLOTS


def test_job_that_is_not_in_memory_has_earlier_ones_before_it() -> None:
    group = ConcurrencyGroup("s")

    assert reason_of(group, 7) is WaitReason.BACKLOG
