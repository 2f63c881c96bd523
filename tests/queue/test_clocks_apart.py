"""Processes whose clocks differ, or whose clock was wrong: no job waits for hours."""

from tests.queue.conftest import QueueHarness
from waypost.store.queue.job_subjects import QueueName

HOUR_MS = 3_600_000


async def test_new_job_of_a_clock_that_ran_ahead_is_worked_at_once(harness: QueueHarness) -> None:
    await harness.enqueue("a", due_ms=harness.clock.now_ms() + 3 * HOUR_MS)

    claimed = await harness.queue.claim(QueueName.OUTBOUND, at_most=10)

    assert len(claimed) == 1


async def test_job_that_was_attempted_waits_until_it_is_due_however_late(harness: QueueHarness) -> None:
    await harness.enqueue("a")
    (job,) = await harness.queue.claim(QueueName.OUTBOUND, at_most=10)

    await harness.queue.retry_later(job, due_ms=harness.clock.now_ms() + 3 * HOUR_MS, note="not reached")

    assert await harness.queue.claim(QueueName.OUTBOUND, at_most=10) == []
