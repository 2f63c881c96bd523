"""Processes whose clocks differ, and one whose clock was wrong: nothing waits for hours."""

from tests.queue.conftest import Bench
from waypost.store.queue.jobs import QueueName

HOUR_MS = 3_600_000


async def test_new_entry_of_a_clock_that_ran_ahead_is_worked_at_once(bench: Bench) -> None:
    await bench.append("a", due_ms=bench.clock.now_ms() + 3 * HOUR_MS)

    claimed = await bench.journal.claim(QueueName.OUTBOUND, at_most=10)

    assert len(claimed) == 1


async def test_entry_that_was_tried_waits_for_its_time_however_late(bench: Bench) -> None:
    await bench.append("a")
    (job,) = await bench.journal.claim(QueueName.OUTBOUND, at_most=10)

    await bench.journal.retry_later(job, due_ms=bench.clock.now_ms() + 3 * HOUR_MS, note="not reached")

    assert await bench.journal.claim(QueueName.OUTBOUND, at_most=10) == []
