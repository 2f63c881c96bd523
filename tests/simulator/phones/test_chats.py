"""Chats of a phone in the control API, as the console shows them."""

from typing import Any

from tests.simulator.conftest import ANN, BUSINESS, NUMBER_ID, WABA, Bench
from tests.support.manual_clock import ManualClock
from waypost.simulator.state.phones import WINDOW_MS

BEN = "15551234568"
SECOND_ID = "2000000000000003"
SECOND = "15550001112"


async def create_second_number(bench: Bench) -> None:
    number = {"waba_id": WABA, "phone_number": SECOND, "name": "Shop Two"}
    await bench.control("PUT", f"numbers/{SECOND_ID}", number)


async def show_phone(bench: Bench, query: str, phone: str = ANN) -> dict[str, Any]:
    return (await bench.control("GET", f"phones/{phone}?{query}")).body


def texts(phone: dict[str, Any]) -> list[str]:
    return [item["text"] for item in phone["messages"]]


async def test_chats_show_the_last_message_and_the_unread_count(slow: Bench, clock: ManualClock) -> None:
    await create_second_number(slow)
    await slow.send_from_phone("First")
    wrote_ms = clock.now_ms()
    await slow.send_text("One")
    await slow.send_text("Two")
    clock.advance(ms=1000)

    response = await slow.control("GET", f"phones/{ANN}/chats")

    first, other = response.body["chats"]
    assert (first["phone_number_id"], first["name"], first["unread"]) == (NUMBER_ID, "Shop One", 2)
    assert first["last"]["text"] == "Two"
    assert first["window_until_ms"] == wrote_ms + WINDOW_MS
    assert (other["phone_number"], other["last"], other["window_until_ms"]) == (SECOND, None, None)


async def test_read_chat_has_no_unread_messages(bench: Bench) -> None:
    await bench.send_text("One")

    await bench.control("POST", f"phones/{ANN}/read", {})

    [chat] = (await bench.control("GET", f"phones/{ANN}/chats")).body["chats"]
    assert chat["unread"] == 0


async def test_inbox_is_shown_by_chat_and_by_page(bench: Bench) -> None:
    await create_second_number(bench)
    for nth in range(4):
        await bench.send_from_phone(f"One {nth}")
    await bench.control("POST", f"phones/{ANN}/messages", {"to": SECOND, "text": "Two"})

    page = await show_phone(bench, f"phone_number_id={NUMBER_ID}&limit=2")
    before = await show_phone(bench, f"phone_number_id={NUMBER_ID}&limit=2&before={page['messages'][0]['position']}")

    assert texts(page) == ["One 2", "One 3"]
    assert texts(before) == ["One 0", "One 1"]
    assert texts(await show_phone(bench, f"phone_number_id={SECOND_ID}")) == ["Two"]
    both = await show_phone(bench, f"phone_number_id={SECOND_ID}&phone_number_id={NUMBER_ID}&limit=1")
    assert texts(both) == ["Two"]
    assert (await bench.control("GET", f"phones/{ANN}?before=x")).status == 400


async def test_page_includes_quoted_messages(bench: Bench) -> None:
    wamid = await bench.send_from_phone("Long ago")
    reply = {"to": BUSINESS, "text": "About that", "context_id": wamid}
    await bench.control("POST", f"phones/{ANN}/messages", reply)

    page = await show_phone(bench, "limit=1")

    assert texts(page) == ["About that"]
    assert [item["text"] for item in page["quoted"]] == ["Long ago"]
    assert (await show_phone(bench, "limit=2"))["quoted"] == []


async def test_phones_of_a_number_are_sorted_by_latest_activity(bench: Bench) -> None:
    await create_second_number(bench)
    await bench.control("PUT", f"phones/{BEN}", {"name": "Ben"})
    await bench.send_from_phone("Hi")
    without_chats = await bench.control("GET", "phones?has_chats=false")
    assert [phone["name"] for phone in without_chats.body["phones"]] == ["Ben"]

    await bench.send_from_phone("Ho", phone=BEN)

    active = (await bench.control("GET", f"chats?phone_number_id={NUMBER_ID}")).body["phones"]
    assert [(phone["phone"], phone["last"]["text"]) for phone in active] == [(BEN, "Ho"), (ANN, "Hi")]
    assert (await bench.control("GET", f"chats?phone_number_id={SECOND_ID}")).body == {"phones": []}
    assert (await bench.control("GET", "phones?has_chats=false")).body["phones"] == []
    assert len((await bench.control("GET", "chats?limit=1")).body["phones"]) == 1


async def test_phones_of_fleets_are_left_out_of_the_chats_unless_they_were_changed(bench: Bench) -> None:
    await bench.control("POST", "fleets", {"name": "crowd", "first": "15551000000", "count": 100, "seed": 7})
    for phone in ("15551000001", "15551000002", ANN):
        await bench.send_from_phone("Hi", phone=phone)
    await bench.control("PUT", "phones/15551000002", {"name": "Zoe"})

    every = (await bench.control("GET", "chats")).body["phones"]
    people = (await bench.control("GET", "chats?fleets=false")).body["phones"]

    assert {(one["phone"], one["fleet"]) for one in every} == {
        ("15551000001", "crowd"),
        ("15551000002", "crowd"),
        (ANN, None),
    }
    assert [one["phone"] for one in people] == [ANN, "15551000002"]


async def test_forwarded_message_is_marked_on_its_phone(bench: Bench) -> None:
    often = {"to": BUSINESS, "text": "x", "forwarded": True, "frequently_forwarded": True}
    await bench.control("POST", f"phones/{ANN}/messages", often)

    [item] = await bench.inbox()

    assert (item["forwarded"], item["frequently_forwarded"]) == (True, True)


async def test_media_is_shown_by_its_id(bench: Bench) -> None:
    media_id = await bench.upload_media("image/png")

    response = await bench.control("GET", f"media/{media_id}")

    assert response.body["phone_number_id"] == NUMBER_ID
    assert response.body["mime_type"] == "image/png"
    assert (await bench.control("GET", "media/1")).status == 404
