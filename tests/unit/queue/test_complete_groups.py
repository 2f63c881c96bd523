"""The position up to which a group is complete, where positions are committed out of order."""

from waypost.queue.concurrency_groups import MAX_ENQUEUE_MS, MAX_NUMBERING_MS, ConcurrencyGroup, QueueScheduler
from waypost.queue.job import Job
from waypost.store.queue.job_subjects import JobSubject, QueueName, SubjectKind
from waypost.store.queue.jobs import RunningTransactions


def read(group: ConcurrencyGroup, position: int, real_ms: int, *, oldest: int, before: int) -> int:
    """Read and complete one job; return the position after which it was read."""
    group.begin_read()
    after = group.cursor(real_ms, in_order=False).after
    subject = JobSubject(SubjectKind.CALLBACK, "id")
    job = Job(position, QueueName.CALLBACKS, group.name, str(position), subject, 0, 0, 0, False)
    group.end_read([job], real_ms=real_ms, transactions=RunningTransactions(oldest, before))
    assert group.claim_due(0, None) is job
    group.complete(job, is_retry=False)
    return after


def test_jobs_that_were_read_are_complete_once_every_transaction_of_that_time_has_ended() -> None:
    group, at_ms = ConcurrencyGroup("g"), 1_000_000
    read(group, 10, at_ms, oldest=100, before=105)

    # One transaction of that time has not ended, however often the group is read.
    for step in range(1, 5):
        assert read(group, 10 + step, at_ms + step * MAX_NUMBERING_MS, oldest=104, before=110) == 0
    last_ms = at_ms + 5 * MAX_NUMBERING_MS
    assert read(group, 20, last_ms, oldest=105, before=120) == 0
    assert read(group, 21, last_ms + 1, oldest=120, before=121) == 10


def test_jobs_that_were_read_a_moment_ago_are_not_complete_yet() -> None:
    """A job is invisible between taking its position and the number of its transaction."""
    group, at_ms = ConcurrencyGroup("g"), 1_000_000
    read(group, 10, at_ms, oldest=100, before=100)
    read(group, 11, at_ms + MAX_NUMBERING_MS - 1, oldest=101, before=101)

    assert read(group, 12, at_ms + MAX_NUMBERING_MS, oldest=101, before=101) == 0
    assert read(group, 13, at_ms + MAX_NUMBERING_MS, oldest=101, before=101) == 10


def test_long_foreign_transaction_does_not_keep_a_group_incomplete_forever() -> None:
    group, at_ms = ConcurrencyGroup("g"), 1_000_000
    read(group, 10, at_ms, oldest=5, before=100)
    read(group, 11, at_ms + MAX_ENQUEUE_MS, oldest=5, before=100)

    assert read(group, 12, at_ms + 2 * MAX_ENQUEUE_MS, oldest=5, before=100) == 11


def test_empty_group_stays_until_the_next_rescan() -> None:
    scheduler, at_ms = QueueScheduler(), 1_000_000
    scheduler.rescan(at_ms)
    scheduler.wake(["kept", "gone"])
    read(scheduler.groups["kept"], 10, at_ms, oldest=1, before=2)
    scheduler.groups["gone"].begin_read()
    scheduler.groups["gone"].end_read([], real_ms=at_ms, transactions=None)

    scheduler.claim_due(at_most=1, share=1, now_ms=0, may_start=None)
    remaining = list(scheduler.groups)
    scheduler.rescan(at_ms + 120_000)

    assert remaining == ["kept"]
    assert not scheduler.groups
