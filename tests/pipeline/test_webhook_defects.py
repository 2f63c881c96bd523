"""A webhook that cannot be applied as it comes is stored all the same, and its items are then tried one by one."""

import asyncio
import json
import threading
from typing import Any, Final

import pytest
from sqlalchemy import Connection, select

from tests.support.builders import ACCOUNT, ANN, APP, BEN
from tests.support.operator_webhook import post_body
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from tests.support.store_statements import fetch_column
from waypost.store.messages.recipients import find_recipients
from waypost.store.queue.job_subjects import QueueName
from waypost.store.tables import queue_jobs

FAILING: Final = (
    "CREATE TRIGGER fails BEFORE UPDATE OF delivered_on_ms ON messages WHEN new.delivered_on_ms IS NOT NULL "
    "BEGIN SELECT RAISE(ABORT, 'a defect'); END"
)

OTHER_NUMBER, USER = "15559990000", "US.1349"


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


async def test_names_in_a_webhook_are_stored_although_another_one_failed_in_the_same_transaction(
    proxied_pipeline: PipelineHarness,
) -> None:
    pipeline, database = proxied_pipeline, proxied_pipeline.waypost.database
    for phone in (ANN, BEN):
        await pipeline.open_window(phone)
    assert pipeline.operator_proxy is not None
    pipeline.operator_proxy.let_webhooks_pass = False
    ann, ben = [await pipeline.send_text(to=phone) for phone in (ANN, BEN)]
    for message_id in (ann, ben):
        await pipeline.wait_for_state(message_id, "enqueued")
    await database.write(run, FAILING.replace("IS NOT NULL", f"IS NOT NULL AND new.id = '{ben}'"))
    names = {"recipient_id": OTHER_NUMBER, "recipient_user_id": USER}
    bodies = [await status_body(pipeline, ann, **names), await status_body(pipeline, ben)]
    release = threading.Event()

    blocking = asyncio.ensure_future(database.write(wait_for, release))
    posts = [asyncio.ensure_future(post_body(pipeline, body)) for body in bodies]
    await poll_until(lambda: pending_writes(pipeline), lambda count: count == len(bodies))
    release.set()
    await asyncio.gather(blocking, *posts)

    await pipeline.events_of(ann, until="delivered")
    keys = {(APP.id, name) for name in (ANN, OTHER_NUMBER, USER)}
    found = await database.read(find_recipients, keys)
    assert (found.keys(), len(set(found.values()))) == (keys, 1)
    await database.write(run, "DROP TRIGGER fails")
    await pipeline.events_of(ben, until="delivered")


async def status_body(pipeline: PipelineHarness, message_id: str, **names: str) -> bytes:
    """Return a webhook that says that a message was delivered."""
    [delivery] = await pipeline.deliveries(message_id)
    status: dict[str, Any] = {"id": delivery["wamid"], "status": "delivered", "timestamp": "1776944126", **names}
    value = {"metadata": {"phone_number_id": APP.phone_number_id}, "statuses": [status]}
    entry = {"id": ACCOUNT.id, "changes": [{"field": "messages", "value": value}]}
    return json.dumps({"object": "whatsapp_business_account", "entry": [entry]}).encode()


async def pending_writes(pipeline: PipelineHarness) -> int:
    return pipeline.waypost.database.pending_writes


def wait_for(_connection: Connection, release: threading.Event) -> None:
    release.wait()
