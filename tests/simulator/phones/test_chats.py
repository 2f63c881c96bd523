"""What the control door says of a phone's chats: for whoever shows phones to people."""

from typing import Any

from tests.simulator.conftest import ANN, BUSINESS, NUMBER_ID, WABA, Bench
from waypost.base.clock import ManualClock
from waypost.simulator.phones.phones import WINDOW_MS

BEN = "15551234568"
SECOND_ID = "2000000000000003"
SECOND = "15550001112"


async def second_number(bench: Bench) -> None:
    number = {"waba_id": WABA, "phone_number": SECOND, "name": "Shop Two"}
    await bench.control("PUT", f"numbers/{SECOND_ID}", number)


async def shown(bench: Bench, query: str, phone: str = ANN) -> dict[str, Any]:
    return (await bench.control("GET", f"phones/{phone}?{query}")).body


def texts(phone: dict[str, Any]) -> list[str]:
    return [item["text"] for item in phone["messages"]]


async def test_chats_say_the_last_message_and_how_many_are_unread(slow: Bench, manual: ManualClock) -> None:
    await second_number(slow)
    await slow.let_write("First")
    wrote_ms = manual.now_ms()
    await slow.send_text("One")
    await slow.send_text("Two")
    manual.advance(ms=1000)

    answer = await slow.control("GET", f"phones/{ANN}/chats")

    begun, other = answer.body["chats"]
    assert (begun["phone_number_id"], begun["name"], begun["unread"]) == (NUMBER_ID, "Shop One", 2)
    assert begun["last"]["text"] == "Two"
    assert begun["window_until_ms"] == wrote_ms + WINDOW_MS
    assert (other["phone_number"], other["last"], other["window_until_ms"]) == (SECOND, None, None)


async def test_read_chat_has_nothing_unread(bench: Bench) -> None:
    await bench.send_text("One")

    await bench.control("POST", f"phones/{ANN}/read", {})

    [chat] = (await bench.control("GET", f"phones/{ANN}/chats")).body["chats"]
    assert chat["unread"] == 0


async def test_inbox_is_shown_by_chat_and_by_page(bench: Bench) -> None:
    await second_number(bench)
    for nth in range(4):
        await bench.let_write(f"One {nth}")
    await bench.control("POST", f"phones/{ANN}/messages", {"to": SECOND, "text": "Two"})

    page = await shown(bench, f"phone_number_id={NUMBER_ID}&limit=2")
    before = await shown(bench, f"phone_number_id={NUMBER_ID}&limit=2&before={page['messages'][0]['position']}")

    assert texts(page) == ["One 2", "One 3"]
    assert texts(before) == ["One 0", "One 1"]
    assert texts(await shown(bench, f"phone_number_id={SECOND_ID}")) == ["Two"]
    both = await shown(bench, f"phone_number_id={SECOND_ID}&phone_number_id={NUMBER_ID}&limit=1")
    assert texts(both) == ["Two"]
    assert (await bench.control("GET", f"phones/{ANN}?before=x")).status == 400


async def test_what_a_reply_refers_to_is_shown_beside_the_page(bench: Bench) -> None:
    wamid = await bench.let_write("Long ago")
    reply = {"to": BUSINESS, "text": "About that", "context_id": wamid}
    await bench.control("POST", f"phones/{ANN}/messages", reply)

    page = await shown(bench, "limit=1")

    assert texts(page) == ["About that"]
    assert [item["text"] for item in page["quoted"]] == ["Long ago"]
    assert (await shown(bench, "limit=2"))["quoted"] == []


async def test_phones_in_touch_with_a_number_come_the_most_active_first(bench: Bench) -> None:
    await second_number(bench)
    await bench.control("PUT", f"phones/{BEN}", {"name": "Ben"})
    await bench.let_write("Hi")
    fresh = await bench.control("GET", "phones?has_chats=false")
    assert [one["name"] for one in fresh.body["phones"]] == ["Ben"]

    await bench.let_write("Ho", phone=BEN)

    active = (await bench.control("GET", f"chats?phone_number_id={NUMBER_ID}")).body["phones"]
    assert [(one["phone"], one["last"]["text"]) for one in active] == [(BEN, "Ho"), (ANN, "Hi")]
    assert (await bench.control("GET", f"chats?phone_number_id={SECOND_ID}")).body == {"phones": []}
    assert (await bench.control("GET", "phones?has_chats=false")).body["phones"] == []
    assert len((await bench.control("GET", "chats?limit=1")).body["phones"]) == 1


async def test_forwarded_message_is_marked_on_its_phone(bench: Bench) -> None:
    often = {"to": BUSINESS, "text": "x", "forwarded": True, "frequently_forwarded": True}
    await bench.control("POST", f"phones/{ANN}/messages", often)

    [item] = await bench.inbox()

    assert (item["forwarded"], item["frequently_forwarded"]) == (True, True)


async def test_one_file_is_shown_by_its_id(bench: Bench) -> None:
    media_id = await bench.media_of("image/png")

    answer = await bench.control("GET", f"media/{media_id}")

    assert answer.body["phone_number_id"] == NUMBER_ID
    assert answer.body["mime_type"] == "image/png"
    assert (await bench.control("GET", "media/1")).status == 404
