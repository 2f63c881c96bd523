"""Conversations: found by name, number and ID; read, revealed, answered and marked as read; only the partner's own."""

import base64
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.console.conftest import LOOP, ConsoleClient, Tabs, close_console, open_console
from tests.console.support.input_methods import INPUT_METHODS
from tests.console.support.pictures import picture
from tests.support.polling import poll_until
from waypost.assembly.dev import demo
from waypost.console.web.formatting import format_phone

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

BEN: Final = demo.PHONES[1][0]
LIST: Final = f"/apps/{demo.APP_ID}/conversations"


@pytest_asyncio.fixture(loop_scope=LOOP)
async def console(tmp_path: Path, demo_data: Path) -> AsyncGenerator[ConsoleClient]:
    """A client of a console that hides texts."""
    console = await open_console(tmp_path, demo_data=demo_data, changes={"rates": False, "show_text": False})
    yield console
    await close_console(console)


async def write_from(console: ConsoleClient, phone: str, text: str, name: str = "", **more: Any) -> str:
    """Write from a phone, wait until it is stored, and return the operator's id."""
    if name:
        await console.control.json("PUT", f"/control/phones/{phone}", {"name": name})
    body = {"to": demo.SOURCE, "text": text, **more}
    wamid = (await console.control.json("POST", f"/control/phones/{phone}/messages", body))["wamid"]
    await poll_until(lambda: console.get(f"{LIST}?q={wamid}"), lambda page: "msg-to" in page)
    return wamid


async def path_of(console: ConsoleClient, query: str) -> str:
    """Return the path of the only conversation that a search finds."""
    page = await console.get(f"{LIST}?q={query}")
    [path] = {part.partition("#")[0] for part in page.split(f'href="{LIST}/')[1:]}
    return f"{LIST}/{path}"


async def fail_next_send(console: ConsoleClient, code: int) -> None:
    fault = {"on": "call", "call": "messages.send", "what": {"fail": code}, "when": {"next": 1}}
    await console.control.json("POST", "/control/faults", {"faults": [fault]})


async def wait_for_state(console: ConsoleClient, message_id: str, *states: str) -> None:
    async def state() -> str:
        return (await console.admin.json("GET", f"/admin/trace/{message_id}"))["state"]

    await poll_until(state, lambda current: current in states)


@pytest.mark.parametrize("method", INPUT_METHODS)
async def test_customer_is_found_by_name_and_the_failure_explained_in_four_clicks(
    tabs: Tabs, console: ConsoleClient, method: str
) -> None:
    user = INPUT_METHODS[method]
    await write_from(console, demo.DESTINATION, "Hello", "Ann Baker")
    await write_from(console, BEN, "Hello too", "Ben Cook")
    await fail_next_send(console, 131049)
    failed = await console.send_text("Your order is ready", to=BEN)
    await wait_for_state(console, failed, "failed")
    tab = await tabs("/")
    page = tab.page

    await user.press(page.get_by_role("link", name="Messages").first)  # 1
    await user.press(page.get_by_role("link", name="Conversations"))  # 2
    await user.write(page.get_by_label("Name, number or ID"), "ben co")
    await user.press(page.get_by_role("button", name="Search"))  # 3
    rows = page.locator("#rows > div")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("Ben Cook")
    await user.press(rows.get_by_role("link"))  # 4

    await expect(page.get_by_role("heading", level=1)).to_have_text("Ben Cook")
    problem = page.locator(".talk-problem")
    await expect(problem).to_contain_text("131049")
    await expect(problem).to_contain_text("marketing limit")


async def test_conversation_is_masked_until_a_message_is_revealed(console: ConsoleClient) -> None:
    received = await write_from(console, BEN, "Zinnia from Ben", "Ben")
    sent = await console.send_text("Zinnia to Ben", to=BEN)
    await wait_for_state(console, sent, "delivered", "read")
    path = await path_of(console, BEN)

    pages = [await console.get(LIST), await console.get(path), await console.get(f"{path}?part=sent")]
    revealed = [await console.reveal(f"{path}/reveal", {"id": one}) for one in (sent, received)]

    assert not [page for page in pages if "Zinnia" in page]
    assert "(15 characters)" in pages[1]
    assert "(13 characters)" in pages[1]
    assert "Zinnia to Ben" in revealed[0]
    assert "Zinnia from Ben" in revealed[1]


async def test_text_is_found_within_the_conversation(console: ConsoleClient) -> None:
    await write_from(console, BEN, "Where is my parcel?")
    sent = await console.send_text("It is on its way", to=BEN)
    await wait_for_state(console, sent, "delivered", "read")
    path = await path_of(console, BEN)

    by_text = await console.get(f"{path}?text=PARCEL")
    nothing = await console.get(f"{path}?text=letter")
    wrong_day = await console.get(f"{path}?day=tomorrow")

    assert by_text.count('class="talk-entry') == 1
    assert "No matching messages" in nothing
    assert "Use the format 2026-11-22." in wrong_day


async def test_reply_is_sent_within_the_window_and_statuses_arrive(tabs: Tabs, console: ConsoleClient) -> None:
    await write_from(console, BEN, "Hello", "Ben")
    tab = await tabs(await path_of(console, BEN))
    page = tab.page
    await expect(page.locator("#talk-facts")).to_contain_text("1 unread")

    await page.get_by_label("Reply", exact=True).fill("How can we help?")
    await page.get_by_role("button", name="Send", exact=True).click()

    entry = page.locator(".talk-entry.is-sent")
    await expect(entry.locator(".talk-foot")).to_contain_text("delivered")
    await expect(entry).to_contain_text("(16 characters)")
    await entry.get_by_role("button", name="Show text").click()
    await expect(entry).to_contain_text("How can we help?")
    await expect(page.locator("#talk-facts")).not_to_contain_text("unread")


async def test_rejected_reply_shows_the_error_of_the_api(console: ConsoleClient) -> None:
    await write_from(console, BEN, "Hello", "Ben")
    path = await path_of(console, BEN)

    await console.post(f"{path}/reply", {"text": "x" * 5000})

    assert "notice-bad" in await console.get(path)


async def test_window_that_is_closed_offers_templates_only(tabs: Tabs, console: ConsoleClient) -> None:
    sent = await console.send_text("Hello", to=BEN)
    await wait_for_state(console, sent, "delivered", "read", "failed")
    tab = await tabs(await path_of(console, BEN))
    page = tab.page
    await expect(page.locator("#talk-facts")).to_contain_text("has not written yet")
    await expect(page.get_by_label("Reply", exact=True)).to_have_count(0)

    await page.locator(".talk-templates a").first.click()

    await expect(page.get_by_label("To", exact=True)).to_have_value(BEN)


async def test_marking_as_read_reaches_the_phone_and_the_list(console: ConsoleClient) -> None:
    wamid = await write_from(console, BEN, "Hello", "Ben")
    path = await path_of(console, BEN)
    assert f"{path}#" in await console.get(f"{LIST}?state=unread")

    await console.post(f"{path}/read", {})

    assert "Marked as read." in await console.get(path)
    assert "unread</span>" not in await console.get(path)
    assert f"{path}#" not in await console.get(f"{LIST}?state=unread")
    phone = await console.control.json("GET", f"/control/phones/{BEN}")
    assert next(one["state"] for one in phone["messages"] if one["wamid"] == wamid) == "read"


async def test_reaction_is_on_the_message_that_it_is_about(tmp_path: Path, demo_data: Path) -> None:
    console = await open_console(tmp_path, demo_data=demo_data, changes={"rates": False, "show_text": True})
    await write_from(console, BEN, "Hello", "Ben")
    sent = await console.send_text("Here it is", to=BEN)
    await wait_for_state(console, sent, "delivered", "read")
    wamid = (await console.admin.json("GET", f"/admin/trace/{sent}"))["operator_message_id"]
    reaction = {"to": demo.SOURCE, "type": "reaction", "reaction": {"message_id": wamid, "emoji": "👍"}}
    await console.control.json("POST", f"/control/phones/{BEN}/messages", reaction)
    path = await path_of(console, BEN)

    page = await poll_until(lambda: console.get(path), lambda page: "👍" in page)
    await close_console(console)

    assert page.count('class="talk-entry') == 2
    assert "bubble-reactions" in page


async def test_picture_of_a_recipient_is_shown_once_revealed(console: ConsoleClient) -> None:
    await write_from(console, BEN, "Hello", "Ben")
    path = await path_of(console, BEN)
    content = base64.b64encode(picture("pretzel")).decode()
    media = {"content": content, "mime_type": "image/png", "caption": "Zinnia caption"}
    body = {"to": demo.SOURCE, "type": "image", "media": media}
    wamid = (await console.control.json("POST", f"/control/phones/{BEN}/messages", body))["wamid"]
    masked = await poll_until(lambda: console.get(path), lambda page: "is-image" in page)
    assert "/media/" not in masked.partition('id="talk"')[2]
    assert "Zinnia" not in masked
    revealed = await poll_until(
        lambda: console.reveal(f"{path}/reveal", {"id": wamid}), lambda content: "/media/" in content
    )
    assert "Zinnia caption" in revealed


async def test_conversation_of_a_message_is_a_link_in_its_trace(tabs: Tabs, console: ConsoleClient) -> None:
    sent = await console.send_text("Hello", to=BEN)
    await wait_for_state(console, sent, "delivered", "read", "failed")
    tab = await tabs(f"/apps/{demo.APP_ID}/messages/{sent}")

    await tab.page.get_by_role("link", name="Conversation", exact=True).click()
    await expect(tab.page.locator("#rows > div")).to_have_count(1)
    await tab.page.keyboard.press("j")
    await tab.page.keyboard.press("Enter")

    await expect(tab.page.locator(".talk-entry.is-sent")).to_have_count(1)


async def test_conversation_of_a_number_and_its_whatsapp_id_is_found_by_either_and_names_both(
    console: ConsoleClient,
) -> None:
    number, whatsapp_id = "5593987654321", "559387654321"
    await console.control.json("PUT", f"/control/phones/{number}", {"wa_id": whatsapp_id})
    await write_from(console, number, "Hello", "Bia")
    sent = await console.send_text("Hello Bia", to=number)
    await wait_for_state(console, sent, "delivered", "read")

    paths = [await path_of(console, name) for name in (number, whatsapp_id)]
    page = await console.get(paths[0])

    assert paths[0] == paths[1]
    assert page.count("is-sent") == page.count("is-received") == 1
    assert f"Other number: {format_phone(number)}." in page


async def test_dots_in_a_name_are_no_id(console: ConsoleClient) -> None:
    await write_from(console, BEN, "Hello", "DR.Cook")

    assert await path_of(console, "DR.Cook") == await path_of(console, BEN)


@pytest.mark.parametrize("recipient_id", ["0", "999999", "x", "-1", "9" * 30])
async def test_unknown_conversation_is_not_found(console: ConsoleClient, recipient_id: str) -> None:
    for query in ("", "/live"):
        await console.get(f"{LIST}/{recipient_id}{query}", status=404)


@pytest.mark.parametrize("query", ["q=12", "state=lost", "before=zzz", "before=9.%20", f"q={'x' * 5000}"])
async def test_odd_filters_get_a_page(console: ConsoleClient, query: str) -> None:
    assert "Conversations" in await console.get(f"{LIST}?{query}")


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
async def test_conversation_opens_at_its_newest_message_with_the_reply_in_view(
    tabs: Tabs, console: ConsoleClient, width: int, height: int
) -> None:
    for number in range(30):
        await console.control.json(
            "POST", f"/control/phones/{BEN}/messages", {"to": demo.SOURCE, "text": f"No. {number}"}
        )
    await write_from(console, BEN, "The last one", "Ben")
    path = await path_of(console, BEN)
    tab = await tabs("/", width=width)
    await tab.page.set_viewport_size({"width": width, "height": height})
    await tab.page.goto(tab.console.base_url + path)

    await expect(tab.page.locator(".talk-entry").last).to_be_in_viewport(ratio=1)
    await expect(tab.page.get_by_label("Reply", exact=True)).to_be_in_viewport(ratio=1)
    await expect(tab.page.locator(".talk-entry").first).not_to_be_in_viewport()
