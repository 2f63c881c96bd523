"""A webhook that cannot be applied as it comes is stored all the same, and its items are then tried one by one."""

from typing import Final

import pytest
from sqlalchemy import Connection, select

from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from tests.support.store_statements import fetch_column
from waypost.store.queue.names import QueueName
from waypost.store.tables import queue_jobs

FAILING: Final = (
    "CREATE TRIGGER fails BEFORE UPDATE OF delivered_on_ms ON messages WHEN new.delivered_on_ms IS NOT NULL "
    "BEGIN SELECT RAISE(ABORT, 'a defect'); END"
)


@pytest.fixture
def engine() -> str:
    """The engine whose triggers this test writes."""
    return "sqlite"


def run(connection: Connection, statement: str) -> None:
    connection.exec_driver_sql(statement)


async def test_item_with_a_defect_waits_as_a_job_and_the_others_are_applied(pipeline: PipelineHarness) -> None:
    database = pipeline.waypost.database
    defects = select(queue_jobs.c.defects).where(queue_jobs.c.queue == int(QueueName.WEBHOOKS))
    await pipeline.open_window()
    await database.write(run, FAILING)

    message_id = await pipeline.send_text("Hello")
    await pipeline.events_of(message_id, until="sent")
    waiting = await poll_until(lambda: fetch_column(database, defects), lambda counts: any(counts))
    before = await pipeline.trace(message_id)
    await database.write(run, "DROP TRIGGER fails")
    await pipeline.events_of(message_id, until="delivered")

    assert len(waiting) == 1
    assert before["state"] == "sent"
    assert await fetch_column(database, defects) == []
