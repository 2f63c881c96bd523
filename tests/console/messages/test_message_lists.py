"""Daily work with the lists: names and parameters, selection by mouse and keyboard, saved filters, received texts."""

import base64
import csv
import io
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.console.conftest import LOOP, ConsoleClient, Tabs, answer_question, close_console, open_console
from tests.console.support.pictures import picture
from tests.support.callback_sink import CallbackSink
from tests.support.polling import poll_until
from waypost.assembly.dev import demo

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

BEN: Final = demo.PHONES[1][0]
LIST: Final = f"/apps/{demo.APP_ID}/messages"
RECEIVED: Final = f"{LIST}/received"


@pytest_asyncio.fixture(loop_scope=LOOP)
async def console(tmp_path: Path, demo_data: Path) -> AsyncGenerator[ConsoleClient]:
    """A client of a console without rate limits."""
    console = await open_console(tmp_path, demo_data=demo_data, changes={"rates": False})
    yield console
    await close_console(console)


@pytest_asyncio.fixture(loop_scope=LOOP)
async def hiding_console(tmp_path: Path, demo_data: Path) -> AsyncGenerator[ConsoleClient]:
    """The same, of a console that hides texts."""
    console = await open_console(tmp_path / "hiding", demo_data=demo_data, changes={"rates": False, "show_text": False})
    yield console
    await close_console(console)


async def send_template(console: ConsoleClient, *params: str, to: str = BEN) -> str:
    form = {
        "channel": "whatsapp", "source": demo.SOURCE, "destination": to, "src.name": demo.APP_NAME,
        "template": json.dumps({"id": demo.TEMPLATE_ID, "params": list(params)}),
    }  # fmt: skip
    return (await console.api.form("POST", f"/partner/app/{console.app_id}/template/msg", form))["messageId"]


async def write_from(console: ConsoleClient, phone: str, text: str, name: str = "", **more: Any) -> str:
    """Write from a phone, wait until it is listed, and return the operator's id."""
    if name:
        await console.control.json("PUT", f"/control/phones/{phone}", {"name": name})
    body = {"to": demo.SOURCE, "text": text, **more}
    wamid = (await console.control.json("POST", f"/control/phones/{phone}/messages", body))["wamid"]
    await poll_until(lambda: console.get(f"{RECEIVED}?q={wamid}"), lambda page: 'id="r-' in page)
    return wamid


async def wait_for_state(console: ConsoleClient, message_id: str, *states: str) -> None:
    async def state() -> str:
        return (await console.admin.json("GET", f"/admin/trace/{message_id}"))["state"]

    await poll_until(state, lambda current: current in states)


def row_of(page: str, message_id: str) -> str:
    return page.partition(f'<div id="m-{message_id}"')[2].partition('<div id="')[0]


async def test_row_has_the_name_of_its_recipient_and_labelled_parameters(console: ConsoleClient) -> None:
    await write_from(console, BEN, "Hello", "Ben Cook")
    message_id = await send_template(console, "Ann", "4711")

    row = row_of(await console.get(LIST), message_id)
    found = [await console.get(f"{LIST}?q={query}") for query in ("ben+c", "BEN", "zoe")]

    assert "Ben Cook" in row
    assert "order_ready (en_US)" in row
    assert "<code>{{1}}</code> Ann" in row
    assert "<code>{{2}}</code> 4711" in row
    assert [message_id in page for page in found] == [True, True, False]


async def test_parameters_are_hidden_until_the_selected_rows_are_revealed(hiding_console: ConsoleClient) -> None:
    message_id = await send_template(hiding_console, "Zinnia", "4711")

    hidden = row_of(await hiding_console.get(LIST), message_id)
    revealed = await hiding_console.reveal(f"{LIST}/selected/show", {"id": message_id})

    assert "Zinnia" not in hidden
    assert "characters)" in hidden
    assert "<code>{{1}}</code> Zinnia" in json.loads(revealed)["pieces"][0]["html"]


async def test_rows_are_selected_by_keyboard_and_their_ids_copied(tabs: Tabs, console: ConsoleClient) -> None:
    ids = [await console.send_text(f"Number {number}") for number in range(3)]
    page = (await tabs(LIST)).page
    await expect(page.locator("#rows > div")).to_have_count(3)
    bar = page.locator("#picked")
    await expect(bar).to_be_hidden()

    for key in ("j", "x", "j", "j", "x", "k", "k", "j"):
        await page.keyboard.press(key)
    await expect(bar.get_by_role("status")).to_have_text("2 selected")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_contain_text("Select the focused row")
    await page.keyboard.press("Escape")
    await bar.get_by_role("button", name="Copy IDs").click()

    await page.get_by_text("Copied 2 IDs").wait_for()
    assert await page.evaluate("navigator.clipboard.readText()") == f"{ids[2]}\n{ids[0]}"
    await bar.get_by_role("button", name="Clear selection").click()
    await expect(bar).to_be_hidden()


async def test_range_is_selected_with_shift_and_stays_while_rows_change(tabs: Tabs, console: ConsoleClient) -> None:
    for number in range(5):
        await console.send_text(f"Number {number}")
    page = (await tabs(LIST)).page
    boxes = page.locator("#rows [data-pick]")
    await expect(boxes).to_have_count(5)

    await boxes.nth(1).check()
    await boxes.nth(3).click(modifiers=["Shift"])
    await page.locator("#rows > div").get_by_text("delivered").nth(4).wait_for()

    assert [await boxes.nth(at).is_checked() for at in range(5)] == [False, True, True, True, False]


async def test_selected_messages_are_exported(console: ConsoleClient) -> None:
    first = await console.send_text("One")
    await console.send_text("Two")

    response = await console.post(f"{LIST}/selected/export", {"id": first}, status=200)

    rows = list(csv.DictReader(io.StringIO(await response.text())))
    assert [row["id"] for row in rows] == [first]


async def test_callbacks_of_selected_messages_are_replayed(tabs: Tabs, console: ConsoleClient) -> None:
    sink = CallbackSink()
    await sink.open()
    form = {"modes": "SENT,DELIVERED", "tag": "orders", "version": "2", "url": sink.url, "doCheck": "false"}
    await console.api.form("POST", f"/partner/app/{console.app_id}/subscription", form)
    message_id, other_id = await console.send_text("One"), await console.send_text("Two")
    for one in (message_id, other_id):
        await wait_for_state(console, one, "delivered", "read")
    await sink.wait_until(lambda: len(sink.accepted) == 4)
    tab = await tabs(LIST)
    page = tab.page

    await page.locator(f"#m-{message_id} [data-pick]").check()
    await page.get_by_role("button", name="Replay callbacks").click()
    await answer_question(page, "Replay callbacks")

    await page.get_by_text("Replaying 2 callbacks.").wait_for()
    await sink.wait_until(lambda: len(sink.accepted) == 6)
    replayed = {callback.callback_id for callback in sink.accepted[4:]}
    trace = await console.admin.json("GET", f"/admin/trace/{message_id}")
    assert replayed == {callback["id"] for callback in trace["callbacks"]}
    await sink.close()


@pytest.mark.parametrize("action", ["export", "replay", "show"])
async def test_action_without_a_selection_is_an_error(console: ConsoleClient, action: str) -> None:
    await console.post(f"{LIST}/selected/{action}", {}, status=403)


async def test_received_messages_are_found_by_text_and_by_name(console: ConsoleClient) -> None:
    await write_from(console, BEN, "Where is my PARCEL?", "Ben Cook")
    await write_from(console, demo.DESTINATION, "Good morning", "Ann")

    pages = {query: await console.get(f"{RECEIVED}?{query}") for query in ("text=parcel", "q=ben+co", "text=letter")}

    assert ["Where is my PARCEL?" in page for page in pages.values()] == [True, True, False]
    assert not [query for query, page in pages.items() if "Good morning" in page]
    assert "No message matches all filters" in pages["text=letter"]
    assert "In reply to</span>" in pages["text=parcel"]


async def test_received_picture_has_a_preview_once_it_was_fetched(console: ConsoleClient) -> None:
    content = base64.b64encode(picture("pretzel")).decode()
    media = {"content": content, "mime_type": "image/png", "caption": "The box"}
    body = {"to": demo.SOURCE, "type": "image", "media": media}
    await console.control.json("POST", f"/control/phones/{BEN}/messages", body)

    page = await poll_until(lambda: console.get(RECEIVED), lambda page: "msg-picture" in page)

    path = page.partition('class="msg-picture" src="')[2].partition('"')[0]
    async with console.http.get(console.base_url + path) as response:
        assert (response.status, response.content_type) == (200, "image/png")


async def test_filter_is_saved_used_found_in_the_palette_and_removed(tabs: Tabs, console: ConsoleClient) -> None:
    await console.send_text("Hello")
    tab = await tabs(f"{LIST}?state=failed")
    page = tab.page
    saved = page.locator("details.saved")

    await saved.locator("summary").click()
    await saved.get_by_label("Name of the current filter").fill("Failures")
    await page.keyboard.press("Enter")
    await expect(saved.get_by_role("link", name="Failures", exact=True)).to_have_attribute("aria-current", "true")
    await tab.go(LIST)
    await saved.locator("summary").click()
    await saved.get_by_role("link", name="Failures", exact=True).click()
    await page.wait_for_url("**/messages?state=failed")
    await tab.go("/settings")
    await page.keyboard.press("Control+k")
    await page.keyboard.type("failures")
    await page.locator("#palette-list li").get_by_text("Saved filter").wait_for()
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/messages?state=failed")
    await saved.locator("summary").click()
    await saved.get_by_role("button", name="Remove the filter Failures").click()

    await expect(saved.get_by_text("No saved filters yet")).to_be_visible()
    await tab.go(f"{LIST}/received")
    await expect(saved.locator("li")).to_have_count(0)


async def test_palette_finds_people_messages_by_text_and_settings(tabs: Tabs, console: ConsoleClient) -> None:
    await write_from(console, BEN, "Where is my parcel?", "Ben Cook")
    message_id = await send_template(console, "Zinnia", "4711")
    await wait_for_state(console, message_id, "delivered", "read")
    tab = await tabs("/settings")
    results = tab.page.locator("#palette-list li")

    async def open_result(text: str, expected: str, address: str) -> None:
        await tab.page.keyboard.press("Control+k")
        await tab.page.locator("#palette-text:focus").wait_for()
        await tab.page.keyboard.type(text)
        await results.filter(has_text=expected).first.click()
        await tab.page.wait_for_url(address)

    await open_result("ben co", "Conversation, +1 555 000 2002", "**/conversations/*")
    await open_result("zinnia", "Sent to Ben Cook", f"**/messages/{message_id}")
    await open_result("parcel", "Received from Ben Cook", "**/conversations?q=wamid*")
    await open_result("retention", "Retention of messages", "**/settings#retention")
    await open_result("review after", "Simulator rule, templates", "**/simulator/rules#r-review_delay_ms")


async def test_phones_of_fleets_are_listed_only_on_request(console: ConsoleClient) -> None:
    fleet = {"name": "crowd", "first": "15551000000", "count": 100, "seed": 7}
    await console.control.json("POST", "/control/fleets", fleet)
    await console.control.json("POST", "/control/phones/15551000001/messages", {"to": demo.SOURCE, "text": "Hi"})
    await console.control.json("PUT", f"/control/phones/{BEN}", {"is_offline": True})

    people, fleets, offline = [await console.get(f"/phones{query}") for query in ("", "?view=fleets", "?view=offline")]

    assert "15551000001" not in people
    assert "15551000001" in fleets
    assert demo.DESTINATION not in fleets
    assert BEN in offline
    assert demo.DESTINATION not in offline


@pytest.mark.parametrize("path", [LIST, RECEIVED, f"/apps/{demo.APP_ID}/conversations"])
async def test_number_is_not_cut_beside_a_long_name(tabs: Tabs, console: ConsoleClient, path: str) -> None:
    await write_from(console, BEN, "Hello", "Benedikta Alexandrine Konstantinopoulos-Featherstonehaugh")
    await console.send_text("Good morning", to=BEN)

    number = (await tabs(path)).page.locator(".msg-person").first
    await expect(number).to_have_text("+1 555 000 2002")

    is_visible = """(one) => {
      const [own, cell] = [one.getBoundingClientRect(), one.closest(".msg-to").getBoundingClientRect()];
      return own.right <= cell.right + 0.5 && own.bottom <= cell.bottom + 0.5 && one.scrollWidth <= one.clientWidth + 1;
    }"""
    assert await number.evaluate(is_visible)
