"""The phone of a business in a browser: its chats beside the API, its connection, and its syncs."""

from importlib import resources
from typing import Any, Final

import pytest
from playwright.async_api import Locator, expect

from tests.console.conftest import LOOP, ConsoleClient, Tab, Tabs, answer_question
from tests.support.media_samples import sample
from tests.support.polling import poll_until
from waypost.assembly.dev import demo

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)
ANN: Final = demo.DESTINATION
PAGE: Final = f"/phones/business/{demo.SOURCE}"
AXE: Final = resources.files("axe_playwright_python") / "axe.min.js"


async def app_call(console: ConsoleClient, method: str, path: str = "", body: dict[str, Any] | None = None) -> Any:
    return await console.control.json(method, f"/control/numbers/{demo.PHONE_NUMBER_ID}/business-app{path}", body)


async def newest_from_app(console: ConsoleClient) -> dict[str, Any]:
    """Return the newest message on the customer's phone, once it is one of the app."""

    async def read_newest() -> dict[str, Any]:
        return (await console.control.json("GET", f"/control/phones/{ANN}"))["messages"][-1]

    return await poll_until(read_newest, lambda message: message.get("sent_by") == "business_app")


def bubbles(tab: Tab) -> Locator:
    return tab.page.locator(".entry")


async def type_message(tab: Tab, text: str) -> None:
    field = tab.page.get_by_role("textbox", name="Message to")
    await field.fill(text)
    await field.press("Enter")


async def test_number_is_connected_and_its_phone_chats_beside_the_api(tabs: Tabs, console: ConsoleClient) -> None:
    await console.control.json("POST", f"/control/phones/{ANN}/messages", {"to": demo.SOURCE, "text": "Are you open?"})
    tab = await tabs("/phones")
    await tab.page.get_by_role("link", name=demo.SOURCE[:1]).filter(has_text="API only").click()
    await tab.page.get_by_role("button", name="Connect the app").click()
    await tab.page.locator(".chats a").first.click()
    await expect(bubbles(tab).last).to_contain_text("Are you open?")

    message_id = await console.send_text("The bot is here")
    await type_message(tab, "And I am, too")

    by_api = bubbles(tab).filter(has_text="The bot is here")
    await expect(by_api).to_contain_text("Sent by the API")
    await expect(bubbles(tab).last).to_contain_text("And I am, too")
    await expect(bubbles(tab).last).not_to_contain_text("Sent by the API")
    await by_api.hover()
    assert await by_api.get_by_role("link", name="Trace").get_attribute("href") == (
        f"/apps/{console.app_id}/messages/{message_id}"
    )
    assert await by_api.get_by_role("button", name="Edit").count() == 0
    shown = (await console.control.json("GET", f"/control/phones/{ANN}"))["messages"]
    assert [one["text"] for one in shown if one.get("sent_by") == "business_app"] == ["And I am, too"]


async def test_message_of_the_phone_is_edited_and_deleted_with_the_keyboard(tabs: Tabs, console: ConsoleClient) -> None:
    await app_call(console, "POST", "/connect", {})
    tab = await tabs(f"{PAGE}?chat={ANN}")
    await type_message(tab, "At five")
    await expect(bubbles(tab).last).to_contain_text("At five")

    await bubbles(tab).last.focus()
    await tab.page.keyboard.press("w")
    field = tab.page.get_by_role("textbox", name="Message to")
    await expect(field).to_have_value("At five")
    await type_message(tab, "At six")
    await expect(bubbles(tab).last).to_contain_text("Edited")
    await expect(bubbles(tab).last).to_contain_text("At six")
    await expect(field).to_have_value("")
    await type_message(tab, "By the door")
    await expect(bubbles(tab)).to_have_count(3)
    await bubbles(tab).last.focus()
    await tab.page.keyboard.press("d")
    await answer_question(tab.page, "Delete")

    await expect(bubbles(tab).last).to_contain_text("Deleted")
    [_, edited, deleted] = (await app_call(console, "GET", f"/chats/{ANN}"))["messages"]
    assert (edited["text"], edited["edited_ms"] is None) == ("At six", False)
    assert (deleted["text"], deleted["revoked_ms"] is None) == ("", False)


@pytest.mark.parametrize(
    ("kind", "name", "mime_type", "has_caption"),
    [
        ("image", "cake.png", "image/png", True),
        ("document", "menu.pdf", "application/pdf", True),
        ("audio", "hello.mp3", "audio/mpeg", False),
        ("video", "shop.mp4", "video/mp4", True),
    ],
)
async def test_file_of_the_phone_reaches_the_customer_as_a_reply_with_its_caption(
    tabs: Tabs, console: ConsoleClient, kind: str, name: str, mime_type: str, has_caption: bool
) -> None:
    await app_call(console, "POST", "/connect", {})
    await console.control.json("POST", f"/control/phones/{ANN}/messages", {"to": demo.SOURCE, "text": "Show me"})
    tab = await tabs(f"{PAGE}?chat={ANN}")
    asked = bubbles(tab).filter(has_text="Show me")
    wamid = await asked.get_attribute("data-wamid")
    await asked.focus()
    await tab.page.keyboard.press("r")
    await tab.page.get_by_role("button", name="Attach").click()
    sheet = tab.page.get_by_role("dialog", name="Send file")
    file: Any = {"name": name, "mimeType": mime_type, "buffer": sample(name.rpartition(".")[2])}
    await sheet.get_by_label("File").set_input_files(file)
    await sheet.get_by_label("Caption").fill("As promised")

    await sheet.get_by_role("button", name="Send").click()

    await expect(sheet).to_be_hidden()
    await expect(bubbles(tab).last.locator(".bubble-quote")).to_contain_text("Show me")
    received = await newest_from_app(console)
    assert (received["type"], received["media"]["mime_type"]) == (kind, mime_type)
    assert received["text"] == ("As promised" if has_caption else "")
    assert received["context_id"] == wamid


async def test_file_dropped_on_the_phone_is_kept_until_the_phone_is_online(tabs: Tabs, console: ConsoleClient) -> None:
    await app_call(console, "POST", "/connect", {})
    await app_call(console, "PUT", "", {"is_offline": True})
    files = (await console.control.json("GET", "/control/media"))["media"]
    tab = await tabs(f"{PAGE}?chat={ANN}")
    await tab.page.evaluate(
        """() => { const given = new DataTransfer(); given.items.add(new File(["Hello"], "note.txt", {type: "text/plain"}));
        document.querySelector(".chat-items").dispatchEvent(new DragEvent("drop", {dataTransfer: given, bubbles: true, cancelable: true})); }"""
    )
    sheet = tab.page.get_by_role("dialog", name="Send file")

    await sheet.get_by_role("button", name="Send").click()
    await expect(sheet).to_contain_text("This phone is offline.")
    kept = (await console.control.json("GET", "/control/media"))["media"]
    await app_call(console, "PUT", "", {"is_offline": False})
    await sheet.get_by_role("button", name="Send").click()

    await expect(bubbles(tab).last).to_contain_text("note.txt")
    assert kept == files
    assert all("403" in error for error in tab.errors)  # the browser logs every error response
    tab.errors.clear()


async def test_phone_reacts_to_a_message_and_takes_the_reaction_back(tabs: Tabs, console: ConsoleClient) -> None:
    await app_call(console, "POST", "/connect", {})
    sent = {"to": demo.SOURCE, "text": "See you at five"}
    await console.control.json("POST", f"/control/phones/{ANN}/messages", sent)
    tab = await tabs(f"{PAGE}?chat={ANN}")
    message = bubbles(tab).filter(has_text="See you at five")
    wamid = await message.get_attribute("data-wamid")
    given = {"type": "reaction", "reaction": {"message_id": wamid, "emoji": "🎉"}}
    await console.control.json("POST", f"/control/phones/{ANN}/messages", {"to": demo.SOURCE, **given})
    await expect(message.locator(".bubble-reactions")).to_contain_text("Reaction from the customer: 🎉")

    await message.focus()
    await tab.page.keyboard.press("e")
    await tab.page.get_by_role("button", name="Heart").click()
    await expect(message.locator(".bubble-reactions")).to_contain_text("Reaction from this phone: ❤️")
    reacted = await newest_from_app(console)
    await message.focus()
    await tab.page.keyboard.press("e")
    await tab.page.get_by_role("button", name="Remove").click()

    await expect(message.locator(".bubble-reactions")).not_to_contain_text("this phone")
    await expect(message.locator(".bubble-reactions")).to_contain_text("🎉")
    assert (reacted["type"], reacted["reaction"]) == ("reaction", {"message_id": wamid, "emoji": "❤️"})


async def test_message_of_the_history_is_reacted_to_and_quoted_under_its_author(
    tabs: Tabs, console: ConsoleClient
) -> None:
    await app_call(console, "POST", "/connect", {})
    await app_call(console, "PUT", f"/contacts/{ANN}", {"full_name": "Ann Archer"})
    old = {"phone": ANN, "text": "Do you have rye?", "at_ms": 1_700_000_000_000}
    await app_call(console, "PUT", "/history", {"messages": [old]})
    tab = await tabs(f"{PAGE}?chat={ANN}")
    message = bubbles(tab).filter(has_text="Do you have rye?").first

    await message.focus()
    await tab.page.keyboard.press("e")
    await tab.page.get_by_role("button", name="Thumbs up").click()
    await expect(message.locator(".bubble-reactions")).to_contain_text("👍")
    await message.focus()
    await tab.page.keyboard.press("r")
    await type_message(tab, "Every day")

    quote = bubbles(tab).last.locator(".bubble-quote")
    await expect(quote).to_contain_text("Do you have rye?")
    await expect(quote.locator("strong")).to_have_text("Ann Archer")


async def test_history_is_generated_requested_and_followed_to_its_end(tabs: Tabs, console: ConsoleClient) -> None:
    await app_call(console, "POST", "/connect", {})
    tab = await tabs(PAGE)
    form = tab.page.locator("form", has=tab.page.get_by_role("heading", name="History on the phone"))
    await form.get_by_label("Messages").fill("400")
    await form.get_by_label("Chats").fill("20")
    await form.get_by_label("Sent twice").fill("100")
    await form.get_by_label("Send in random order").check()
    await form.get_by_role("button", name="Generate").click()
    sync = tab.page.locator("section", has=tab.page.get_by_role("heading", name="Synchronization"))
    await expect(sync).to_contain_text("400 on the phone")

    await sync.get_by_role("button", name="Request contacts").click()
    await sync.get_by_role("button", name="Request history").click()

    await expect(sync.get_by_text("requested", exact=True)).to_have_count(2)
    for name in ("contacts", "phase 1", "phase 2", "files"):
        step = sync.get_by_label(f"{name.capitalize()}: webhooks delivered")
        await expect(step).to_have_js_property("position", 1)
    steps = (await app_call(console, "GET"))["sync_progress"]
    assert sum(step["count"] for step in steps if step["name"].startswith("phase")) == 800
    await expect(tab.page.locator(".chats li")).to_have_count(21)  # with that of the demonstration


async def test_declined_history_says_so(tabs: Tabs, console: ConsoleClient) -> None:
    tab = await tabs(PAGE)
    await tab.page.get_by_label("Do not share the history").check()
    await tab.page.get_by_role("button", name="Connect", exact=True).click()

    await tab.page.get_by_role("button", name="Request history").click()

    await expect(tab.page.get_by_text("Declined by the business")).to_be_visible()
    assert (await app_call(console, "GET"))["sync_progress"][0]["name"] == "declined"


async def test_phone_that_is_offline_for_14_days_is_disconnected(tabs: Tabs, console: ConsoleClient) -> None:
    await app_call(console, "POST", "/connect", {})
    tab = await tabs(PAGE)
    await tab.page.get_by_role("button", name="Go offline").click()
    await expect(tab.page.get_by_text("No connection")).to_be_visible()

    await tab.page.get_by_role("button", name="Advance clock 14 days").click()

    connection = tab.page.locator("section", has=tab.page.get_by_role("heading", name="Connection"))
    await expect(connection).to_contain_text("PRIMARY_INACTIVITY, by SYSTEM")
    await expect(connection.get_by_role("button", name="Connect", exact=True)).to_be_visible()


async def test_phone_is_disconnected_with_a_reason(tabs: Tabs, console: ConsoleClient) -> None:
    await app_call(console, "POST", "/connect", {})
    tab = await tabs(f"{PAGE}?chat={ANN}")

    await tab.page.get_by_label("Reason").select_option(label="Number changed")
    await tab.page.get_by_role("button", name="Disconnect").click()

    await expect(tab.page.get_by_text("CHANGE_NUMBER, by USER")).to_be_visible()
    await expect(tab.page.get_by_text("no echo is sent")).to_be_visible()
    await poll_until(lambda: app_call(console, "GET"), lambda state: not state["is_connected"])
    await tab.page.get_by_role("button", name="Connect", exact=True).click()
    await expect(tab.page.get_by_text("disconnected less than 15 minutes ago")).to_be_visible()
    assert all("403" in error for error in tab.errors)  # the browser logs every error response
    tab.errors.clear()


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (390, "dark")])
async def test_every_state_of_the_page_is_accessible(
    tabs: Tabs, console: ConsoleClient, width: int, theme: Any
) -> None:
    tab = await tabs(PAGE, width=width, height=844, theme=theme, bypass_csp=True)
    await tab.page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # a notice that fades in is pale

    async def check() -> None:
        found = await tab.page.evaluate(f"{AXE.read_text()}; axe.run(document).then(found => found.violations)")
        assert found == []
        assert await tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    await check()
    await app_call(console, "POST", "/connect", {})
    await app_call(console, "POST", "/history/generate", {"messages": 60, "threads": 5})
    await app_call(console, "POST", "/messages", {"to": ANN, "text": "Good morning"})
    for path in (PAGE, f"{PAGE}?chat={ANN}", f"{PAGE}?chat=15557000000"):
        await tab.go(path)
        await check()
    await app_call(console, "PUT", "", {"is_offline": True})
    await tab.go(PAGE)
    await tab.page.get_by_role("button", name="Request history").click()
    await expect(tab.page.get_by_text("waits for the phone")).to_be_visible()
    await check()
    await app_call(console, "PUT", "", {"is_offline": False})
    await expect(tab.page.get_by_role("progressbar").first).to_be_visible()
    await app_call(console, "POST", "/disconnect", {})
    await expect(tab.page.get_by_text("Disconnected in the app, by USER")).to_be_visible()
    await check()
