"""What is posted in the operator's own words arrives whole; groups are kept apart from people."""

import json
from asyncio import sleep
from typing import Any, Final

import pytest
from sqlalchemy import Connection, select

from tests.support.builders import ANN, APP, is_event
from tests.support.operator_webhook import tell_of_messages
from tests.support.pipeline import API_KEY, PipelineHarness
from tests.support.recorded_sends import RecordedSends
from tests.support.version_3_receiver import ThirdVersion, listening, value_of
from tests.support.waiting import patiently
from waypost.store.tables import inbound_messages, recipients, webhook_items

BO: Final = "15557654321"
GROUP: Final = "Y2FwaV9ncm91cDoxMjM0NTY3ODkw"
PATH: Final = f"/partner/app/{APP.id}/v3/message"
TEXT: Final = {"messaging_product": "whatsapp", "to": ANN, "type": "text", "text": {"body": "Hello"}}


async def post(pipeline: PipelineHarness, body: dict[str, Any]) -> Any:
    """Post a JSON body to the passthrough."""
    async with pipeline.http.post(
        pipeline.service_url + PATH, json=body, headers={"Authorization": pipeline.app_token}
    ) as answer:
        return answer.status, await answer.json()


@pytest.fixture
async def pipeline(make_pipeline: Any) -> PipelineHarness:
    """A pipeline whose line to the operator keeps what passes."""
    return await make_pipeline(between=RecordedSends())


async def sent_body(pipeline: PipelineHarness, message_id: str) -> dict[str, Any]:
    """What the operator was sent, once it has it."""
    assert isinstance(pipeline.between, RecordedSends)
    bodies = pipeline.between.bodies
    await patiently(lambda: sleep(0, bodies), lambda bodies: message_id in bodies)
    return bodies[message_id]


async def people(pipeline: PipelineHarness) -> list[Any]:
    def read(connection: Connection) -> list[Any]:
        return list(connection.execute(select(recipients)).all())

    return await pipeline.waypost.database.read(read)


def from_group(**more: Any) -> dict[str, Any]:
    return {
        "from": ANN, "id": "wamid.g1", "timestamp": "1760000000", "type": "text",
        "text": {"body": "Hello all"}, "group_id": GROUP, **more,
    }  # fmt: skip


async def test_message_to_a_group_arrives_there_and_makes_nobody_a_recipient(pipeline: PipelineHarness) -> None:
    async with listening(pipeline, "GROUP_MESSAGING_EVENTS,ENQUEUED") as third:
        status, answer = await post(pipeline, TEXT | {"to": GROUP, "recipient_type": "group"})
        message_id = answer["messages"][0]["id"]
        body = await sent_body(pipeline, message_id)
        sent = await third.status(message_id, "sent")
        enqueued = await third.status(message_id, "enqueued")

    assert status == 200
    assert answer["contacts"] == [{"input": GROUP, "wa_id": GROUP}]
    assert body == TEXT | {"to": GROUP, "recipient_type": "group", "biz_opaque_callback_data": message_id}  # fmt: skip
    assert (sent["recipient_id"], sent["recipient_type"]) == (GROUP, "group")
    assert (enqueued["recipient_id"], enqueued["recipient_type"]) == (GROUP, "group")
    assert type(enqueued["timestamp"]) is int
    assert await people(pipeline) == []
    assert (await pipeline.trace(message_id))["recipient_id"] is None


async def test_version_2_hears_that_a_groups_message_is_enqueued_and_no_more(pipeline: PipelineHarness) -> None:
    _, answer = await post(pipeline, TEXT | {"to": GROUP, "recipient_type": "group"})
    message_id = answer["messages"][0]["id"]
    await pipeline.wait_for_state(message_id, "sent")
    await pipeline.reply(BO, "Done")

    heard = [one["payload"] for one in pipeline.callbacks if one["type"] == "message-event"]
    assert [(one["type"], one["destination"]) for one in heard] == [("enqueued", GROUP)]


async def test_every_members_status_is_called_back(pipeline: PipelineHarness) -> None:
    async with listening(pipeline, "GROUP_MESSAGING_EVENTS") as third:
        _, answer = await post(pipeline, TEXT | {"to": GROUP, "recipient_type": "group"})
        message_id = answer["messages"][0]["id"]
        await third.status(message_id, "sent")
        [delivery] = await pipeline.deliveries(message_id)
        statuses = [
            {
                "id": delivery["wamid"], "status": status, "timestamp": "1760000000",
                "recipient_id": GROUP, "recipient_type": "group", "recipient_participant_id": member,
                "biz_opaque_callback_data": message_id,
            }
            for status, member in (("read", ANN), ("delivered", BO), ("read", BO))
        ]  # fmt: skip
        await tell_of_messages(pipeline, statuses=statuses)
        bodies = await third.sink.wait_for(lambda _: True, count=4)

    told = [value_of(body)["statuses"][0] for body in bodies][1:]
    assert [(one["status"], one["recipient_participant_id"]) for one in told] == [
        ("read", ANN), ("delivered", BO), ("read", BO),
    ]  # fmt: skip
    assert (await pipeline.trace(message_id))["state"] == "read"
    assert await people(pipeline) == []


@pytest.mark.parametrize("modes", ["MESSAGE", "GROUP_MESSAGING_EVENTS", "MESSAGE,GROUP_MESSAGING_EVENTS", "ALL"])
async def test_message_from_a_group_reaches_no_private_conversation(pipeline: PipelineHarness, modes: str) -> None:
    await pipeline.open_window(BO)
    before = await people(pipeline)
    async with listening(pipeline, modes) as third:
        await tell_of_messages(pipeline, messages=[from_group()], contacts=[{"wa_id": ANN, "profile": {"name": "Ann"}}])
        value = await third.message("wamid.g1")
        await pipeline.reply(BO, "Private")

    def kept(connection: Connection) -> list[Any]:
        asked = select(inbound_messages.c.recipient_id, webhook_items.c.item).join(
            webhook_items, webhook_items.c.id == inbound_messages.c.item_id
        ).where(inbound_messages.c.operator_message_id == "wamid.g1")  # fmt: skip
        return list(connection.execute(asked).all())

    assert value["messages"] == [from_group()]
    assert value["contacts"] == [{"wa_id": ANN, "profile": {"name": "Ann"}}]
    assert [row.phone_number for row in await people(pipeline)] == [row.phone_number for row in before] == [BO]
    [row] = await pipeline.waypost.database.read(kept)
    assert row.recipient_id == 0
    heard = [one["payload"]["payload"] for one in pipeline.callbacks if is_event("message")(one)]
    assert {"text": "Hello all"} not in heard
    groups = [one for one in third.sink.callbacks if value_of(one).get("messages", [{}])[0].get("group_id")]
    assert len(groups) == 1


async def test_message_from_a_group_does_not_open_a_window_that_was_shut(pipeline: PipelineHarness) -> None:
    """Ann is known, and has not written for a day."""
    await pipeline.open_window(ANN)
    [before] = await people(pipeline)
    async with listening(pipeline, "ALL") as third:
        later = str(pipeline.clock.now_ms() // 1000 + 3600)
        await tell_of_messages(pipeline, messages=[from_group(timestamp=later)])
        await third.message("wamid.g1")

    [after] = await people(pipeline)
    assert after == before


async def test_message_from_a_group_can_be_looked_at_without_a_sender(
    pipeline: PipelineHarness, third: ThirdVersion
) -> None:
    await tell_of_messages(pipeline, messages=[from_group()])
    await third.message("wamid.g1")

    answer = await pipeline.ask("GET", f"/wa/app/{APP.id}/msg/wamid.g1", headers={"apikey": API_KEY})

    assert answer.status == 200, answer
    assert "source" not in answer.body["message"]


@pytest.mark.parametrize(("category", "ttl_s"), [("utility", 600), ("authentication", 900), ("UTILITY", None)])
async def test_direct_send_keeps_its_category_and_its_lifetime(
    pipeline: PipelineHarness, category: str, ttl_s: int | None
) -> None:
    """Without a window a free text fails; with its category it is delivered."""
    direct = {"category": category} | ({"ttl_seconds": ttl_s} if ttl_s else {})

    _, answer = await post(pipeline, TEXT | direct)
    message_id = answer["messages"][0]["id"]
    await pipeline.wait_for_state(message_id, "delivered")

    assert await sent_body(pipeline, message_id) == TEXT | direct | {
        "recipient_type": "individual", "biz_opaque_callback_data": message_id,
    }  # fmt: skip
    [shown] = await pipeline.inbox()
    assert shown["text"] == "Hello"


async def test_free_text_without_a_category_is_no_direct_send(pipeline: PipelineHarness) -> None:
    _, answer = await post(pipeline, TEXT)
    message_id = answer["messages"][0]["id"]

    trace = await pipeline.wait_for_state(message_id, "failed")

    assert trace["code"] == 131047


@pytest.mark.parametrize(
    "wrong",
    [{"category": "marketing"}, {"category": "utility", "ttl_seconds": 29}, {"ttl_seconds": 600}],
    ids=json.dumps,
)
async def test_what_direct_send_does_not_allow_is_refused_by_the_operator_by_name(
    pipeline: PipelineHarness, wrong: dict[str, Any]
) -> None:
    _, answer = await post(pipeline, TEXT | wrong)

    trace = await pipeline.wait_for_state(answer["messages"][0]["id"], "failed")

    assert trace["code"] == 100
    assert list(wrong)[-1] in trace["reason"]


@pytest.mark.parametrize("to", [f"+{ANN}", f"{ANN[:1]} {ANN[1:4]} {ANN[4:]}", f" {ANN} ", ANN, int(ANN)])
async def test_recipient_is_sent_exactly_as_received_and_kept_in_digits(
    pipeline: PipelineHarness, to: str | int
) -> None:
    await pipeline.open_window()

    _, answer = await post(pipeline, TEXT | {"to": to})
    message_id = answer["messages"][0]["id"]
    body = await sent_body(pipeline, message_id)

    assert body["to"] == to
    assert (await pipeline.trace(message_id))["destination"] == ANN


async def test_partners_own_callback_data_comes_back_with_every_status(
    pipeline: PipelineHarness, third: ThirdVersion
) -> None:
    await pipeline.open_window()

    _, answer = await post(pipeline, TEXT | {"biz_opaque_callback_data": "order 7, part 2"})
    message_id = answer["messages"][0]["id"]
    body = await sent_body(pipeline, message_id)
    delivered = await third.status(message_id, "delivered")

    assert body["biz_opaque_callback_data"] == f"{message_id} order 7, part 2"
    assert delivered["biz_opaque_callback_data"] == "order 7, part 2"


async def test_context_keeps_its_other_members_and_gets_the_operators_id(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    first = await pipeline.send_text()
    await pipeline.events_of(first, until="delivered")
    [delivery] = await pipeline.deliveries(first)

    _, answer = await post(pipeline, TEXT | {"context": {"message_id": first, "odd": [1, None]}})
    body = await sent_body(pipeline, answer["messages"][0]["id"])

    assert body["context"] == {"message_id": delivery["wamid"], "odd": [1, None]}
