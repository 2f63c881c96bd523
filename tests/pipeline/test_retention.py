"""The pipeline runs while retention deletes old rows and contents; the trace of a message remains."""

import asyncio
from collections.abc import Sequence

from sqlalchemy import Connection, func, insert, select

from tests.conftest import MakePipeline
from tests.support.builders import ANN, message
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from tests.support.store_statements import fetch_column
from waypost.base.clock import DAY_MS, VirtualClock
from waypost.domain.message import Message, MessageState
from waypost.domain.session_messages.plain import SessionText
from waypost.store.encoding import content_kind, encode_content
from waypost.store.tables import callbacks, messages


async def test_message_with_deleted_content_can_still_be_replied_to_and_traced(make_pipeline: MakePipeline) -> None:
    clock = VirtualClock()
    pipeline = await make_pipeline(clock=clock, changes={"public_url": "http://127.0.0.1"})
    template_id = await pipeline.approved_template()
    old_id = await pipeline.send(template_id, postback_texts={0: "yes please"})
    await pipeline.events_of(old_id, until="delivered")
    [delivery] = await pipeline.deliveries(old_id)
    await _wait_until_idle(pipeline)

    clock.set(at_ms=clock.now_ms() + 38 * DAY_MS)  # on PostgreSQL callbacks are deleted with their week
    await pipeline.waypost.retention.run_turn()

    trace = await pipeline.trace(old_id)
    assert (trace["state"], trace["content_retained"], trace["callbacks"]) == ("delivered", False, [])
    assert [step["event"] for step in trace["events"]] == ["enqueued", "sent", "delivered"]
    callback = await pipeline.tap(ANN, 0, message_id=delivery["wamid"])
    assert callback["payload"]["context"]["gsId"] == old_id
    new_id = await pipeline.send_text("Hello again")
    await pipeline.events_of(new_id, until="delivered")


async def test_sends_are_accepted_while_thousands_of_rows_are_deleted(make_pipeline: MakePipeline) -> None:
    pipeline = await make_pipeline()
    template_id = await pipeline.approved_template()
    old_ms = pipeline.clock.now_ms() - 500 * DAY_MS
    await pipeline.waypost.database.write(_add_delivered, [_make_old_message(old_ms, n) for n in range(4_000)])

    deletion = asyncio.create_task(pipeline.waypost.retention.run_turn())
    sent: list[str] = []
    meanwhile = 0
    while len(sent) < 40:
        sent.append(await pipeline.send(template_id, to=f"1555{len(sent):07}"))
        meanwhile += not deletion.done()
    await deletion

    for message_id in sent:
        await pipeline.events_of(message_id, until="delivered")
    remaining = await pipeline.waypost.database.read(_count_older, old_ms + DAY_MS)
    assert remaining == 0
    assert meanwhile > 1


def _make_old_message(at_ms: int, number: int) -> Message:
    digits = f"{at_ms:012x}"
    return message(
        content=SessionText("Hello"), id=f"{digits[:8]}-{digits[8:]}-7000-8000-{number:012d}", accepted_on_ms=at_ms
    )


def _add_delivered(connection: Connection, old: Sequence[Message]) -> None:
    connection.execute(
        insert(messages),
        [
            {
                "id": row.id, "partner_id": row.partner_id, "app_id": row.app_id, "source": row.source,
                "destination": row.destination, "kind": content_kind(row.content),
                "content": encode_content(row.content), "request": "", "sandbox": False,
                "state": MessageState.DELIVERED.value, "unconfirmed": False,
                "accepted_on_ms": row.accepted_on_ms, "changed_on_ms": row.accepted_on_ms,
            }
            for row in old
        ],
    )  # fmt: skip


def _count_older(connection: Connection, at_ms: int) -> int:
    query = select(func.count()).select_from(messages).where(messages.c.accepted_on_ms < at_ms)
    return connection.execute(query).scalar_one()


async def _wait_until_idle(pipeline: PipelineHarness) -> None:
    """Return when every callback is delivered and no job is left."""
    query = select(func.count()).select_from(callbacks).where(callbacks.c.ended_on_ms.is_(None))

    async def is_pending() -> bool:
        [callback_count] = await fetch_column(pipeline.waypost.database, query)
        return bool(callback_count) or any(any(counts.values()) for counts in (await pipeline.queue_depths()).values())

    await poll_until(is_pending, _is_false)


def _is_false(value: bool) -> bool:
    return not value
