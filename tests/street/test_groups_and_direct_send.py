"""What is posted in the operator's own words arrives whole; groups are kept apart from people."""

import json
from asyncio import sleep
from typing import Any, Final

import pytest
from sqlalchemy import Connection, select

from tests.support.builders import ANN, APP, is_event
from tests.support.operator_webhook import tell_of_messages
from tests.support.patience import patiently
from tests.support.recorded_sends import RecordedSends
from tests.support.street import API_KEY, Street
from tests.support.third_version import ThirdVersion, listening, value_of
from waypost.store.tables import inbound_messages, recipients, webhook_items

BO: Final = "15557654321"
GROUP: Final = "Y2FwaV9ncm91cDoxMjM0NTY3ODkw"
PATH: Final = f"/partner/app/{APP.id}/v3/message"
TEXT: Final = {"messaging_product": "whatsapp", "to": ANN, "type": "text", "text": {"body": "Hello"}}


async def post(street: Street, body: dict[str, Any]) -> Any:
    """Post a JSON body to the passthrough."""
    async with street.http.post(
        street.service_url + PATH, json=body, headers={"Authorization": street.app_token}
    ) as answer:
        return answer.status, await answer.json()


@pytest.fixture
async def street(make_street: Any) -> Street:
    """A street whose line to the operator keeps what passes."""
    return await make_street(between=RecordedSends())


async def sent_body(street: Street, message_id: str) -> dict[str, Any]:
    """What the operator was sent, once it has it."""
    assert isinstance(street.between, RecordedSends)
    bodies = street.between.bodies
    await patiently(lambda: sleep(0, bodies), lambda bodies: message_id in bodies)
    return bodies[message_id]


async def people(street: Street) -> list[Any]:
    def read(connection: Connection) -> list[Any]:
        return list(connection.execute(select(recipients)).all())

    return await street.waypost.database.read(read)


def from_group(**more: Any) -> dict[str, Any]:
    return {
        "from": ANN, "id": "wamid.g1", "timestamp": "1760000000", "type": "text",
        "text": {"body": "Hello all"}, "group_id": GROUP, **more,
    }  # fmt: skip


async def test_message_to_a_group_arrives_there_and_makes_nobody_a_recipient(street: Street) -> None:
    async with listening(street, "GROUP_MESSAGING_EVENTS,ENQUEUED") as third:
        status, answer = await post(street, TEXT | {"to": GROUP, "recipient_type": "group"})
        message_id = answer["messages"][0]["id"]
        body = await sent_body(street, message_id)
        sent = await third.status(message_id, "sent")
        enqueued = await third.status(message_id, "enqueued")

    assert status == 200
    assert answer["contacts"] == [{"input": GROUP, "wa_id": GROUP}]
    assert body == TEXT | {"to": GROUP, "recipient_type": "group", "biz_opaque_callback_data": message_id}  # fmt: skip
    assert (sent["recipient_id"], sent["recipient_type"]) == (GROUP, "group")
    assert (enqueued["recipient_id"], enqueued["recipient_type"]) == (GROUP, "group")
    assert type(enqueued["timestamp"]) is int
    assert await people(street) == []
    assert (await street.trace(message_id))["recipient_id"] is None


async def test_version_2_hears_that_a_groups_message_is_enqueued_and_no_more(street: Street) -> None:
    _, answer = await post(street, TEXT | {"to": GROUP, "recipient_type": "group"})
    message_id = answer["messages"][0]["id"]
    await street.wait_for_state(message_id, "sent")
    await street.reply(BO, "Done")

    heard = [one["payload"] for one in street.callbacks if one["type"] == "message-event"]
    assert [(one["type"], one["destination"]) for one in heard] == [("enqueued", GROUP)]


async def test_every_members_status_is_called_back(street: Street) -> None:
    async with listening(street, "GROUP_MESSAGING_EVENTS") as third:
        _, answer = await post(street, TEXT | {"to": GROUP, "recipient_type": "group"})
        message_id = answer["messages"][0]["id"]
        await third.status(message_id, "sent")
        [delivery] = await street.deliveries(message_id)
        statuses = [
            {
                "id": delivery["wamid"], "status": status, "timestamp": "1760000000",
                "recipient_id": GROUP, "recipient_type": "group", "recipient_participant_id": member,
                "biz_opaque_callback_data": message_id,
            }
            for status, member in (("read", ANN), ("delivered", BO), ("read", BO))
        ]  # fmt: skip
        await tell_of_messages(street, statuses=statuses)
        bodies = await third.sink.wait_for(lambda _: True, count=4)

    told = [value_of(body)["statuses"][0] for body in bodies][1:]
    assert [(one["status"], one["recipient_participant_id"]) for one in told] == [
        ("read", ANN), ("delivered", BO), ("read", BO),
    ]  # fmt: skip
    assert (await street.trace(message_id))["state"] == "read"
    assert await people(street) == []


@pytest.mark.parametrize("modes", ["MESSAGE", "GROUP_MESSAGING_EVENTS", "MESSAGE,GROUP_MESSAGING_EVENTS", "ALL"])
async def test_message_from_a_group_reaches_no_private_conversation(street: Street, modes: str) -> None:
    await street.open_window(BO)
    before = await people(street)
    async with listening(street, modes) as third:
        await tell_of_messages(street, messages=[from_group()], contacts=[{"wa_id": ANN, "profile": {"name": "Ann"}}])
        value = await third.message("wamid.g1")
        await street.reply(BO, "Private")

    def kept(connection: Connection) -> list[Any]:
        asked = select(inbound_messages.c.recipient_id, webhook_items.c.item).join(
            webhook_items, webhook_items.c.id == inbound_messages.c.item_id
        ).where(inbound_messages.c.operator_message_id == "wamid.g1")  # fmt: skip
        return list(connection.execute(asked).all())

    assert value["messages"] == [from_group()]
    assert value["contacts"] == [{"wa_id": ANN, "profile": {"name": "Ann"}}]
    assert [row.phone_number for row in await people(street)] == [row.phone_number for row in before] == [BO]
    [row] = await street.waypost.database.read(kept)
    assert row.recipient_id == 0
    heard = [one["payload"]["payload"] for one in street.callbacks if is_event("message")(one)]
    assert {"text": "Hello all"} not in heard
    groups = [one for one in third.sink.callbacks if value_of(one).get("messages", [{}])[0].get("group_id")]
    assert len(groups) == 1


async def test_message_from_a_group_does_not_open_a_window_that_was_shut(street: Street) -> None:
    """Ann is known, and has not written for a day."""
    await street.open_window(ANN)
    [before] = await people(street)
    async with listening(street, "ALL") as third:
        later = str(street.clock.now_ms() // 1000 + 3600)
        await tell_of_messages(street, messages=[from_group(timestamp=later)])
        await third.message("wamid.g1")

    [after] = await people(street)
    assert after == before


async def test_message_from_a_group_can_be_looked_at_without_a_sender(street: Street, third: ThirdVersion) -> None:
    await tell_of_messages(street, messages=[from_group()])
    await third.message("wamid.g1")

    answer = await street.ask("GET", f"/wa/app/{APP.id}/msg/wamid.g1", headers={"apikey": API_KEY})

    assert answer.status == 200, answer
    assert "source" not in answer.body["message"]


@pytest.mark.parametrize(("category", "ttl_s"), [("utility", 600), ("authentication", 900), ("UTILITY", None)])
async def test_direct_send_keeps_its_category_and_its_lifetime(
    street: Street, category: str, ttl_s: int | None
) -> None:
    """Without a window a free text fails; with its category it is delivered."""
    direct = {"category": category} | ({"ttl_seconds": ttl_s} if ttl_s else {})

    _, answer = await post(street, TEXT | direct)
    message_id = answer["messages"][0]["id"]
    await street.wait_for_state(message_id, "delivered")

    assert await sent_body(street, message_id) == TEXT | direct | {
        "recipient_type": "individual", "biz_opaque_callback_data": message_id,
    }  # fmt: skip
    [shown] = await street.inbox()
    assert shown["text"] == "Hello"


async def test_free_text_without_a_category_is_no_direct_send(street: Street) -> None:
    _, answer = await post(street, TEXT)
    message_id = answer["messages"][0]["id"]

    trace = await street.wait_for_state(message_id, "failed")

    assert trace["code"] == 131047


@pytest.mark.parametrize(
    "wrong",
    [{"category": "marketing"}, {"category": "utility", "ttl_seconds": 29}, {"ttl_seconds": 600}],
    ids=json.dumps,
)
async def test_what_direct_send_does_not_allow_is_refused_by_the_operator_by_name(
    street: Street, wrong: dict[str, Any]
) -> None:
    _, answer = await post(street, TEXT | wrong)

    trace = await street.wait_for_state(answer["messages"][0]["id"], "failed")

    assert trace["code"] == 100
    assert list(wrong)[-1] in trace["reason"]


@pytest.mark.parametrize("to", [f"+{ANN}", f"{ANN[:1]} {ANN[1:4]} {ANN[4:]}", f" {ANN} ", ANN, int(ANN)])
async def test_recipient_is_sent_exactly_as_received_and_kept_in_digits(street: Street, to: str | int) -> None:
    await street.open_window()

    _, answer = await post(street, TEXT | {"to": to})
    message_id = answer["messages"][0]["id"]
    body = await sent_body(street, message_id)

    assert body["to"] == to
    assert (await street.trace(message_id))["destination"] == ANN


async def test_partners_own_callback_data_comes_back_with_every_status(street: Street, third: ThirdVersion) -> None:
    await street.open_window()

    _, answer = await post(street, TEXT | {"biz_opaque_callback_data": "order 7, part 2"})
    message_id = answer["messages"][0]["id"]
    body = await sent_body(street, message_id)
    delivered = await third.status(message_id, "delivered")

    assert body["biz_opaque_callback_data"] == f"{message_id} order 7, part 2"
    assert delivered["biz_opaque_callback_data"] == "order 7, part 2"


async def test_context_keeps_its_other_members_and_gets_the_operators_id(street: Street) -> None:
    await street.open_window()
    first = await street.send_text()
    await street.events_of(first, until="delivered")
    [delivery] = await street.deliveries(first)

    _, answer = await post(street, TEXT | {"context": {"message_id": first, "odd": [1, None]}})
    body = await sent_body(street, answer["messages"][0]["id"])

    assert body["context"] == {"message_id": delivery["wamid"], "odd": [1, None]}
