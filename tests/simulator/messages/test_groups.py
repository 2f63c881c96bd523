"""Messages to groups."""

import asyncio
import json
from typing import Any

import pytest

from tests.simulator.conftest import ANN, NUMBER_ID, WABA, Bench
from tests.support.manual_clock import ManualClock

BOB = "15557654321"
GROUP = "Y2FwaV9ncm91cDoxMjM0NTY3ODkw"
GROUP_MESSAGE = {"recipient_type": "group", "to": GROUP, "type": "text", "text": {"body": "Hello all"}}


async def create_group(bench: Bench, *phones: str) -> str:
    """Create a group that these phones have joined; return its id."""
    body = {"messaging_product": "whatsapp", "subject": "Tea"}
    await bench.graph("POST", f"{NUMBER_ID}/groups", json=body)
    [group] = (await bench.control("GET", "groups")).body["groups"]
    for phone in phones:
        await bench.control("POST", f"phones/{phone}/groups", {"invite_link": group["invite_link"]})
    return group["group_id"]


async def send_to_group(bench: Bench, group_id: str, text: str = "Hello all", **more: Any) -> str:
    response = await bench.send(GROUP_MESSAGE | {"to": group_id, "text": {"body": text}} | more)
    assert response.status == 200, response.body
    return response.body["messages"][0]["id"]


async def shown_in_group(bench: Bench, phone: str, group_id: str) -> list[dict[str, Any]]:
    """Return the messages that a phone shows in a group."""
    return (await bench.control("GET", f"phones/{phone}/groups/{group_id}")).body["messages"]


async def group_statuses(bench: Bench, wamid: str, count: int) -> list[tuple[str, str]]:
    """Return kind and participant of a message's statuses, once there are so many."""
    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) >= count)
    return [(status["status"], status.get("recipient_participant_id", "")) for status in bench.receiver.statuses(wamid)]


async def test_group_message_is_delivered_to_each_participant(bench: Bench) -> None:
    group_id = await create_group(bench, ANN, BOB)
    response = await bench.send(GROUP_MESSAGE | {"to": group_id, "biz_opaque_callback_data": "mine"})

    assert response.status == 200, response.body
    assert response.body["contacts"] == [{"input": group_id, "wa_id": group_id}]
    wamid = response.body["messages"][0]["id"]
    statuses = await group_statuses(bench, wamid, 3)
    assert sorted(statuses) == [("delivered", ANN), ("delivered", BOB), ("sent", "")]
    for status in bench.receiver.statuses(wamid):
        assert (status["recipient_id"], status["recipient_type"]) == (group_id, "group")
        assert status["biz_opaque_callback_data"] == "mine"
    [delivered] = [status for status in bench.receiver.statuses(wamid) if status.get("recipient_participant_id") == ANN]
    assert delivered["pricing"]["category"] == "group_service"
    assert delivered["pricing"]["billable"] is False
    deliveries = (await bench.control("GET", "deliveries")).body["deliveries"]
    assert [(delivery["to"], delivery["state"]) for delivery in deliveries] == [(f"group:{group_id}", "sent")]
    for phone in (ANN, BOB):
        [message] = await shown_in_group(bench, phone, group_id)
        assert (message["wamid"], message["text"], message["direction"]) == (wamid, "Hello all", "to_phone")
        assert await bench.inbox(phone) == []


async def test_reading_a_group_reports_it_for_that_participant(bench: Bench) -> None:
    group_id = await create_group(bench, ANN, BOB)
    wamid = await send_to_group(bench, group_id)
    await group_statuses(bench, wamid, 3)

    first = await bench.control("POST", f"phones/{ANN}/groups/{group_id}/read")
    again = await bench.control("POST", f"phones/{ANN}/groups/{group_id}/read")

    assert (first.body["read"], again.body["read"]) == (1, 0)
    assert (await group_statuses(bench, wamid, 4))[-1] == ("read", ANN)
    assert [message["state"] for message in await shown_in_group(bench, ANN, group_id)] == ["read"]
    assert [message["state"] for message in await shown_in_group(bench, BOB, group_id)] == ["delivered"]


async def test_message_of_a_participant_has_the_id_of_the_group(bench: Bench) -> None:
    group_id = await create_group(bench, ANN, BOB)
    sent = await send_to_group(bench, group_id)

    body = {"type": "text", "text": "Me too", "context_id": sent}
    written = await bench.control("POST", f"phones/{ANN}/groups/{group_id}/messages", body)
    [message] = await bench.receiver.wait_until(bench.receiver.messages)

    assert (message["from"], message["group_id"], message["text"]) == (ANN, group_id, {"body": "Me too"})
    assert message["id"] == written.body["wamid"]
    assert message["context"]["id"] == sent
    shown = await shown_in_group(bench, BOB, group_id)
    assert [(item["text"], item.get("from")) for item in shown] == [("Hello all", None), ("Me too", ANN)]
    assert (await bench.control("GET", f"phones/{ANN}/chats")).body["chats"][0]["window_until_ms"] is None
    assert (await group_statuses(bench, sent, 4))[-1] == ("read", ANN)


async def test_phone_shows_what_was_written_since_it_joined(slow: Bench, clock: ManualClock) -> None:
    group_id = await create_group(slow, ANN)
    await send_to_group(slow, group_id, "Before")
    clock.advance(ms=2000)
    [group] = (await slow.control("GET", "groups")).body["groups"]
    await slow.control("POST", f"phones/{BOB}/groups", {"invite_link": group["invite_link"]})
    await send_to_group(slow, group_id, "After")
    clock.advance(ms=2000)

    assert [item["text"] for item in await shown_in_group(slow, ANN, group_id)] == ["Before", "After"]
    assert [item["text"] for item in await shown_in_group(slow, BOB, group_id)] == ["After"]


async def test_offline_participant_gets_it_later(slow: Bench, clock: ManualClock) -> None:
    group_id = await create_group(slow, ANN, BOB)
    await slow.control("PUT", f"phones/{BOB}", {"read_after_ms": 500})
    first = await send_to_group(slow, group_id, "First")
    await slow.control("PUT", f"phones/{BOB}", {"is_offline": True})
    second = await send_to_group(slow, group_id, "Second")
    clock.advance(ms=2000)

    assert sorted(await group_statuses(slow, first, 2)) == [("delivered", ANN), ("sent", "")]
    assert await shown_in_group(slow, BOB, group_id) == []
    assert (await slow.control("POST", f"phones/{BOB}/groups/{group_id}/read")).status == 409
    await slow.control("PUT", f"phones/{BOB}", {"is_offline": False})
    assert [item["text"] for item in await shown_in_group(slow, BOB, group_id)] == ["First", "Second"]
    clock.advance(ms=1000)
    for wamid in (first, second):
        assert (await group_statuses(slow, wamid, 4))[-2:] == [("delivered", BOB), ("read", BOB)]


async def test_phone_that_is_not_in_the_group_sees_and_writes_nothing(bench: Bench) -> None:
    group_id = await create_group(bench, ANN)
    await send_to_group(bench, group_id)
    path = f"phones/{BOB}/groups/{group_id}"

    assert (await bench.control("GET", path)).status == 404
    assert (await bench.control("POST", f"{path}/messages", {"text": "Hi"})).status == 404
    assert (await bench.control("POST", f"{path}/read")).status == 404


async def test_reply_to_a_message_of_another_chat_is_rejected(bench: Bench) -> None:
    group_id = await create_group(bench, ANN)
    private = await bench.send_from_phone()
    path = f"phones/{ANN}/groups/{group_id}/messages"

    reply = await bench.control("POST", path, {"text": "Hi", "context_id": private})
    reaction = {"message_id": private, "emoji": "+"}
    reacted = await bench.control("POST", path, {"type": "reaction", "reaction": reaction})

    assert (reply.status, reply.body["field"]) == (404, "context_id")
    assert (reacted.status, reacted.body["field"]) == (404, "reaction.message_id")


async def test_waiting_for_a_message_of_a_group_ends_with_it(bench: Bench) -> None:
    group_id = await create_group(bench, ANN)
    waiting = asyncio.create_task(bench.control("GET", f"phones/{ANN}/groups/{group_id}?wait_ms=20000"))
    await send_to_group(bench, group_id)

    shown = (await waiting).body["messages"]

    assert [message["text"] for message in shown] == ["Hello all"]


async def test_waiting_for_a_group_whose_messages_are_read_ends_with_the_next(bench: Bench) -> None:
    group_id = await create_group(bench, ANN)
    await send_to_group(bench, group_id)
    path = f"phones/{ANN}/groups/{group_id}"
    unread = await bench.control("GET", f"{path}?wait_ms=20000")
    await bench.control("POST", f"{path}/read")
    waiting = asyncio.create_task(bench.control("GET", f"{path}?wait_ms=20000"))
    await asyncio.sleep(0.05)
    await send_to_group(bench, group_id)

    assert len(unread.body["messages"]) == 1
    assert len((await waiting).body["messages"]) == 2


@pytest.mark.parametrize(("phones", "code"), [((), 131020), (None, 131041)])
async def test_group_that_nobody_can_read_is_rejected(bench: Bench, phones: Any, code: int) -> None:
    group_id = GROUP if phones is None else await create_group(bench)

    response = await bench.send(GROUP_MESSAGE | {"to": group_id})

    assert (response.status, response.body["error"]["code"]) == (400, code)


@pytest.mark.parametrize("to", ["", " ", None, 7, "g" * 201])
async def test_invalid_group_id_is_rejected(bench: Bench, to: Any) -> None:
    response = await bench.send(GROUP_MESSAGE | {"to": to})

    assert (response.status, response.body["error"]["code"]) == (400, 100)


async def test_content_of_a_group_message_is_validated(bench: Bench) -> None:
    response = await bench.send(GROUP_MESSAGE | {"text": {}})

    assert (response.status, response.body["error"]["code"]) == (400, 100)


async def test_unknown_recipient_type_is_rejected(bench: Bench) -> None:
    response = await bench.send(GROUP_MESSAGE | {"recipient_type": "broadcast"})

    assert response.status == 400
    assert "individual, group" in json.dumps(response.body)


async def test_any_group_webhook_can_be_sent(bench: Bench) -> None:
    message = {
        "from": ANN,
        "id": "wamid.g",
        "timestamp": "1",
        "type": "text",
        "text": {"body": "Hi"},
        "group_id": GROUP,
    }
    value = {"messaging_product": "whatsapp", "metadata": {"phone_number_id": NUMBER_ID}, "messages": [message]}

    await bench.control("POST", f"accounts/{WABA}/webhooks", {"field": "messages", "value": value})

    await bench.receiver.wait_until(lambda: value in bench.receiver.changes())
