"""The phone pages over HTTP: access to chats and files, and the texts of errors."""

import base64
from typing import Any, Final

import msgspec
import pytest
import pytest_asyncio

from tests.console.conftest import LOOP, ConsoleClient
from tests.console.support.bubble_samples import business_message
from tests.support.media_samples import sample
from tests.support.polling import poll_until
from waypost.assembly.dev import demo
from waypost.console.phones.view_models import PhoneSelection, parse_digits

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)
ANN: Final = demo.DESTINATION
CHAT: Final = f"/phones/{ANN}/chats/{demo.SOURCE}"
OTHER: Final = "15550007000"
QUIET: Final = {"X-Waypost-Quiet": "1"}


async def control_phone(console: ConsoleClient, call: str, body: dict[str, Any], method: str = "POST") -> Any:
    path = f"/control/phones/{ANN}" + (f"/{call}" if call else "")
    return await console.control.json(method, path, body)


async def get_newest(console: ConsoleClient) -> dict[str, Any]:
    return (await console.control.json("GET", f"/control/phones/{ANN}"))["messages"][-1]


async def post_action(console: ConsoleClient, path: str, fields: dict[str, str], status: int | None = None) -> str:
    """Post an action as the script of a page does."""
    body = {"csrf": await console.csrf(), **fields}
    async with console.http.post(console.base_url + path, data=body, headers=QUIET) as response:
        text = await response.text()
        assert response.status == status or (status is None and response.ok), text
        return text


async def send_file(console: ConsoleClient, kind: str, mime_type: str, *, to: str = demo.SOURCE) -> str:
    """Send a file from the phone; return its media ID."""
    content = base64.b64encode(sample(kind)).decode()
    media = {"content": content, "mime_type": mime_type, "file_name": f"a.{kind}"}
    if mime_type.startswith("image"):
        await control_phone(console, "messages", {"to": to, "type": "image", "media": media})
    else:
        await control_phone(console, "messages", {"to": to, "type": "document", "media": media})
    return (await get_newest(console))["media"]["id"]


@pytest_asyncio.fixture(loop_scope=LOOP)
async def other_business(console: ConsoleClient) -> ConsoleClient:
    """The phone also has a chat with a number that is not the partner's."""
    number = {"waba_id": demo.WABA_ID, "phone_number": OTHER, "name": "Somebody Else"}
    await console.control.json("PUT", "/control/numbers/9000000000000009", number)
    await control_phone(console, "messages", {"to": OTHER, "text": "A secret between us"})
    return console


async def test_chats_with_other_businesses_are_not_shown(other_business: ConsoleClient) -> None:
    for chats in ("", "-", OTHER):
        page = await other_business.get(f"/phones?show={ANN}&chats={chats}")
        assert "Somebody Else" not in page
        assert "A secret between us" not in page
        assert f"/chats/{OTHER}" not in page
    assert "A secret between us" not in await other_business.get("/phones")


async def test_actions_in_a_chat_with_another_business_are_not_found(other_business: ConsoleClient) -> None:
    item = await get_newest(other_business)
    assert item["phone_number_id"] == "9000000000000009"

    for call, fields in (("text", {"text": "Hi"}), ("block", {"blocks": "true"}), ("report", {})):
        await post_action(other_business, f"/phones/{ANN}/chats/{OTHER}/{call}", fields, 404)
    for call in ("tap", "react", "read", "respond", "order"):
        await post_action(other_business, f"/phones/{ANN}/items/{item['position']}/{call}", {"emoji": "👍"}, 404)
    await other_business.get(f"/phones/{ANN}/chats/{OTHER}/older?before=99", status=404)

    assert (await get_newest(other_business))["wamid"] == item["wamid"]


async def test_files_of_other_businesses_are_not_found(other_business: ConsoleClient) -> None:
    media_id = await send_file(other_business, "png", "image/png", to=OTHER)

    await other_business.get(f"/phones/media/{media_id}", status=404)
    await other_business.get("/phones/media/123", status=404)
    await other_business.get("/phones/media/a..b", status=404)


async def test_phone_that_only_chats_with_other_businesses_is_not_listed(console: ConsoleClient) -> None:
    number = {"waba_id": demo.WABA_ID, "phone_number": OTHER, "name": "Somebody Else"}
    await console.control.json("PUT", "/control/numbers/9000000000000009", number)
    await console.control.json("PUT", "/control/phones/15550002044", {"name": "Zoe"})
    await console.control.json("PUT", "/control/phones/15550002045", {"name": "Yan"})
    body = {"to": OTHER, "text": "Hi"}
    await console.control.json("POST", "/control/phones/15550002044/messages", body)

    page = await console.get("/phones")

    assert "Zoe" not in page
    assert "Yan" in page
    assert "Ann" in page


async def test_picture_is_served_inline_and_other_files_as_downloads(console: ConsoleClient) -> None:
    for kind, mime_type, disposition, shown_as in (
        ("png", "image/png", "inline", "image/png"),
        ("pdf", "application/pdf", "attachment", "application/octet-stream"),
        ("text", "text/plain", "attachment", "application/octet-stream"),
    ):
        media_id = await send_file(console, kind, mime_type)
        async with console.http.get(f"{console.base_url}/phones/media/{media_id}") as response:
            assert await response.read() == sample(kind)
            headers = response.headers
        assert headers["Content-Type"] == shown_as
        assert headers["Content-Disposition"].startswith(disposition)
        assert headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert headers["X-Content-Type-Options"] == "nosniff"


async def test_media_player_gets_a_range_of_a_file(console: ConsoleClient) -> None:
    media_id = await send_file(console, "png", "image/png")
    url, headers = f"{console.base_url}/phones/media/{media_id}", {"Range": "bytes=1-3"}

    async with console.http.get(url, headers=headers) as response:
        assert (response.status, await response.read()) == (206, b"PNG")
        assert response.headers["Content-Range"] == f"bytes 1-3/{len(sample('png'))}"


async def test_errors_are_phrased_for_the_user_of_the_phone(console: ConsoleClient) -> None:
    await post_action(console, f"/phones/{ANN}/offline", {"is_offline": "true"})
    assert "This phone is offline." in await post_action(console, f"{CHAT}/text", {"text": "Hi"}, 403)
    await post_action(console, f"/phones/{ANN}/offline", {"is_offline": "false"})
    await post_action(console, f"{CHAT}/block", {"blocks": "true"})

    error = await post_action(console, f"{CHAT}/text", {"text": "Hi"}, 403)

    assert "This phone has blocked the business." in error
    assert "control" not in error


async def test_invalid_message_is_rejected_with_a_reason(console: ConsoleClient) -> None:
    for call, fields, reason in (
        ("text", {"text": "  "}, "The message is empty."),
        ("text", {"text": "x" * 4097}, "The message is too long."),
        ("text", {"text": "Hi", "context_id": "wamid.none"}, "no longer on this phone"),
        ("file", {}, "No file is selected."),
        ("location", {"latitude": "91", "longitude": "0"}, "Latitude or longitude is not valid."),
        ("location", {"latitude": "nan", "longitude": "0"}, "Latitude or longitude is not valid."),
        ("contact", {"name": " "}, "A contact card needs a name."),
    ):
        assert reason in await post_action(console, f"{CHAT}/{call}", fields, 403)


async def test_every_type_of_message_can_be_sent_from_a_phone(console: ConsoleClient) -> None:
    place = {"latitude": "52,5163", "longitude": "13.3777", "name": "Gate"}
    contact = {"name": "Bo Blue", "number": "+1 555 000 2011", "email": "bo@acme.test"}
    for call, fields, kind in (
        ("text", {"text": "Two\r\nlines", "send_as": "often"}, "text"),
        ("location", place, "location"),
        ("contact", contact, "contacts"),
        ("poll", {}, "unsupported"),
    ):
        await post_action(console, f"{CHAT}/{call}", fields)
        item = await get_newest(console)
        assert item["type"] == kind
        if call == "text":
            assert item["text"] == "Two\nlines"
            assert (item["forwarded"], item["frequently_forwarded"]) == (True, True)


async def test_order_and_reaction_refer_to_their_message(console: ConsoleClient) -> None:
    await console.send_text("Our bread")
    items = await poll_until(lambda: get_newest(console), lambda item: item["direction"] == "to_phone")
    path = f"/phones/{ANN}/items/{items['position']}"
    basket = (
        '{"catalog_id":"1","product_items":[{"product_retailer_id":"rye","quantity":1,'
        '"item_price":3.5,"currency":"EUR"}]}'
    )

    await post_action(console, f"{path}/order", {"order": basket})
    ordered = await get_newest(console)
    await post_action(console, f"{path}/react", {"emoji": "👍"})
    reacted = await get_newest(console)

    assert (ordered["type"], ordered["context_id"]) == ("order", items["wamid"])
    assert reacted["reaction"] == {"message_id": items["wamid"], "emoji": "👍"}
    assert "not an emoji" in await post_action(console, f"{path}/react", {"emoji": "hello"}, 403)
    assert "nothing to respond to" in await post_action(console, f"{path}/respond", {"response": "{}"}, 403)
    assert "cannot be read" in await post_action(console, f"{path}/respond", {"response": "[1]"}, 403)
    assert "no such button" in await post_action(console, f"{path}/tap", {"index": "0", "text": "Yes"}, 403)


async def test_order_is_paid_once_and_the_page_shows_it(console: ConsoleClient) -> None:
    await control_phone(console, "messages", {"to": demo.SOURCE, "text": "Hi"})
    await console.api.form("POST", f"/partner/app/{console.app_id}/v3/message", {
        "to": ANN, "type": "interactive",
        "interactive": msgspec.json.encode(business_message("order")["interactive"]).decode(),
    })  # fmt: skip
    item = await poll_until(lambda: get_newest(console), lambda item: item["type"] == "interactive")
    path = f"/phones/{ANN}/items/{item['position']}"

    await post_action(console, f"{path}/pay", {"status": "failed"})
    failed = await console.get(f"/phones?show={ANN}&chats={demo.SOURCE}")
    await post_action(console, f"{path}/pay", {"status": "captured"})
    paid = await console.get(f"/phones?show={ANN}&chats={demo.SOURCE}")

    assert "Failed: payment failed" in failed
    assert "<span>Passthrough</span>" in failed.replace("&#39;", "'")
    assert "<dd>Paid</dd>" in paid
    assert (await get_newest(console))["payment"]["status"] == "captured"
    assert "already paid" in await post_action(console, f"{path}/pay", {"status": "captured"}, 403)
    assert "Unknown payment status." in await post_action(console, f"{path}/pay", {"status": "stolen"}, 403)


async def test_settings_of_a_phone_are_stored_and_shown(console: ConsoleClient) -> None:
    settings = {"condition": "old_client", "deliver_after_s": "0.5", "reads_itself": "on",
              "read_after_s": "2", "has_chat_open": "on"}  # fmt: skip
    await post_action(console, f"/phones/{ANN}/settings", settings)
    await post_action(
        console,
        f"/phones/{ANN}/owner",
        {"name": "Anna", "username": "@anna", "wa_id": "+15550000099", "shows_number": "on"},
    )
    await post_action(console, f"/phones/{ANN}/script", {"step-0-on": "button", "step-0-do": "read", "seed": "1"})

    state = await console.control.json("GET", f"/control/phones/{ANN}")
    page = await console.get(f"/phones?show={ANN}")

    assert state["condition"] == "old_client"
    assert (state["deliver_after_ms"], state["read_after_ms"]) == (500, 2000)
    assert (state["sends_read_receipts"], state["has_chat_open"]) == (False, True)
    assert (state["name"], state["username"], state["wa_id"]) == ("Anna", "anna", "15550000099")
    assert state["steps"][0]["do"] == "read"
    for shown in ("Anna", "old client", ">script<"):
        assert shown in page
    imported = {"edit": "import", "json": "[}"}
    assert "not valid JSON" in await post_action(console, f"/phones/{ANN}/script", imported, 400)
    assert "not a time" in await post_action(console, f"/phones/{ANN}/settings", {"deliver_after_s": "soon"}, 403)


async def test_marketing_can_be_stopped_and_resumed(console: ConsoleClient) -> None:
    for wants, stopped in (("false", [demo.PHONE_NUMBER_ID]), ("true", [])):
        await post_action(console, f"{CHAT}/marketing", {"wants": wants})
        state = await console.control.json("GET", f"/control/phones/{ANN}")
        assert state["stopped_marketing_of"] == stopped


async def test_phone_with_a_changed_number_is_shown_with_both_numbers(console: ConsoleClient) -> None:
    response = await console.post(f"/phones/{ANN}/number", {"to": "+1 555 000 2099"})

    assert response.headers["Location"].startswith(f"/phones?show={ANN},15550002099")
    page = await post_action(console, "/phones/15550002099/number", {"to": "15550002098"})
    assert "/phones?show=15550002099,15550002098" in page


async def test_any_number_can_be_opened_as_a_phone(console: ConsoleClient) -> None:
    async with console.http.get(
        f"{console.base_url}/phones", params={"show": ANN, "add": "+1 (555) 000-2088"}, allow_redirects=False
    ) as response:
        assert response.headers["Location"] == f"/phones?show={ANN},15550002088"
    assert "is not a phone number" in await console.get("/phones?add=Ann+the+first", status=400)
    assert "Send “Hello”" in await console.get("/phones?show=15550002088")


async def test_typed_phone_number_is_parsed() -> None:
    assert parse_digits("+1 (555) 000-2009") == "15550002009"
    assert [parse_digits(text) for text in ("1234567", "1" * 16, "Ann", "", "\u0661" * 9)] == [""] * 5
    assert PhoneSelection().select("15550002009", "-").address == "/phones?show=15550002009&chats=-"
