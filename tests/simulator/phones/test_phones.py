"""Taps, replies and reads of phones, and the webhooks the business receives."""

import asyncio
from typing import Any

import pytest

from tests.simulator.conftest import ANN, ANN_USER_ID, BUSINESS, NUMBER_ID, Bench
from tests.support.manual_clock import ManualClock

TWO_REPLIES: list[dict[str, Any]] = [
    {"type": "BODY", "text": "Shall we come?"},
    {"type": "BUTTONS", "buttons": [{"type": "QUICK_REPLY", "text": "Yes"}, {"type": "QUICK_REPLY", "text": "No"}]},
]
PAYLOADS = [
    {
        "type": "button",
        "sub_type": "quick_reply",
        "index": str(index),
        "parameters": [{"type": "payload", "payload": text}],
    }
    for index, text in enumerate(("ok-1", "no-1"))
]


async def test_tap_returns_the_payload_of_its_own_index(bench: Bench) -> None:
    await bench.seed_template(TWO_REPLIES)
    sent = await bench.send_template(PAYLOADS)
    wamid = sent.body["messages"][0]["id"]

    tapped = await bench.control("POST", f"phones/{ANN}/tap", {"index": 1})

    [message] = await bench.receiver.wait_until(bench.receiver.messages)
    assert message["type"] == "button"
    assert message["button"] == {"payload": "no-1", "text": "No"}
    assert message["context"] == {"from": BUSINESS, "id": wamid}
    assert message["from"] == ANN
    assert message["id"] == tapped.body["wamid"]
    assert tapped.body["message_id"] == wamid


async def test_tap_without_a_payload_returns_the_label(bench: Bench) -> None:
    await bench.seed_template(TWO_REPLIES)
    await bench.send_template()

    await bench.control("POST", f"phones/{ANN}/tap", {"text": "Yes"})

    [message] = await bench.receiver.wait_until(bench.receiver.messages)
    assert message["button"] == {"payload": "Yes", "text": "Yes"}


async def test_tap_implies_read(bench: Bench) -> None:
    await bench.seed_template(TWO_REPLIES)
    sent = await bench.send_template(biz_opaque_callback_data="mine")
    wamid = sent.body["messages"][0]["id"]

    await bench.control("POST", f"phones/{ANN}/tap", {"index": 0})

    await bench.receiver.wait_until(bench.receiver.messages)
    statuses = bench.receiver.statuses(wamid)
    assert [status["status"] for status in statuses] == ["sent", "delivered", "read"]
    assert statuses[-1]["biz_opaque_callback_data"] == "mine"
    inbox = await bench.control("GET", f"phones/{ANN}")
    assert inbox.body["messages"][0]["state"] == "read"


async def test_tap_sends_a_planned_read_early_and_only_once(slow: Bench, clock: ManualClock) -> None:
    await slow.control("PUT", f"phones/{ANN}", {"read_after_ms": 50_000})
    await slow.seed_template(TWO_REPLIES)
    sent = await slow.send_template()
    clock.advance(ms=1000)

    await slow.control("POST", f"phones/{ANN}/tap", {"index": 0})

    await slow.receiver.wait_until(slow.receiver.messages)
    clock.advance(ms=100_000)
    await slow.send_from_phone("later")
    await slow.receiver.wait_until(lambda: len(slow.receiver.messages()) == 2)
    statuses = slow.receiver.statuses(sent.body["messages"][0]["id"])
    assert [status["status"] for status in statuses] == ["sent", "delivered", "read"]


async def test_tap_can_wait_for_an_undelivered_message(bench: Bench) -> None:
    await bench.seed_template(TWO_REPLIES)
    await bench.control("PUT", f"phones/{ANN}", {"deliver_after_ms": 60})
    tap = asyncio.create_task(bench.control("POST", f"phones/{ANN}/tap", {"index": 0, "wait_ms": 3000}))
    await asyncio.sleep(0.05)
    sent = await bench.send_template()

    tapped = await tap

    assert tapped.status == 200
    assert tapped.body["message_id"] == sent.body["messages"][0]["id"]


async def test_tap_that_waits_takes_the_message_after_the_one_that_was_tapped(bench: Bench) -> None:
    await bench.seed_template(TWO_REPLIES)
    first = await bench.send_template()
    await bench.control("POST", f"phones/{ANN}/tap", {"index": 0})
    tap = asyncio.create_task(bench.control("POST", f"phones/{ANN}/tap", {"index": 0, "wait_ms": 20_000}))
    await asyncio.sleep(0.05)
    second = await bench.send_template()

    tapped = await tap
    again = await bench.control("POST", f"phones/{ANN}/tap", {"index": 1, "wait_ms": 30})
    earlier = await bench.control(
        "POST", f"phones/{ANN}/tap", {"index": 1, "wait_ms": 20_000, "message_id": first.body["messages"][0]["id"]}
    )

    assert tapped.body["message_id"] == second.body["messages"][0]["id"]
    assert again.body["message_id"] == second.body["messages"][0]["id"]
    assert earlier.body["message_id"] == first.body["messages"][0]["id"]


async def test_reply_that_waits_takes_the_request_after_the_one_that_was_replied_to(bench: Bench) -> None:
    await bench.send_from_phone()
    action = {"name": "address_message", "parameters": {"country": "IN"}}
    interactive = {"type": "address_message", "body": {"text": "Where?"}, "action": action}
    await bench.send({"type": "interactive", "interactive": interactive})
    await bench.control("POST", f"phones/{ANN}/respond", {"response": {"values": {"name": "Ann"}}, "wait_ms": 20_000})
    waiting = {"response": {"values": {"name": "Ann"}}, "wait_ms": 20_000}
    reply = asyncio.create_task(bench.control("POST", f"phones/{ANN}/respond", waiting))
    await asyncio.sleep(0.05)
    second = await bench.send({"type": "interactive", "interactive": interactive})

    assert (await reply).body["message_id"] == second.body["messages"][0]["id"]


@pytest.mark.parametrize("wait_ms", [0, 20_000])
@pytest.mark.parametrize("message_id", ["mine", "mine and-more"])
async def test_message_can_be_tapped_by_the_id_of_its_sender(bench: Bench, message_id: str, wait_ms: int) -> None:
    await bench.seed_template(TWO_REPLIES)
    sent = await bench.send_template(biz_opaque_callback_data="mine and-more")
    await bench.send_template(biz_opaque_callback_data="mine-not")
    body = {"index": 0, "message_id": message_id, "wait_ms": wait_ms}

    tapped = await bench.control("POST", f"phones/{ANN}/tap", body)

    assert tapped.body["message_id"] == sent.body["messages"][0]["id"]


async def test_undelivered_message_cannot_be_tapped(slow: Bench) -> None:
    await slow.seed_template(TWO_REPLIES)
    sent = await slow.send_template()
    wamid = sent.body["messages"][0]["id"]

    newest = await slow.control("POST", f"phones/{ANN}/tap", {"index": 0})
    named = await slow.control("POST", f"phones/{ANN}/tap", {"index": 0, "message_id": wamid})

    assert newest.status == named.status == 404
    assert named.body["field"] == "message_id"
    assert "wait_ms" in named.body["accepted"]


async def test_tap_on_a_missing_button_lists_the_existing_buttons(bench: Bench) -> None:
    await bench.seed_template(TWO_REPLIES)
    await bench.send_template()

    response = await bench.control("POST", f"phones/{ANN}/tap", {"text": "Perhaps"})

    assert response.status == 404
    assert response.body["field"] == "text"
    assert response.body["accepted"] == "0: Yes, 1: No"


async def test_reply_carries_name_and_context(bench: Bench) -> None:
    await bench.control("PUT", f"phones/{ANN}", {"name": "Änne \U0001f600"})
    await bench.send_from_phone()
    wamid = await bench.send_text()

    reply = {"to": BUSINESS, "text": "Fine — thanks", "context_id": wamid}
    written = await bench.control("POST", f"phones/{ANN}/messages", reply)

    await bench.receiver.wait_until(lambda: len(bench.receiver.messages()) == 2)
    value = next(value for value in bench.receiver.changes() if "context" in value.get("messages", [{}])[0])
    assert value["contacts"] == [{"profile": {"name": "Änne \U0001f600"}, "wa_id": ANN, "user_id": ANN_USER_ID}]
    [message] = value["messages"]
    assert message["id"] == written.body["wamid"]
    assert message["text"] == {"body": "Fine — thanks"}
    assert message["context"] == {"from": BUSINESS, "id": wamid}


async def test_interactive_reply_has_its_id(bench: Bench) -> None:
    await bench.send_from_phone()
    buttons = [{"type": "reply", "reply": {"id": "a", "title": "Yes"}}]
    interactive = {"type": "button", "body": {"text": "Well?"}, "action": {"buttons": buttons}}
    await bench.send({"type": "interactive", "interactive": interactive})

    await bench.control("POST", f"phones/{ANN}/tap", {"index": 0})

    await bench.receiver.wait_until(lambda: len(bench.receiver.messages()) == 2)
    assert bench.receiver.messages()[1]["interactive"] == {
        "type": "button_reply",
        "button_reply": {"id": "a", "title": "Yes"},
    }


async def test_reading_a_chat_marks_every_delivered_message_as_read(bench: Bench) -> None:
    await bench.send_from_phone()
    wamids = [await bench.send_text(str(number)) for number in range(3)]

    first = await bench.control("POST", f"phones/{ANN}/read", {"message_id": wamids[1]})
    again = await bench.control("POST", f"phones/{ANN}/read")

    assert (first.body, again.body) == ({"read": 3}, {"read": 0})
    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses()) == 9)
    reads = [status["id"] for status in bench.receiver.statuses() if status["status"] == "read"]
    assert reads == wamids


async def test_inbox_request_waits_for_a_message(bench: Bench) -> None:
    await bench.send_from_phone()
    before = await bench.control("GET", f"phones/{ANN}")
    position = before.body["messages"][-1]["position"]
    inbox_request = asyncio.create_task(bench.control("GET", f"phones/{ANN}?after={position}&wait_ms=3000"))
    await asyncio.sleep(0.05)

    wamid = await bench.send_text("at last")

    response = await inbox_request
    assert [message["wamid"] for message in response.body["messages"]] == [wamid]
    assert response.body["messages"][0]["text"] == "at last"
    assert response.body["messages"][0]["state"] == "delivered"


async def test_inbox_request_without_a_position_waits_for_an_unread_or_a_new_message(bench: Bench) -> None:
    await bench.send_from_phone()
    first = await bench.send_text("first")
    unread = await bench.control("GET", f"phones/{ANN}?wait_ms=20000")
    await bench.control("POST", f"phones/{ANN}/read")
    inbox_request = asyncio.create_task(bench.control("GET", f"phones/{ANN}?wait_ms=20000"))
    await asyncio.sleep(0.05)

    second = await bench.send_text("second")

    assert [message["wamid"] for message in unread.body["messages"]][1:] == [first]
    assert [message["wamid"] for message in (await inbox_request).body["messages"]][1:] == [first, second]


async def test_inbox_request_returns_empty_after_its_wait(slow: Bench) -> None:
    response = await slow.control("GET", f"phones/{ANN}?wait_ms=50")

    assert response.body["messages"] == []


async def test_undelivered_message_is_not_on_the_phone(slow: Bench, clock: ManualClock) -> None:
    await slow.send_from_phone()
    await slow.send_text("soon")
    before = await slow.control("GET", f"phones/{ANN}")
    clock.advance(ms=1000)
    after = await slow.control("GET", f"phones/{ANN}")

    assert [message["text"] for message in before.body["messages"]] == ["Hi"]
    assert [message["text"] for message in after.body["messages"]] == ["Hi", "soon"]


async def test_every_phone_is_listed(bench: Bench) -> None:
    for phone in ("15550000002", "15550000001", "15550000003"):
        await bench.send_from_phone(phone=phone)

    listed = await bench.control("GET", "phones?limit=2")

    assert [phone["phone"] for phone in listed.body["phones"]] == ["15550000001", "15550000002"]
    assert listed.body["next"] == "15550000002"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("123/messages", {"to": BUSINESS, "text": "x"}, "phone"),
        (f"{ANN}/messages", {"to": "15559999999", "text": "x"}, "to"),
        (f"{ANN}/messages", {"to": BUSINESS}, "text"),
        (f"{ANN}/messages", {"to": BUSINESS, "text": ""}, "text"),
        (f"{ANN}/messages", {"to": BUSINESS, "text": "x", "context_id": "y"}, "context_id"),
        (f"{ANN}/tap", {"index": -1}, "index"),
        (f"{ANN}/tap", {"button": 1}, "button"),
        (f"{ANN}/read", {"wait_ms": "long"}, "wait_ms"),
    ],
)
async def test_invalid_phone_request_error_names_field_rule_and_accepted_values(
    bench: Bench, path: str, body: dict[str, Any], field: str
) -> None:
    response = await bench.control("POST", f"phones/{path}", body)

    assert response.status in (400, 404)
    assert response.body["field"] == field
    assert response.body["rule"]
    assert response.body["accepted"]


WITH_NINTH_DIGIT = "5593987654321"
WITHOUT_NINTH_DIGIT = "559387654321"


@pytest.mark.parametrize(
    ("number", "wa_id"),
    [(WITH_NINTH_DIGIT, WITHOUT_NINTH_DIGIT), ("525512345678", "5215512345678"), ("541123456789", "5491123456789")],
)
async def test_businesses_see_the_whatsapp_id_in_place_of_the_number(bench: Bench, number: str, wa_id: str) -> None:
    # Source: facts 4.3.
    changed = await bench.control("PUT", f"phones/{number}", {"name": "Ann", "wa_id": wa_id})
    await bench.control("PUT", "settings", {"statuses_contacts": True})
    received = await bench.send_from_phone(phone=number)

    by_number = await bench.send({"to": f"+{number}", "text": {"body": "Hi"}})
    by_wa_id = await bench.send({"to": wa_id, "text": {"body": "Hi again"}})

    assert (changed.body["phone"], changed.body["wa_id"]) == (number, wa_id)
    contacts = [response.body["contacts"][0] for response in (by_number, by_wa_id)]
    assert [(contact["input"], contact["wa_id"]) for contact in contacts] == [(f"+{number}", wa_id), (wa_id, wa_id)]
    for response in (by_number, by_wa_id):
        sent_id = response.body["messages"][0]["id"]
        statuses = await bench.receiver.wait_until(
            lambda sent_id=sent_id: len(found := bench.receiver.statuses(sent_id)) == 2 and found
        )
        assert {status["recipient_id"] for status in statuses} == {wa_id}
    [inbound] = [value for value in bench.receiver.changes() if value.get("messages")]
    assert inbound["messages"][0]["id"] == received
    assert (inbound["messages"][0]["from"], inbound["contacts"][0]["wa_id"]) == (wa_id, wa_id)
    assert [message["text"] for message in await bench.inbox(number)] == ["Hi", "Hi", "Hi again"]
    assert await bench.inbox(wa_id) == await bench.inbox(number)


async def test_block_by_either_number_names_the_whatsapp_id(bench: Bench) -> None:
    await bench.control("PUT", f"phones/{WITH_NINTH_DIGIT}", {"wa_id": WITHOUT_NINTH_DIGIT})
    await bench.send_from_phone(phone=WITH_NINTH_DIGIT)
    edge = f"{NUMBER_ID}/block_users"

    for user in (WITH_NINTH_DIGIT, WITHOUT_NINTH_DIGIT):
        body = {"messaging_product": "whatsapp", "block_users": [{"user": user}]}
        added = await bench.graph("POST", edge, json=body)
        listed = await bench.graph("GET", edge)
        sent = [await bench.send({"to": to, "text": {"body": "Hi"}}) for to in (WITH_NINTH_DIGIT, WITHOUT_NINTH_DIGIT)]
        removed = await bench.graph("DELETE", edge, json=body)

        named = [{"input": user, "wa_id": WITHOUT_NINTH_DIGIT}]
        assert added.body["block_users"] == {"added_users": named}
        assert [listed_user["wa_id"] for listed_user in listed.body["data"]] == [WITHOUT_NINTH_DIGIT]
        assert [response.error["code"] for response in sent] == [130403, 130403]
        assert removed.body["block_users"] == {"removed_users": named}


async def test_whatsapp_id_is_unique_and_may_be_removed(bench: Bench) -> None:
    await bench.control("PUT", f"phones/{WITH_NINTH_DIGIT}", {"wa_id": WITHOUT_NINTH_DIGIT})

    taken = await bench.control("PUT", f"phones/{ANN}", {"wa_id": WITHOUT_NINTH_DIGIT})
    bad = await bench.control("PUT", f"phones/{ANN}", {"wa_id": "0123456789"})
    kept = await bench.control("PUT", f"phones/{WITH_NINTH_DIGIT}", {"name": "Bo"})
    removed = await bench.control("PUT", f"phones/{WITH_NINTH_DIGIT}", {"wa_id": ""})

    assert (taken.status, taken.body["field"]) == (409, "wa_id")
    assert (bad.status, bad.body["field"]) == (400, "wa_id")
    assert (kept.body["wa_id"], removed.body["wa_id"]) == (WITHOUT_NINTH_DIGIT, "")


async def test_whatsapp_id_survives_a_restart(bench: Bench) -> None:
    await bench.control("PUT", f"phones/{WITH_NINTH_DIGIT}", {"wa_id": WITHOUT_NINTH_DIGIT})

    await bench.restart()

    assert (await bench.control("GET", f"phones/{WITHOUT_NINTH_DIGIT}")).body["phone"] == WITH_NINTH_DIGIT
