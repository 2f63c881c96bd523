"""The street runs on while what is old is forgotten, and knows no more of it than that it was."""

import asyncio
from collections.abc import Sequence

from sqlalchemy import Connection, func, insert, select

from tests.conftest import MakeStreet
from tests.support.asking import column_of
from tests.support.builders import ANN, message
from tests.support.patience import patiently
from tests.support.street import Street
from waypost.base.clock import DAY_MS, VirtualClock
from waypost.domain.message import Message, MessageState
from waypost.domain.session_messages.plain import SessionText
from waypost.store.encoding import message_columns
from waypost.store.tables import callbacks, messages


async def test_message_whose_words_are_gone_can_still_be_answered_and_traced(make_street: MakeStreet) -> None:
    clock = VirtualClock()
    street = await make_street(clock=clock, changes={"public_url": "http://127.0.0.1"})
    template_id = await street.approved_template()
    old = await street.send(template_id, postback_texts={0: "yes please"})
    await street.events_of(old, until="delivered")
    [delivery] = await street.deliveries(old)
    await _everything_is_told(street)

    clock.set(at_ms=clock.now_ms() + 38 * DAY_MS)  # on PostgreSQL callbacks go with their week
    await street.waypost.retention.turn()

    trace = await street.trace(old)
    assert (trace["state"], trace["words_kept"], trace["callbacks"]) == ("delivered", False, [])
    assert [line["news"] for line in trace["news"]] == ["enqueued", "sent", "delivered"]
    callback = await street.tap(ANN, 0, message_id=delivery["wamid"])
    assert callback["payload"]["context"]["gsId"] == old
    young = await street.send_text("Hello again")
    await street.events_of(young, until="delivered")


async def test_sends_are_answered_while_thousands_of_rows_are_forgotten(make_street: MakeStreet) -> None:
    street = await make_street()
    template_id = await street.approved_template()
    old_ms = street.clock.now_ms() - 500 * DAY_MS
    await street.waypost.database.write(_add_delivered, [_old(old_ms, n) for n in range(4_000)])

    forgetting = asyncio.create_task(street.waypost.retention.turn())
    sent: list[str] = []
    meanwhile = 0
    while len(sent) < 40:
        sent.append(await street.send(template_id, to=f"1555{len(sent):07}"))
        meanwhile += not forgetting.done()
    await forgetting

    for one in sent:
        await street.events_of(one, until="delivered")
    left = await street.waypost.database.read(_count_older, old_ms + DAY_MS)
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


async def _everything_is_told(street: Street) -> None:
    """No callback is still to be delivered, and no entry of the old messages is left to work."""
    waits = select(func.count()).select_from(callbacks).where(callbacks.c.ended_on_ms.is_(None))

    async def are_left() -> bool:
        [left] = await column_of(street.waypost.database, waits)
        return bool(left) or any(any(counts.values()) for counts in (await street.queue_depths()).values())

    await patiently(are_left, _is_false)


def _is_false(claim: bool) -> bool:
    return not claim
