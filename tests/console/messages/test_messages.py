"""The list of messages: live, searched, filtered, paged, exported; and only the partner's own."""

import csv
import io
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio

from tests.console.conftest import LOOP, ConsoleClient, Tabs, close_console, open_console
from tests.support.polling import poll_until
from waypost.assembly.dev import demo

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)


@pytest_asyncio.fixture(loop_scope=LOOP)
async def console(tmp_path: Path, demo_data: Path) -> AsyncGenerator[ConsoleClient]:
    """A client of a console without rate limits."""
    console = await open_console(tmp_path, demo_data=demo_data, changes={"rates": False})
    yield console
    await close_console(console)


BEN = demo.PHONES[1][0]
LIST = f"/apps/{demo.APP_ID}/messages"


async def send_template(console: ConsoleClient, *params: str, to: str = demo.DESTINATION) -> str:
    response = await console.api.form(
        "POST",
        f"/partner/app/{console.app_id}/template/msg",
        {
            "channel": "whatsapp", "source": demo.SOURCE, "destination": to, "src.name": demo.APP_NAME,
            "template": json.dumps({"id": demo.TEMPLATE_ID, "params": list(params)}),
        },
    )  # fmt: skip
    return response["messageId"]


async def fail_next_send(console: ConsoleClient, code: int) -> None:
    fault = {"on": "call", "call": "messages.send", "what": {"fail": code}, "when": {"next": 1}}
    await console.control.json("POST", "/control/faults", {"faults": [fault]})


async def get_state(console: ConsoleClient, message_id: str) -> str:
    return (await console.admin.json("GET", f"/admin/trace/{message_id}"))["state"]


async def wait_for_state(console: ConsoleClient, message_id: str, state: str) -> None:
    await poll_until(lambda: get_state(console, message_id), lambda current: current == state)


async def list_ids(console: ConsoleClient, query: str = "") -> set[str]:
    """Return the IDs on the first page."""
    page = await console.get(f"{LIST}?{query}" if query else LIST)
    return {part.partition('"')[0] for part in page.split('<div id="m-')[1:]}


async def test_messages_appear_at_the_top_and_are_updated_in_place(tabs: Tabs, console: ConsoleClient) -> None:
    tab = await tabs(LIST)
    await tab.page.get_by_text("No messages yet").wait_for()

    first = await console.send_text("The first of all")
    await tab.page.locator(f"#rows > #m-{first}").get_by_text("delivered").wait_for()
    second = await console.send_text("The second")
    await tab.page.locator(f"#rows > #m-{second}").wait_for()

    shown = await tab.page.locator("#rows > div").evaluate_all("rows => rows.map(row => row.id)")
    assert shown == [f"m-{second}", f"m-{first}"]
    assert not await tab.page.get_by_text("No messages yet").is_visible()


async def test_new_messages_wait_behind_a_button_while_a_row_has_the_focus(tabs: Tabs, console: ConsoleClient) -> None:
    first = await console.send_text("Read me")
    tab = await tabs(LIST)
    await tab.page.locator(f"#m-{first} a").focus()

    second = await console.send_text("I wait")

    button = tab.page.get_by_role("button", name="1 new")
    await button.wait_for()
    assert await tab.page.locator("#rows > div").count() == 1
    await button.click()
    await tab.page.locator(f"#rows > #m-{second}").wait_for()
    assert await tab.page.locator("#rows > div").count() == 2


async def test_every_filter_returns_the_matching_messages(console: ConsoleClient) -> None:
    text = await console.send_text("See you at the café", to=demo.DESTINATION)
    template = await send_template(console, "Ann", "4711", to=BEN)
    await wait_for_state(console, template, "delivered")
    await wait_for_state(console, text, "delivered")
    await fail_next_send(console, 131049)
    failed = await console.send_text("No more of this")
    await wait_for_state(console, failed, "failed")
    wamid = (await console.admin.json("GET", f"/admin/trace/{text}"))["operator_message_id"]

    cases = {
        "": {text, template, failed},
        "state=failed": {failed},
        "code=131049": {failed},
        "kind=template": {template},
        f"template={demo.TEMPLATE_ID}": {template},
        "q=2002": {template},
        "q=%2B1+555+000+2001": {text, failed},
        "q=2001&state=delivered": {text},
        "time=hour&text=cafe": set[str](),
        "text=café": {text},
        "time=hour&text=CAFÉ": {text},
        "time=today&text=4711&kind=template": {template},
        "time=custom&from=2020-01-01T00:00&until=2020-01-02T00:00": set[str](),
        "time=custom&from=2020-01-01T00:00": {text, template, failed},
    }
    for query, expected in cases.items():
        assert await list_ids(console, query) == expected, query
    for name in (text, wamid):
        assert "<h2>Trace</h2>" in await console.get(f"{LIST}?q={quote(name, safe='')}")


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("q=123", "at least 4 digits"),
        ("code=abc", "Enter a number, such as 131049"),
        ("from=yesterday", "Use the format"),
        ("time=custom&from=2026-01-02&until=2026-01-01", "must be after the start"),
        ("state=gone", "Unknown status"),
        ("time=ever", "Unknown time range"),
    ],
)
async def test_invalid_filter_shows_a_hint(console: ConsoleClient, query: str, hint: str) -> None:
    assert hint in await console.get(f"{LIST}?{query}")


async def test_older_messages_are_loaded_page_by_page_without_duplicates(tabs: Tabs, console: ConsoleClient) -> None:
    message_ids = [await console.send_text(f"Number {number}") for number in range(120)]
    tab = await tabs(LIST)
    assert await tab.page.locator("#rows > div").count() == 50

    # A real click scrolls to the link, which loads the page too, and may replace the link before it is clicked
    await tab.page.get_by_role("link", name="Older messages").dispatch_event("click")
    await tab.page.locator("#rows > div").nth(99).wait_for()
    await tab.page.keyboard.press("End")
    await tab.page.get_by_text("No older messages.").wait_for()

    rows = tab.page.locator("#rows > div")
    shown = await rows.evaluate_all("rows => rows.map(row => row.id)")
    places = await rows.evaluate_all("rows => rows.map(row => row.dataset.place)")
    assert sorted(shown) == sorted(f"m-{message_id}" for message_id in message_ids)
    assert places == sorted(places, reverse=True)


async def test_export_has_the_filtered_messages_and_no_formula(console: ConsoleClient) -> None:
    await fail_next_send(console, 131049)
    failed = await console.send_text("=1+1")
    await wait_for_state(console, failed, "failed")
    await console.send_text("Another")

    rows = list(csv.DictReader(io.StringIO(await console.get(f"{LIST}/export?state=failed"))))

    assert [(row["id"], row["code"], row["state"]) for row in rows] == [(failed, "131049", "failed")]
    assert not any(cell.startswith("=") for row in rows for cell in row.values())


async def test_script_in_content_is_shown_as_text(tabs: Tabs, console: ConsoleClient) -> None:
    script = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    message_id = await send_template(console, script, "1")

    tab = await tabs(LIST)

    await tab.page.locator(f"#m-{message_id}").get_by_text("<script>").wait_for()
    assert await tab.page.locator("#rows img, #rows script").count() == 0


async def test_message_is_found_and_opened_by_keyboard_alone(tabs: Tabs, console: ConsoleClient) -> None:
    message_id = await console.send_text("By keyboard")
    await wait_for_state(console, message_id, "delivered")
    tab = await tabs(LIST)

    await tab.page.keyboard.press("/")
    await tab.page.keyboard.type("2001")
    await tab.page.keyboard.press("Enter")
    await tab.page.wait_for_url("**/messages?q=2001")
    await tab.page.wait_for_load_state("load")
    await tab.page.keyboard.press("ArrowDown")
    await tab.page.keyboard.press("Enter")

    await tab.page.wait_for_url(f"**/messages/{message_id}")


@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_list_needs_no_horizontal_scrolling(tabs: Tabs, console: ConsoleClient, width: int, theme: Any) -> None:
    await send_template(console, "Ann" * 40, "4711" * 20)

    tab = await tabs(f"{LIST}?time=custom&from=2020-01-01T00:00", width=width, theme=theme)

    assert await tab.page.evaluate("document.documentElement.scrollWidth") <= width


async def test_received_reply_appears_and_links_to_the_original_message(tabs: Tabs, console: ConsoleClient) -> None:
    message_id = await console.send_text("Shall we?")
    wamid = (await wait_for_trace(console, message_id))["operator_message_id"]
    tab = await tabs(f"{LIST}/received")

    await console.control.json(
        "POST",
        f"/control/phones/{demo.DESTINATION}/messages",
        {"to": demo.SOURCE, "text": "Yes <i>please</i>", "context_id": wamid},
    )

    row = tab.page.locator("#rows > div").filter(has_text="Yes <i>please</i>")
    await row.wait_for()
    await row.get_by_role("link", name="View message that this replies to").click()
    await tab.page.wait_for_url(f"**/messages/{message_id}")


async def wait_for_trace(console: ConsoleClient, message_id: str) -> dict[str, Any]:
    await wait_for_state(console, message_id, "delivered")
    return await console.admin.json("GET", f"/admin/trace/{message_id}")


async def test_received_messages_are_found_by_number(console: ConsoleClient) -> None:
    path = f"{LIST}/received?q=2001"  # the demo phone has sent a message
    await poll_until(lambda: console.get(path), lambda page: "+1 555 000 2001" in page)
    assert "No message matches all filters" in await console.get(f"{LIST}/received?q=9999")
    assert "at least 4 digits" in await console.get(f"{LIST}/received?q=12")


async def test_message_that_fails_appears_in_the_open_list_of_failed_messages(
    tabs: Tabs, console: ConsoleClient
) -> None:
    tab = await tabs(f"{LIST}?state=failed")
    await tab.page.get_by_text("No matching messages").wait_for()

    await fail_next_send(console, 131026)
    message_id = await console.send_text("Fails")

    row = tab.page.locator(f"#rows > #m-{message_id}")
    await row.get_by_text("131026").wait_for()
