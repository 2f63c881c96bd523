"""A callback is its own job: it is read, retried and parked like any other, and ends without a trace in the queue."""

from typing import Final

from sqlalchemy import select

from tests.support.builders import APP, AT_MS, PARTNER
from tests.support.store_statements import fetch_column
from waypost.domain.callbacks import CallbackAttempt
from waypost.store.callbacks.callbacks import AttemptRecord, CallbackRow, enqueue_callbacks, record_attempts
from waypost.store.database import Database
from waypost.store.queue.depths import read_dead_letters, remove_dead_letter, reopen_dead_letter
from waypost.store.queue.job_subjects import JobState, JobSubject, QueueName, SubjectKind
from waypost.store.queue.jobs import (
    GroupCursor,
    JobRetry,
    JobRow,
    NewJob,
    ShardFence,
    count_jobs_by_state,
    enqueue_jobs,
    list_groups,
    live_group,
    read_jobs_after,
    retry_jobs_later,
)
from waypost.store.tables import callbacks, queue_jobs

QUEUE: Final = QueueName.CALLBACKS
FENCE: Final = ShardFence(QUEUE, None, "")


def callback(name: str, subscription_id: int = 7, sequence: int = 1) -> CallbackRow:
    return CallbackRow(name, PARTNER.id, APP.id, subscription_id, "ann", sequence, None, "sent", b"{}", AT_MS)


async def enqueue(database: Database, *rows: CallbackRow) -> None:
    await database.write(enqueue_callbacks, rows, [AT_MS] * len(rows))


async def read(database: Database, subscription_id: int = 7, after: int = 0) -> list[JobRow]:
    group = live_group(subscription_id)
    jobs = await database.read(read_jobs_after, QUEUE, [GroupCursor(group, after, (), 10)])
    return jobs.rows[group]


def retry(job: JobRow, state: JobState) -> JobRetry:
    return JobRetry(job.position, AT_MS + 5, 1, 5, state, False, "status 503", FENCE, callback_id=job.ref)


async def test_callbacks_are_read_in_the_order_in_which_they_were_enqueued(database: Database) -> None:
    await enqueue(database, callback("b"), callback("a", sequence=2))
    await enqueue(database, callback("c", 8))

    jobs = await read(database)

    assert [(job.ref, job.ordering_key, job.due_ms) for job in jobs] == [("b", "7 ann", AT_MS), ("a", "7 ann", AT_MS)]
    assert [job.ref for job in await read(database, after=jobs[0].position)] == ["a"]
    assert await database.read(list_groups, QUEUE) == [live_group(7), live_group(8)]
    assert await fetch_column(database, select(queue_jobs.c.position)) == []


async def test_position_names_one_job_of_the_store(database: Database) -> None:
    outbound = NewJob(QueueName.OUTBOUND, "1555", "1555 1", JobSubject(SubjectKind.MESSAGE, "m"), AT_MS)

    await database.write(enqueue_jobs, [outbound, outbound])
    await enqueue(database, callback("a"), callback("b", sequence=2))
    await database.write(enqueue_jobs, [outbound])

    others = await fetch_column(database, select(queue_jobs.c.position))
    own = [job.position for job in await read(database)]
    assert max(others[:2]) < min(own) < max(own) < others[2]


async def test_delivered_callback_is_no_job_any_more(database: Database) -> None:
    await enqueue(database, callback("a"), callback("b", sequence=2))
    delivered = AttemptRecord("a", 7, CallbackAttempt(AT_MS, 5, 200), True)

    await database.write(record_attempts, [delivered])

    assert [job.ref for job in await read(database)] == ["b"]
    assert await database.read(count_jobs_by_state, QUEUE) == {JobState.OPEN: 1}


async def test_retry_is_stored_in_the_callbacks_row(database: Database) -> None:
    await enqueue(database, callback("a"))
    [job] = await read(database)

    await database.join(retry_jobs_later, retry(job, JobState.OPEN))

    [retried] = await read(database)
    assert (retried.position, retried.due_ms, retried.attempt, retried.defects) == (job.position, AT_MS + 5, 1, 5)


async def test_dead_letter_is_not_read_until_it_is_reopened_and_then_by_a_reader_that_has_passed_it(
    database: Database,
) -> None:
    await enqueue(database, callback("a"), callback("b", sequence=2))
    first, second = await read(database)
    await database.join(retry_jobs_later, retry(first, JobState.DEAD_LETTER))
    [dead] = await database.read(read_dead_letters)
    assert (dead.position, dead.ref, dead.concurrency_group, dead.note) == (
        first.position,
        "a",
        live_group(7),
        "status 503",
    )
    assert [job.ref for job in await read(database)] == ["b"]

    assert await database.write(reopen_dead_letter, first.position, AT_MS + 9)

    [reopened] = await read(database, after=second.position)
    assert (reopened.ref, reopened.due_ms, reopened.attempt, reopened.defects) == ("a", AT_MS + 9, 0, 0)
    assert await database.read(read_dead_letters) == []


async def test_dead_letter_that_is_deleted_leaves_its_callback_as_not_delivered(database: Database) -> None:
    await enqueue(database, callback("a"))
    [job] = await read(database)
    await database.join(retry_jobs_later, retry(job, JobState.DEAD_LETTER))

    assert await database.write(remove_dead_letter, job.position, AT_MS + 9)

    assert await database.read(read_dead_letters) == []
    assert await fetch_column(database, select(callbacks.c.delivered)) == [False]
    assert await fetch_column(database, select(callbacks.c.ended_on_ms)) == [AT_MS + 9]
