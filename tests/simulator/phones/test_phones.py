"""What people do with phones, and what the business hears of it."""

import asyncio
from typing import Any

import pytest

from tests.simulator.conftest import ANN, ANN_USER_ID, BUSINESS, Bench
from waypost.base.clock import ManualClock

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

    [message] = await bench.receiver.until(bench.receiver.messages)
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

    [message] = await bench.receiver.until(bench.receiver.messages)
    assert message["button"] == {"payload": "Yes", "text": "Yes"}


async def test_tap_implies_read(bench: Bench) -> None:
    await bench.seed_template(TWO_REPLIES)
    sent = await bench.send_template(biz_opaque_callback_data="mine")
    wamid = sent.body["messages"][0]["id"]

    await bench.control("POST", f"phones/{ANN}/tap", {"index": 0})

    await bench.receiver.until(bench.receiver.messages)
    told = bench.receiver.statuses(wamid)
    assert [one["status"] for one in told] == ["sent", "delivered", "read"]
    assert told[-1]["biz_opaque_callback_data"] == "mine"
    inbox = await bench.control("GET", f"phones/{ANN}")
    assert inbox.body["messages"][0]["state"] == "read"


async def test_planned_read_comes_sooner_and_only_once(slow: Bench, manual: ManualClock) -> None:
    await slow.control("PUT", f"phones/{ANN}", {"read_after_ms": 50_000})
    await slow.seed_template(TWO_REPLIES)
    sent = await slow.send_template()
    manual.advance(ms=1000)

    await slow.control("POST", f"phones/{ANN}/tap", {"index": 0})

    await slow.receiver.until(slow.receiver.messages)
    manual.advance(ms=100_000)
    await slow.let_write("later")
    await slow.receiver.until(lambda: len(slow.receiver.messages()) == 2)
    told = slow.receiver.statuses(sent.body["messages"][0]["id"])
    assert [one["status"] for one in told] == ["sent", "delivered", "read"]


async def test_tap_can_wait_for_a_message_on_its_way(bench: Bench) -> None:
    await bench.seed_template(TWO_REPLIES)
    await bench.control("PUT", f"phones/{ANN}", {"deliver_after_ms": 60})
    tap = asyncio.create_task(bench.control("POST", f"phones/{ANN}/tap", {"index": 0, "wait_ms": 3000}))
    await asyncio.sleep(0.05)
    sent = await bench.send_template()

    tapped = await tap

    assert tapped.status == 200
    assert tapped.body["message_id"] == sent.body["messages"][0]["id"]


async def test_message_on_its_way_cannot_be_tapped_yet(slow: Bench) -> None:
    await slow.seed_template(TWO_REPLIES)
    sent = await slow.send_template()
    wamid = sent.body["messages"][0]["id"]

    newest = await slow.control("POST", f"phones/{ANN}/tap", {"index": 0})
    named = await slow.control("POST", f"phones/{ANN}/tap", {"index": 0, "message_id": wamid})

    assert newest.status == named.status == 404
    assert named.body["field"] == "message_id"
    assert "wait_ms" in named.body["accepted"]


async def test_tap_on_a_missing_button_says_which_there_are(bench: Bench) -> None:
    await bench.seed_template(TWO_REPLIES)
    await bench.send_template()

    answer = await bench.control("POST", f"phones/{ANN}/tap", {"text": "Perhaps"})

    assert answer.status == 404
    assert answer.body["field"] == "text"
    assert answer.body["accepted"] == "0: Yes, 1: No"


async def test_reply_carries_name_and_context(bench: Bench) -> None:
    await bench.control("PUT", f"phones/{ANN}", {"name": "Änne \U0001f600"})
    await bench.let_write()
    wamid = await bench.send_text()

    wish = {"to": BUSINESS, "text": "Fine — thanks", "context_id": wamid}
    written = await bench.control("POST", f"phones/{ANN}/messages", wish)

    await bench.receiver.until(lambda: len(bench.receiver.messages()) == 2)
    value = next(value for value in bench.receiver.changes() if "context" in value.get("messages", [{}])[0])
    assert value["contacts"] == [{"profile": {"name": "Änne \U0001f600"}, "wa_id": ANN, "user_id": ANN_USER_ID}]
    [message] = value["messages"]
    assert message["id"] == written.body["wamid"]
    assert message["text"] == {"body": "Fine — thanks"}
    assert message["context"] == {"from": BUSINESS, "id": wamid}


async def test_interactive_reply_comes_back_with_its_id(bench: Bench) -> None:
    await bench.let_write()
    buttons = [{"type": "reply", "reply": {"id": "a", "title": "Yes"}}]
    interactive = {"type": "button", "body": {"text": "Well?"}, "action": {"buttons": buttons}}
    await bench.send({"type": "interactive", "interactive": interactive})

    await bench.control("POST", f"phones/{ANN}/tap", {"index": 0})

    await bench.receiver.until(lambda: len(bench.receiver.messages()) == 2)
    assert bench.receiver.messages()[1]["interactive"] == {
        "type": "button_reply",
        "button_reply": {"id": "a", "title": "Yes"},
    }


async def test_reading_a_chat_reads_everything_that_arrived(bench: Bench) -> None:
    await bench.let_write()
    wamids = [await bench.send_text(str(number)) for number in range(3)]

    first = await bench.control("POST", f"phones/{ANN}/read", {"message_id": wamids[1]})
    again = await bench.control("POST", f"phones/{ANN}/read")

    assert (first.body, again.body) == ({"read": 3}, {"read": 0})
    await bench.receiver.until(lambda: len(bench.receiver.statuses()) == 9)
    reads = [one["id"] for one in bench.receiver.statuses() if one["status"] == "read"]
    assert reads == wamids


async def test_inbox_waits_for_what_comes(bench: Bench) -> None:
    await bench.let_write()
    before = await bench.control("GET", f"phones/{ANN}")
    position = before.body["messages"][-1]["position"]
    look = asyncio.create_task(bench.control("GET", f"phones/{ANN}?after={position}&wait_ms=3000"))
    await asyncio.sleep(0.05)

    wamid = await bench.send_text("at last")

    seen = await look
    assert [one["wamid"] for one in seen.body["messages"]] == [wamid]
    assert seen.body["messages"][0]["text"] == "at last"
    assert seen.body["messages"][0]["state"] == "delivered"


async def test_wait_ends_when_nothing_comes(slow: Bench) -> None:
    seen = await slow.control("GET", f"phones/{ANN}?wait_ms=50")

    assert seen.body["messages"] == []


async def test_undelivered_message_is_not_on_the_phone(slow: Bench, manual: ManualClock) -> None:
    await slow.let_write()
    await slow.send_text("soon")
    before = await slow.control("GET", f"phones/{ANN}")
    manual.advance(ms=1000)
    after = await slow.control("GET", f"phones/{ANN}")

    assert [one["text"] for one in before.body["messages"]] == ["Hi"]
    assert [one["text"] for one in after.body["messages"]] == ["Hi", "soon"]


async def test_every_phone_is_listed(bench: Bench) -> None:
    for phone in ("15550000002", "15550000001", "15550000003"):
        await bench.let_write(phone=phone)

    listed = await bench.control("GET", "phones?limit=2")

    assert [one["phone"] for one in listed.body["phones"]] == ["15550000001", "15550000002"]
    assert listed.body["next"] == "15550000002"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("123/messages", {"to": BUSINESS, "text": "x"}, "phone"),
        (f"{ANN}/messages", {"to": "15559999999", "text": "x"}, "to"),
        (f"{ANN}/messages", {"to": BUSINESS}, "body"),
        (f"{ANN}/messages", {"to": BUSINESS, "text": ""}, "text"),
        (f"{ANN}/messages", {"to": BUSINESS, "text": "x", "context_id": "y"}, "context_id"),
        (f"{ANN}/tap", {"index": -1}, "index"),
        (f"{ANN}/tap", {"button": 1}, "body"),
        (f"{ANN}/read", {"wait_ms": "long"}, "wait_ms"),
    ],
)
async def test_wrong_wish_is_refused_with_field_and_remedy(
    bench: Bench, path: str, body: dict[str, Any], field: str
) -> None:
    answer = await bench.control("POST", f"phones/{path}", body)

    assert answer.status in (400, 404)
    assert answer.body["field"] == field
    assert answer.body["rule"]
    assert answer.body["accepted"]
