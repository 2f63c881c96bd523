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

from tests.console.conftest import LOOP, Desk, Tabs, close_desk, open_desk
from tests.support.waiting import patiently
from waypost.assembly.dev import demo

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)


@pytest_asyncio.fixture(loop_scope=LOOP)
async def desk(tmp_path: Path, begun: Path) -> AsyncGenerator[Desk]:
    """Without limits of how much is sent."""
    desk = await open_desk(tmp_path, begun=begun, changes={"rates": False})
    yield desk
    await close_desk(desk)


BEN = demo.PHONES[1][0]
LIST = f"/apps/{demo.APP_ID}/messages"


async def send_template(desk: Desk, *params: str, to: str = demo.DESTINATION) -> str:
    answer = await desk.api.form(
        "POST",
        f"/partner/app/{desk.app_id}/template/msg",
        {
            "channel": "whatsapp", "source": demo.SOURCE, "destination": to, "src.name": demo.APP_NAME,
            "template": json.dumps({"id": demo.TEMPLATE_ID, "params": list(params)}),
        },
    )  # fmt: skip
    return answer["messageId"]


async def fail_the_next(desk: Desk, code: int) -> None:
    fault = {"on": "call", "call": "messages.send", "what": {"fail": code}, "when": {"next": 1}}
    await desk.control.json("POST", "/control/faults", {"faults": [fault]})


async def state_of(desk: Desk, message_id: str) -> str:
    return (await desk.admin.json("GET", f"/admin/trace/{message_id}"))["state"]


async def until(desk: Desk, message_id: str, state: str) -> None:
    await patiently(lambda: state_of(desk, message_id), lambda now: now == state)


async def listed(desk: Desk, query: str = "") -> set[str]:
    """The ids on the first page."""
    page = await desk.get(f"{LIST}?{query}" if query else LIST)
    return {part.partition('"')[0] for part in page.split('<li id="m-')[1:]}


async def test_messages_come_in_at_the_top_and_turn_in_place(tabs: Tabs, desk: Desk) -> None:
    tab = await tabs(LIST)
    await tab.page.get_by_text("No messages yet").wait_for()

    first = await desk.send_text("The first of all")
    await tab.page.locator(f"#rows > #m-{first}").get_by_text("delivered").wait_for()
    second = await desk.send_text("The second")
    await tab.page.locator(f"#rows > #m-{second}").wait_for()

    shown = await tab.page.locator("#rows > li").evaluate_all("rows => rows.map(row => row.id)")
    assert shown == [f"m-{second}", f"m-{first}"]
    assert not await tab.page.get_by_text("No messages yet").is_visible()


async def test_new_messages_wait_behind_a_button_while_somebody_reads(tabs: Tabs, desk: Desk) -> None:
    first = await desk.send_text("Read me")
    tab = await tabs(LIST)
    await tab.page.locator(f"#m-{first} a").focus()

    second = await desk.send_text("I wait")

    button = tab.page.get_by_role("button", name="1 new")
    await button.wait_for()
    assert await tab.page.locator("#rows > li").count() == 1
    await button.click()
    await tab.page.locator(f"#rows > #m-{second}").wait_for()
    assert await tab.page.locator("#rows > li").count() == 2


async def test_every_filter_finds_what_it_says(desk: Desk) -> None:
    text = await desk.send_text("See you at the café", to=demo.DESTINATION)
    template = await send_template(desk, "Ann", "4711", to=BEN)
    await until(desk, template, "delivered")
    await until(desk, text, "delivered")
    await fail_the_next(desk, 131049)
    failed = await desk.send_text("No more of this")
    await until(desk, failed, "failed")
    wamid = (await desk.admin.json("GET", f"/admin/trace/{text}"))["operator_message_id"]

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
        "time=hour&text=CAFÉ": {text},
        "time=today&text=4711&kind=template": {template},
        "time=custom&from=2020-01-01T00:00&until=2020-01-02T00:00": set[str](),
        "time=custom&from=2020-01-01T00:00": {text, template, failed},
    }
    for query, wanted in cases.items():
        assert await listed(desk, query) == wanted, query
    for name in (text, wamid):
        assert "<h2>Trace</h2>" in await desk.get(f"{LIST}?q={quote(name, safe='')}")


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("q=123", "at least 4 digits"),
        ("text=hello", "Choose a time too"),
        ("code=abc", "Enter a number, such as 131049"),
        ("from=yesterday", "Use the format"),
        ("time=custom&from=2026-01-02&until=2026-01-01", "must be after the start"),
        ("state=gone", "Unknown status"),
        ("time=ever", "Unknown time range"),
    ],
)
async def test_filter_with_a_mistake_says_what_to_write(desk: Desk, query: str, told: str) -> None:
    assert told in await desk.get(f"{LIST}?{query}")


async def test_older_messages_come_page_by_page_and_none_twice(tabs: Tabs, desk: Desk) -> None:
    sent = [await desk.send_text(f"Number {number}") for number in range(120)]
    tab = await tabs(LIST)
    assert await tab.page.locator("#rows > li").count() == 50

    await tab.page.get_by_role("link", name="Older messages").click()
    await tab.page.locator("#rows > li").nth(99).wait_for()
    await tab.page.keyboard.press("End")
    await tab.page.get_by_text("No older messages.").wait_for()

    rows = tab.page.locator("#rows > li")
    shown = await rows.evaluate_all("rows => rows.map(row => row.id)")
    places = await rows.evaluate_all("rows => rows.map(row => row.dataset.place)")
    assert sorted(shown) == sorted(f"m-{one}" for one in sent)
    assert places == sorted(places, reverse=True)


async def test_export_has_what_is_filtered_and_no_formula(desk: Desk) -> None:
    await fail_the_next(desk, 131049)
    failed = await desk.send_text("=1+1")
    await until(desk, failed, "failed")
    await desk.send_text("Another")

    rows = list(csv.DictReader(io.StringIO(await desk.get(f"{LIST}/export?state=failed"))))

    assert [(row["id"], row["code"], row["state"]) for row in rows] == [(failed, "131049", "failed")]
    assert not any(cell.startswith("=") for row in rows for cell in row.values())


async def test_words_that_are_script_show_as_text(tabs: Tabs, desk: Desk) -> None:
    script = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    message_id = await send_template(desk, script, "1")

    tab = await tabs(LIST)

    await tab.page.locator(f"#m-{message_id}").get_by_text("<script>").wait_for()
    assert await tab.page.locator("#rows img, #rows script").count() == 0


async def test_keyboard_alone_searches_and_opens_a_message(tabs: Tabs, desk: Desk) -> None:
    message_id = await desk.send_text("By keyboard")
    await until(desk, message_id, "delivered")
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
async def test_list_needs_no_scrolling_sideways(tabs: Tabs, desk: Desk, width: int, theme: Any) -> None:
    await send_template(desk, "Ann" * 40, "4711" * 20)

    tab = await tabs(f"{LIST}?time=custom&from=2020-01-01T00:00", width=width, theme=theme)

    assert await tab.page.evaluate("document.documentElement.scrollWidth") <= width


async def test_what_recipients_write_comes_in_and_leads_to_what_it_answers(tabs: Tabs, desk: Desk) -> None:
    message_id = await desk.send_text("Shall we?")
    wamid = (await until_known(desk, message_id))["operator_message_id"]
    tab = await tabs(f"{LIST}/received")

    await desk.control.json(
        "POST",
        f"/control/phones/{demo.DESTINATION}/messages",
        {"to": demo.SOURCE, "text": "Yes <i>please</i>", "context_id": wamid},
    )

    row = tab.page.locator("#rows > li").filter(has_text="Yes <i>please</i>")
    await row.wait_for()
    await row.get_by_role("link", name="In reply to a message").click()
    await tab.page.wait_for_url(f"**/messages/{message_id}")


async def until_known(desk: Desk, message_id: str) -> dict[str, Any]:
    await until(desk, message_id, "delivered")
    return await desk.admin.json("GET", f"/admin/trace/{message_id}")


async def test_received_messages_are_found_by_number(desk: Desk) -> None:
    found = f"{LIST}/received?q=2001"  # the demonstration's phone has written
    await patiently(lambda: desk.get(found), lambda page: "+1 555 000 2001" in page)
    assert "No message from such a number" in await desk.get(f"{LIST}/received?q=9999")
    assert "at least 4 digits" in await desk.get(f"{LIST}/received?q=12")


async def test_message_that_fails_later_comes_into_the_list_of_failed_ones(tabs: Tabs, desk: Desk) -> None:
    tab = await tabs(f"{LIST}?state=failed")
    await tab.page.get_by_text("No matching messages").wait_for()

    await fail_the_next(desk, 131026)
    message_id = await desk.send_text("Fails")

    row = tab.page.locator(f"#rows > #m-{message_id}")
    await row.get_by_text("131026").wait_for()
