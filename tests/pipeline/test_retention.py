"""The pipeline runs on while what is old is forgotten, and knows no more of it than that it was."""

import asyncio
from collections.abc import Sequence

from sqlalchemy import Connection, func, insert, select

from tests.conftest import MakePipeline
from tests.support.builders import ANN, message
from tests.support.pipeline import PipelineHarness
from tests.support.store_statements import column_of
from tests.support.waiting import patiently
from waypost.base.clock import DAY_MS, VirtualClock
from waypost.domain.message import Message, MessageState
from waypost.domain.session_messages.plain import SessionText
from waypost.store.encoding import message_columns
from waypost.store.tables import callbacks, messages


async def test_message_whose_words_are_gone_can_still_be_answered_and_traced(make_pipeline: MakePipeline) -> None:
    clock = VirtualClock()
    pipeline = await make_pipeline(clock=clock, changes={"public_url": "http://127.0.0.1"})
    template_id = await pipeline.approved_template()
    old = await pipeline.send(template_id, postback_texts={0: "yes please"})
    await pipeline.events_of(old, until="delivered")
    [delivery] = await pipeline.deliveries(old)
    await _everything_is_told(pipeline)

    clock.set(at_ms=clock.now_ms() + 38 * DAY_MS)  # on PostgreSQL callbacks go with their week
    await pipeline.waypost.retention.run_turn()

    trace = await pipeline.trace(old)
    assert (trace["state"], trace["words_kept"], trace["callbacks"]) == ("delivered", False, [])
    assert [line["news"] for line in trace["news"]] == ["enqueued", "sent", "delivered"]
    callback = await pipeline.tap(ANN, 0, message_id=delivery["wamid"])
    assert callback["payload"]["context"]["gsId"] == old
    young = await pipeline.send_text("Hello again")
    await pipeline.events_of(young, until="delivered")


async def test_sends_are_answered_while_thousands_of_rows_are_forgotten(make_pipeline: MakePipeline) -> None:
    pipeline = await make_pipeline()
    template_id = await pipeline.approved_template()
    old_ms = pipeline.clock.now_ms() - 500 * DAY_MS
    await pipeline.waypost.database.write(_add_delivered, [_old(old_ms, n) for n in range(4_000)])

    forgetting = asyncio.create_task(pipeline.waypost.retention.run_turn())
    sent: list[str] = []
    meanwhile = 0
    while len(sent) < 40:
        sent.append(await pipeline.send(template_id, to=f"1555{len(sent):07}"))
        meanwhile += not forgetting.done()
    await forgetting

    for one in sent:
        await pipeline.events_of(one, until="delivered")
    left = await pipeline.waypost.database.read(_count_older, old_ms + DAY_MS)
    assert left == 0
    assert meanwhile > 1


def _old(at_ms: int, number: int) -> Message:
    digits = f"{at_ms:012x}"
    return message(
        content=SessionText("Hello"), id=f"{digits[:8]}-{digits[8:]}-7000-8000-{number:012d}", accepted_on_ms=at_ms
    )


def _add_delivered(connection: Connection, old: Sequence[Message]) -> None:
    rows = [{**message_columns(one), "state": MessageState.DELIVERED.value} for one in old]
    connection.execute(insert(messages), rows)


def _count_older(connection: Connection, at_ms: int) -> int:
    found = select(func.count()).select_from(messages).where(messages.c.accepted_on_ms < at_ms)
    return connection.execute(found).scalar_one()


async def _everything_is_told(pipeline: PipelineHarness) -> None:
    """No callback is still to be delivered, and no entry of the old messages is left to work."""
    waits = select(func.count()).select_from(callbacks).where(callbacks.c.ended_on_ms.is_(None))

    async def are_left() -> bool:
        [left] = await column_of(pipeline.waypost.database, waits)
        return bool(left) or any(any(counts.values()) for counts in (await pipeline.queue_depths()).values())

    await patiently(are_left, _is_false)


def _is_false(claim: bool) -> bool:
    return not claim
