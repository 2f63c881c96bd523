"""Items of a webhook wait for earlier items of their group that still have a job, and for no others."""

from typing import Final

from sqlalchemy import update

from tests.support.builders import AT_MS
from tests.support.store_statements import execute
from waypost.store.database import Database
from waypost.store.queue.inbound_webhooks import busy_groups
from waypost.store.queue.job_subjects import JobState, JobSubject, QueueName, SubjectKind
from waypost.store.queue.jobs import NewJob, enqueue_jobs
from waypost.store.tables import queue_jobs

GROUPS: Final = {"one", "two", "three"}


def job(queue_name: QueueName, group: str) -> NewJob:
    return NewJob(queue_name, group, f"{group} ann", JobSubject(SubjectKind.WEBHOOK_ITEM, "1", "main"), AT_MS)


async def test_group_is_busy_while_one_of_its_items_has_a_job(database: Database) -> None:
    await database.write(enqueue_jobs, [job(QueueName.WEBHOOKS, "one"), job(QueueName.OUTBOUND, "two")])

    busy = await database.read(busy_groups, GROUPS)

    assert busy == {"one"}


async def test_dead_letter_keeps_no_group_busy(database: Database) -> None:
    await database.write(enqueue_jobs, [job(QueueName.WEBHOOKS, "one"), job(QueueName.WEBHOOKS, "three")])
    is_first = queue_jobs.c.concurrency_group == "one"
    await execute(database, update(queue_jobs).where(is_first).values(state=int(JobState.DEAD_LETTER)))

    assert await database.read(busy_groups, GROUPS) == {"three"}
    assert await database.read(busy_groups, set[str]()) == set()
