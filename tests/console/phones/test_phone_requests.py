"""Phones as a script asks for them: whose chats are shown, whose files are given, what is refused and how."""

import base64
from typing import Any, Final

import msgspec
import pytest
import pytest_asyncio

from tests.console.conftest import LOOP, Desk
from tests.console.support.bubble_samples import sent
from tests.support.media_samples import sample
from tests.support.waiting import patiently
from waypost.assembly.dev import demo
from waypost.console.phones.selection import PhoneSelection, parse_digits

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)
ANN: Final = demo.DESTINATION
CHAT: Final = f"/phones/{ANN}/chats/{demo.SOURCE}"
OTHER: Final = "15550007000"
QUIET: Final = {"X-Waypost-Quiet": "1"}


async def control(desk: Desk, call: str, body: dict[str, Any], method: str = "POST") -> Any:
    path = f"/control/phones/{ANN}" + (f"/{call}" if call else "")
    return await desk.control.json(method, path, body)


async def newest(desk: Desk) -> dict[str, Any]:
    return (await desk.control.json("GET", f"/control/phones/{ANN}"))["messages"][-1]


async def act(desk: Desk, path: str, fields: dict[str, str], status: int | None = None) -> str:
    """An act as a module of the page sends it."""
    body = {"csrf": await desk.csrf(), **fields}
    async with desk.http.post(desk.base_url + path, data=body, headers=QUIET) as answer:
        text = await answer.text()
        assert answer.status == status or (status is None and answer.ok), text
        return text


async def send_file(desk: Desk, kind: str, mime_type: str, *, to: str = demo.SOURCE) -> str:
    """Have the phone send a file; gives its media id."""
    content = base64.b64encode(sample(kind)).decode()
    media = {"content": content, "mime_type": mime_type, "file_name": f"a.{kind}"}
    if mime_type.startswith("image"):
        await control(desk, "messages", {"to": to, "type": "image", "media": media})
    else:
        await control(desk, "messages", {"to": to, "type": "document", "media": media})
    return (await newest(desk))["media"]["id"]


@pytest_asyncio.fixture(loop_scope=LOOP)
async def others(desk: Desk) -> Desk:
    """The phone also has a chat with a number that is not the partner's."""
    number = {"waba_id": demo.WABA_ID, "phone_number": OTHER, "name": "Somebody Else"}
    await desk.control.json("PUT", "/control/numbers/9000000000000009", number)
    await control(desk, "messages", {"to": OTHER, "text": "A secret between us"})
    return desk


async def test_chats_with_others_are_not_there(others: Desk) -> None:
    for chats in ("", "-", OTHER):
        page = await others.get(f"/phones?show={ANN}&chats={chats}")
        assert "Somebody Else" not in page
        assert "A secret between us" not in page
        assert f"/chats/{OTHER}" not in page
    assert "A secret between us" not in await others.get("/phones")


async def test_nothing_is_done_in_a_chat_with_others(others: Desk) -> None:
    item = await newest(others)
    assert item["phone_number_id"] == "9000000000000009"

    for call, fields in (("text", {"text": "Hi"}), ("block", {"blocks": "true"}), ("report", {})):
        await act(others, f"/phones/{ANN}/chats/{OTHER}/{call}", fields, 404)
    for call in ("tap", "react", "read", "answer", "order"):
        await act(others, f"/phones/{ANN}/items/{item['position']}/{call}", {"emoji": "👍"}, 404)
    await others.get(f"/phones/{ANN}/chats/{OTHER}/older?before=99", status=404)

    assert (await newest(others))["wamid"] == item["wamid"]


async def test_files_of_others_are_not_there(others: Desk) -> None:
    media_id = await send_file(others, "png", "image/png", to=OTHER)

    await others.get(f"/phones/media/{media_id}", status=404)
    await others.get("/phones/media/123", status=404)
    await others.get("/phones/media/a..b", status=404)


async def test_phone_that_only_others_know_is_not_listed(desk: Desk) -> None:
    number = {"waba_id": demo.WABA_ID, "phone_number": OTHER, "name": "Somebody Else"}
    await desk.control.json("PUT", "/control/numbers/9000000000000009", number)
    await desk.control.json("PUT", "/control/phones/15550002044", {"name": "Zoe"})
    await desk.control.json("PUT", "/control/phones/15550002045", {"name": "Yan"})
    body = {"to": OTHER, "text": "Hi"}
    await desk.control.json("POST", "/control/phones/15550002044/messages", body)

    page = await desk.get("/phones")

    assert "Zoe" not in page
    assert "Yan" in page
    assert "Ann" in page


async def test_picture_is_shown_and_all_else_is_kept_by_the_browser(desk: Desk) -> None:
    for kind, mime_type, disposition, shown_as in (
        ("png", "image/png", "inline", "image/png"),
        ("pdf", "application/pdf", "attachment", "application/octet-stream"),
        ("text", "text/plain", "attachment", "application/octet-stream"),
    ):
        media_id = await send_file(desk, kind, mime_type)
        async with desk.http.get(f"{desk.base_url}/phones/media/{media_id}") as answer:
            assert await answer.read() == sample(kind)
            headers = answer.headers
        assert headers["Content-Type"] == shown_as
        assert headers["Content-Disposition"].startswith(disposition)
        assert headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert headers["X-Content-Type-Options"] == "nosniff"


async def test_player_gets_a_part_of_a_file(desk: Desk) -> None:
    media_id = await send_file(desk, "png", "image/png")
    url, asked = f"{desk.base_url}/phones/media/{media_id}", {"Range": "bytes=1-3"}

    async with desk.http.get(url, headers=asked) as answer:
        assert (answer.status, await answer.read()) == (206, b"PNG")
        assert answer.headers["Content-Range"] == f"bytes 1-3/{len(sample('png'))}"


async def test_refusals_are_in_words_of_whoever_holds_the_phone(desk: Desk) -> None:
    await act(desk, f"/phones/{ANN}/offline", {"is_offline": "true"})
    assert "This phone is offline." in await act(desk, f"{CHAT}/text", {"text": "Hi"}, 403)
    await act(desk, f"/phones/{ANN}/offline", {"is_offline": "false"})
    await act(desk, f"{CHAT}/block", {"blocks": "true"})

    told = await act(desk, f"{CHAT}/text", {"text": "Hi"}, 403)

    assert "This phone has blocked the business." in told
    assert "control" not in told


async def test_what_cannot_be_sent_says_why(desk: Desk) -> None:
    for call, fields, said in (
        ("text", {"text": "  "}, "The message is empty."),
        ("text", {"text": "x" * 4097}, "The message is too long."),
        ("text", {"text": "Hi", "context_id": "wamid.none"}, "no longer on this phone"),
        ("file", {}, "No file is selected."),
        ("location", {"latitude": "91", "longitude": "0"}, "Latitude or longitude is not valid."),
        ("location", {"latitude": "nan", "longitude": "0"}, "Latitude or longitude is not valid."),
        ("contact", {"name": " "}, "A contact card needs a name."),
    ):
        assert said in await act(desk, f"{CHAT}/{call}", fields, 403)


async def test_everything_a_person_sends_arrives_at_the_business(desk: Desk) -> None:
    place = {"latitude": "52,5163", "longitude": "13.3777", "name": "Gate"}
    contact = {"name": "Bo Blue", "number": "+1 555 000 2011", "email": "bo@acme.test"}
    for call, fields, kind in (
        ("text", {"text": "Two\r\nlines", "manner": "often"}, "text"),
        ("location", place, "location"),
        ("contact", contact, "contacts"),
        ("poll", {}, "unsupported"),
    ):
        await act(desk, f"{CHAT}/{call}", fields)
        item = await newest(desk)
        assert item["type"] == kind
        if call == "text":
            assert item["text"] == "Two\nlines"
            assert (item["forwarded"], item["frequently_forwarded"]) == (True, True)


async def test_order_and_reaction_go_with_their_message(desk: Desk) -> None:
    await desk.send_text("Our bread")
    items = await patiently(lambda: newest(desk), lambda item: item["direction"] == "to_phone")
    path = f"/phones/{ANN}/items/{items['position']}"
    basket = (
        '{"catalog_id":"1","product_items":[{"product_retailer_id":"rye","quantity":1,'
        '"item_price":3.5,"currency":"EUR"}]}'
    )

    await act(desk, f"{path}/order", {"order": basket})
    ordered = await newest(desk)
    await act(desk, f"{path}/react", {"emoji": "👍"})
    reacted = await newest(desk)

    assert (ordered["type"], ordered["context_id"]) == ("order", items["wamid"])
    assert reacted["reaction"] == {"message_id": items["wamid"], "emoji": "👍"}
    assert "not an emoji" in await act(desk, f"{path}/react", {"emoji": "hello"}, 403)
    assert "nothing to respond to" in await act(desk, f"{path}/answer", {"response": "{}"}, 403)
    assert "cannot be read" in await act(desk, f"{path}/answer", {"response": "[1]"}, 403)
    assert "no such button" in await act(desk, f"{path}/tap", {"index": "0", "text": "Yes"}, 403)


async def test_order_is_paid_once_and_the_page_shows_it(desk: Desk) -> None:
    await control(desk, "messages", {"to": demo.SOURCE, "text": "Hi"})
    await desk.api.form("POST", f"/partner/app/{desk.app_id}/v3/message", {
        "to": ANN, "type": "interactive",
        "interactive": msgspec.json.encode(sent("order")["interactive"]).decode(),
    })  # fmt: skip
    item = await patiently(lambda: newest(desk), lambda item: item["type"] == "interactive")
    path = f"/phones/{ANN}/items/{item['position']}"

    await act(desk, f"{path}/pay", {"status": "failed"})
    failed = await desk.get(f"/phones?show={ANN}&chats={demo.SOURCE}")
    await act(desk, f"{path}/pay", {"status": "captured"})
    paid = await desk.get(f"/phones?show={ANN}&chats={demo.SOURCE}")

    assert "Failed: payment failed" in failed
    assert "<span>Passthrough</span>" in failed.replace("&#39;", "'")
    assert "<dd>Paid</dd>" in paid
    assert (await newest(desk))["payment"]["status"] == "captured"
    assert "already paid" in await act(desk, f"{path}/pay", {"status": "captured"}, 403)
    assert "Unknown payment status." in await act(desk, f"{path}/pay", {"status": "stolen"}, 403)


async def test_habits_are_kept_and_shown(desk: Desk) -> None:
    habits = {"condition": "old_client", "deliver_after_s": "0.5", "reads_itself": "on",
              "read_after_s": "2", "has_chat_open": "on"}  # fmt: skip
    await act(desk, f"/phones/{ANN}/settings", habits)
    await act(desk, f"/phones/{ANN}/owner", {"name": "Anna", "username": "@anna", "shows_number": "on"})
    await act(desk, f"/phones/{ANN}/script", {"script": '[{"on":"button","do":"read"}]', "seed": "1"})

    state = await desk.control.json("GET", f"/control/phones/{ANN}")
    page = await desk.get(f"/phones?show={ANN}")

    assert state["condition"] == "old_client"
    assert (state["deliver_after_ms"], state["read_after_ms"]) == (500, 2000)
    assert (state["sends_read_receipts"], state["has_chat_open"]) == (False, True)
    assert (state["name"], state["username"]) == ("Anna", "anna")
    assert state["steps"][0]["do"] == "read"
    for shown in ("Anna", "old client", ">script<"):
        assert shown in page
    assert "not valid JSON" in await act(desk, f"/phones/{ANN}/script", {"script": "[}"}, 403)
    assert "not a time" in await act(desk, f"/phones/{ANN}/settings", {"deliver_after_s": "soon"}, 403)


async def test_marketing_is_stopped_and_taken_again(desk: Desk) -> None:
    for wants, stopped in (("false", [demo.PHONE_NUMBER_ID]), ("true", [])):
        await act(desk, f"{CHAT}/marketing", {"wants": wants})
        state = await desk.control.json("GET", f"/control/phones/{ANN}")
        assert state["stopped_marketing_of"] == stopped


async def test_owner_who_moves_is_shown_with_both_numbers(desk: Desk) -> None:
    answer = await desk.post(f"/phones/{ANN}/number", {"to": "+1 555 000 2099"})

    assert answer.headers["Location"].startswith(f"/phones?show={ANN},15550002099")
    told = await act(desk, "/phones/15550002099/number", {"to": "15550002098"})
    assert "/phones?show=15550002099,15550002098" in told


async def test_any_number_is_opened_as_a_phone(desk: Desk) -> None:
    async with desk.http.get(
        f"{desk.base_url}/phones", params={"show": ANN, "add": "+1 (555) 000-2088"}, allow_redirects=False
    ) as answer:
        assert answer.headers["Location"] == f"/phones?show={ANN},15550002088"
    assert "is not a phone number" in await desk.get("/phones?add=Ann+the+first", status=400)
    assert "Send “Hello”" in await desk.get("/phones?show=15550002088")


async def test_what_is_typed_as_a_number_is_understood() -> None:
    assert parse_digits("+1 (555) 000-2009") == "15550002009"
    assert [parse_digits(one) for one in ("1234567", "1" * 16, "Ann", "", "\u0661" * 9)] == [""] * 5
    assert PhoneSelection().select("15550002009", "-").address == "/phones?show=15550002009&chats=-"
