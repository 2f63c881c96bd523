"""The in-flight mark, if the disk cannot store it."""

from pathlib import Path
from sqlite3 import IntegrityError
from typing import Final

import pytest
from sqlalchemy import Connection, text

from tests.support.manual_clock import ServiceClock
from waypost.queue.queue import JobQueue
from waypost.store.database import Database
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.queue.job_subjects import JobState, JobSubject, QueueName, SubjectKind
from waypost.store.queue.jobs import NewJob, count_jobs_by_state, enqueue_jobs

JOBS: Final = [
    NewJob(QueueName.OUTBOUND, "a group", f"key {number}", JobSubject(SubjectKind.MESSAGE, str(number)), due_ms=0)
    for number in range(3)
]
FAILING_TRIGGER: Final = """
CREATE TRIGGER fails BEFORE UPDATE OF state ON queue_jobs
WHEN new.state = 1 AND new.ref = 'message 1' BEGIN SELECT raise(ABORT, 'no room'); END
"""


async def test_job_whose_in_flight_mark_was_not_stored_is_not_uncertain(tmp_path: Path) -> None:
    """No message of the batch was sent, so every job is claimed again."""
    database = Database(SqliteEngine(tmp_path / "waypost.db"))
    await database.open()
    clock = ServiceClock()
    queue = JobQueue(database, clock, holder="a holder")
    await queue.open()
    await database.write(enqueue_jobs, JOBS)
    await database.write(_run, FAILING_TRIGGER)
    jobs = await queue.claim(QueueName.OUTBOUND, at_most=3)

    with pytest.raises(IntegrityError, match="no room"):
        await queue.mark_in_flight(jobs)
    for job in jobs:
        await queue.retry_after_defect(job, RuntimeError("the mark was not written"))
    clock.advance(ms=60_000)
    claimed_again = await queue.claim(QueueName.OUTBOUND, at_most=3)

    assert [job.was_in_flight for job in claimed_again] == [False] * 3
    assert await database.read(count_jobs_by_state, QueueName.OUTBOUND) == {JobState.OPEN: 3}
    await queue.close()
    await database.close()


def _run(connection: Connection, statement: str) -> None:
    connection.execute(text(statement))
