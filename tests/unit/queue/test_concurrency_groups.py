"""The jobs of one group in memory: which is claimed next."""

from waypost.queue.concurrency_groups import ConcurrencyGroup
from waypost.queue.job import Job
from waypost.store.queue.jobs import QueueName, read_subject

NOW_MS = 1_760_000_000_000


def new_job(position: int, *, due_ms: int, attempt: int = 0) -> Job:
    return Job(
        position=position,
        queue=QueueName.CALLBACKS,
        concurrency_group="g",
        ordering_key=f"key {position % 10}",
        subject=read_subject(QueueName.OUTBOUND, f"message {position}"),
        due_ms=due_ms,
        attempt=attempt,
        defects=0,
        was_in_flight=False,
    )


def claim_all(group: ConcurrencyGroup) -> list[int]:
    """Return the positions of all jobs that are due, in the order in which they are claimed; each ends at once."""
    positions: list[int] = []
    while (job := group.claim_due(NOW_MS, None)) is not None:
        positions.append(job.position)
        group.complete(job, is_retry=False)
    return positions


def test_job_that_waits_for_another_attempt_can_be_made_due_and_those_of_its_key_follow_it() -> None:
    group = ConcurrencyGroup("g", is_read=True)
    retried = new_job(1, due_ms=NOW_MS + 3_600_000, attempt=7)
    never_tried = new_job(3, due_ms=NOW_MS + 1000)
    group.enqueue([retried, new_job(2, due_ms=NOW_MS), never_tried, new_job(11, due_ms=NOW_MS)])
    before = claim_all(group)

    group.make_retries_due(NOW_MS, with_detached=False)

    assert before == [2]
    assert claim_all(group) == [1, 11]
