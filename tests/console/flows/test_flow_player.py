"""Flows played on the phones of the console: by pointer, by keyboard, closed and resumed, and what is sent at the end."""

import json
from typing import Any, Final

import pytest
from playwright.async_api import FilePayload, Locator, Page, expect

from tests.console.conftest import LOOP, ConsoleClient, Tab, Tabs
from tests.console.support.flow_samples import ALL_COMPONENTS
from tests.console.test_accessibility import AXE, VARIANTS
from tests.support.media_samples import sample
from tests.support.polling import poll_until
from waypost.assembly.dev import demo

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)
ANN: Final = demo.DESTINATION
HEADERS: Final = {"Authorization": f"Bearer {demo.GRAPH_TOKEN}"}
SCREENS: Final = ("Welcome", "Terms", "Your order", "Delivery", "Documents", "How to pay", "Confirm")
ANSWERS: Final = {
    "flow_token": "token-1", "name": "Ann", "bread": "rye", "extras": ["butter"], "tastes": ["sweet", "sour"], "size": "l",
    "day": "2026-06-15", "holiday": {"start-date": "2026-07-01", "end-date": "2026-07-09"}, "code": "1234",
}  # fmt: skip


async def graph(console: ConsoleClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    url = f"{console.running.graph_url}/{demo.GRAPH_VERSION}/{path}"
    async with console.http.post(url, json=body, headers=HEADERS) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def send_flow(console: ConsoleClient, content: dict[str, Any], **parameters: Any) -> str:
    """Publish a flow and send a message that opens it; return the flow's ID."""
    flow = {
        "name": f"flow {len(json.dumps(content))}",
        "categories": ["OTHER"],
        "flow_json": json.dumps(content),
        "publish": True,
    }
    flow_id = str((await graph(console, f"{demo.WABA_ID}/flows", flow))["id"])
    known = {"flow_message_version": "3", "flow_id": flow_id, "flow_cta": "Order bread", "flow_token": "token-1"}
    action = {"name": "flow", "parameters": {**known, **parameters}}
    interactive = {"type": "flow", "body": {"text": "Order your bread here"}, "action": action}
    message = {"messaging_product": "whatsapp", "to": ANN, "type": "interactive", "interactive": interactive}
    await console.control.json("POST", f"/control/phones/{ANN}/messages", {"to": demo.SOURCE, "text": "Hello"})
    await graph(console, f"{demo.PHONE_NUMBER_ID}/messages", message)
    return flow_id


async def open_flow(tabs: Tabs, console: ConsoleClient, **options: Any) -> tuple[Tab, Locator]:
    tab = await tabs(f"/phones?show={ANN}&chats={demo.SOURCE}", **options)
    await tab.page.get_by_role("button", name="Order bread").click()
    return tab, tab.page.get_by_role("dialog", name="Order bread")


def title(player: Locator) -> Locator:
    return player.locator("[data-title]")


def button(player: Locator, name: str) -> Locator:
    return player.get_by_role("button", name=name, exact=True)


async def reply(console: ConsoleClient) -> dict[str, Any]:
    """Return the response_json of the message that the phone has sent at the end."""

    async def sent() -> list[dict[str, Any]]:
        messages = (await console.control.json("GET", f"/control/phones/{ANN}"))["messages"]
        return [one["response"] for one in messages if "response" in one]

    [response] = await poll_until(sent, bool)
    return response


async def test_every_component_is_played_by_pointer_and_the_answers_are_sent(
    tabs: Tabs, console: ConsoleClient
) -> None:
    await send_flow(console, ALL_COMPONENTS)
    tab, player = await open_flow(tabs, console)

    await expect(title(player)).to_have_text("Welcome")
    await expect(player.get_by_role("heading", name="Fresh bread, every morning")).to_be_visible()
    await expect(player.get_by_role("img", name="A loaf of bread")).to_have_js_property("complete", True)
    await expect(player.get_by_text("5 minutes")).to_be_visible()
    await button(player, "Read the terms").click()
    await expect(title(player)).to_have_text("Terms")
    await expect(player.get_by_role("heading", name="Our terms")).to_be_visible()
    await expect(player.get_by_role("link", name="the shop")).to_have_attribute("href", "https://meadow.test/terms")
    await expect(player.get_by_role("cell", name="7 to 11")).to_be_visible()
    await button(player, "Agree").click()

    await expect(title(player)).to_have_text("Your order")
    await button(player, "Continue").press("Enter")  # with empty fields
    await expect(player.get_by_label("Name")).to_be_focused()
    await expect(player.get_by_label("Name")).to_have_accessible_description("As on the bell This field is required.")
    await player.get_by_label("Name").fill("Ann")
    await player.get_by_label("E-mail").fill("ann@meadow.test")
    await player.get_by_label("Note").fill("Ring twice")
    await player.get_by_label("Rye").check()
    await expect(player.get_by_text("Rye keeps for a week.")).to_be_visible()
    await expect(player.get_by_label("Spelt")).to_be_disabled()
    for extra in ("Jam", "Butter"):
        await player.get_by_label(extra).check()
    await player.get_by_label("Honey").click()
    await expect(player.get_by_role("status")).to_contain_text("at most 2")
    await expect(player.get_by_label("Honey")).not_to_be_checked()
    await player.get_by_label("Jam").uncheck()
    for taste in ("Sweet", "Sour"):
        await player.get_by_role("checkbox", name=taste).check()
    await player.get_by_label("Size").select_option("Large")
    await expect(player.get_by_text("A large loaf serves ten.")).to_be_visible()
    await player.get_by_label("I accept the prices").check()
    await player.get_by_role("button", name="Read more").click()
    await expect(player.get_by_role("link", name="https://meadow.test/prices")).to_be_visible()
    await button(player, "Continue").click()

    await expect(title(player)).to_have_text("Delivery")
    await player.get_by_label("First day").fill("2026-06-15")
    await player.get_by_label("Start date").fill("2026-07-01")
    await player.get_by_label("End date").fill("2026-07-09")
    await button(player, "Back").click()
    await expect(player.get_by_label("Name")).to_have_value("Ann")
    await expect(player.get_by_label("Butter")).to_be_checked()
    await button(player, "Continue").click()
    await expect(title(player)).to_have_text("Delivery")
    await player.get_by_label("First day").fill("2026-06-15")
    await player.get_by_label("Start date").fill("2026-07-01")
    await player.get_by_label("End date").fill("2026-07-09")
    door, bell, third = (_file(name, "image/png") for name in ("door.png", "bell.png", "third.png"))
    await player.get_by_label("Add photos").set_input_files([door, bell])
    await expect(player.get_by_text("bell.png")).to_be_visible()
    await player.get_by_label("Add photos").set_input_files([third])
    await expect(player.get_by_role("status")).to_contain_text("at most 2")
    await button(player, "Remove bell.png").click()
    await expect(player.get_by_text("bell.png")).to_have_count(0)
    await button(player, "Continue").click()
    await expect(title(player)).to_have_text("Documents")
    await player.get_by_label("Add documents").set_input_files([door])
    await expect(player.get_by_role("status")).to_contain_text("application/pdf")
    await player.get_by_label("Add documents").set_input_files([_file("voucher.pdf", "application/pdf")])
    await expect(player.get_by_text("voucher.pdf")).to_be_visible()
    await button(player, "Continue").click()
    await player.get_by_role("button", name="Cash").click()
    await expect(title(player)).to_have_text("Confirm")
    await expect(player.get_by_text("Thank you, Ann.")).to_be_visible()
    await player.get_by_label("Code").fill("1234")
    await button(player, "Order").click()

    await expect(player.get_by_text("The answers were sent.")).to_be_visible()
    await expect(player.get_by_role("definition").filter(has_text="••••")).to_have_count(
        1
    )  # E-mail, which is sensitive
    await expect(player).not_to_contain_text("1234")
    answers = await reply(console)
    [photo] = answers.pop("photos")
    assert (photo["file_name"], photo["mime_type"]) == ("door.png", "image/png")
    assert answers == ANSWERS
    assert tab.errors == []


def _file(name: str, mime_type: str) -> FilePayload:
    return FilePayload(name=name, mimeType=mime_type, buffer=sample(mime_type.rpartition("/")[2]))


async def test_every_component_is_played_by_keyboard(tabs: Tabs, console: ConsoleClient) -> None:
    await send_flow(console, ALL_COMPONENTS)
    tab = await tabs(f"/phones?show={ANN}&chats={demo.SOURCE}")
    page, keys = tab.page, tab.page.keyboard
    await page.get_by_role("button", name="Order bread").press("Enter")
    player = page.get_by_role("dialog", name="Order bread")

    await expect(title(player)).to_have_text("Welcome")
    await _tab_to(page, "Start")
    await keys.press("Enter")
    await expect(title(player)).to_be_focused()
    await _tab_to(page, "Agree")
    await keys.press("Space")
    await expect(title(player)).to_have_text("Your order")
    await _tab_to(page, "Name")
    await keys.type("Ann")
    await keys.press("Enter")  # as the Continue button: errors lead to the first field that is wrong
    await expect(player.locator(":focus")).to_have_attribute("type", "radio")
    await keys.press("Space")
    await expect(player.get_by_label("Rye")).to_be_checked()
    await _tab_to(page, "Jam")
    await keys.press("Tab")
    await keys.press("Space")
    await _tab_to(page, "Sweet")
    await keys.press("Space")
    await _tab_to(page, "Sour")
    await keys.press("Space")
    await _tab_to(page, "Size")
    await keys.type("Large")
    await expect(player.get_by_text("A large loaf serves ten.")).to_be_visible()
    await _tab_to(page, "I accept the prices")
    await keys.press("Space")
    await expect(player.get_by_label("I accept the prices")).to_be_checked()
    await _tab_to(page, "Continue")
    await keys.press("Enter")
    await expect(title(player)).to_have_text("Delivery")
    for label, day in (("First day", "06152026"), ("Start date", "07012026"), ("End date", "07092026")):
        await _tab_to(page, label)
        await keys.type(day)
    await _tab_to(page, "Continue")
    await keys.press("Enter")
    await expect(title(player)).to_have_text("Documents")
    await _tab_to(page, "Continue")
    await keys.press("Enter")
    await expect(title(player)).to_have_text("How to pay")
    await _tab_to(page, "Cash")
    await keys.press("Enter")
    await expect(title(player)).to_have_text("Confirm")
    await _tab_to(page, "Code")
    await keys.type("1234")
    await keys.press("Enter")

    await expect(player.get_by_text("The answers were sent.")).to_be_visible()
    assert await reply(console) == {**ANSWERS, "photos": []}


_FOCUSED: Final = """() => {
  const one = document.activeElement;
  if (!one.matches("a, button, input, select, textarea")) return "";
  return [one.getAttribute("aria-label"), one.textContent, ...[...one.labels ?? []].map((label) => label.textContent)].join(" ");
}"""


async def _tab_to(page: Page, name: str) -> None:
    """Press Tab until what has the focus is called so; fail if nothing is."""
    for _ in range(60):
        await page.keyboard.press("Tab")
        if name in await page.evaluate(_FOCUSED):
            return
    pytest.fail(f"Tab never reaches {name}")


RUN_AXE: Final = """async (runOnly) => {
  const found = await axe.run(document.querySelector("dialog[open]"), { runOnly, resultTypes: ["violations"] });
  return found.violations.map((one) => [one.id, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200) + node.failureSummary)]);
}"""


async def test_no_screen_has_an_axe_violation_in_either_theme_at_any_width(tabs: Tabs, console: ConsoleClient) -> None:
    await send_flow(console, ALL_COMPONENTS)
    tab = await tabs("/settings/password")
    await tab.page.add_init_script(path=str(AXE))
    await tab.go(f"/phones?show={ANN}&chats={demo.SOURCE}")
    page = tab.page
    await page.get_by_role("button", name="Order bread").click()
    player = page.get_by_role("dialog", name="Order bread")
    violations: list[Any] = []

    for screen in SCREENS:
        await expect(title(player)).to_have_text(screen)
        if screen == "Your order":
            await button(player, "Continue").press("Enter")  # with the errors of empty fields
            await expect(player.locator("[aria-invalid=true]").first).to_be_visible()
        for theme, width, rules in VARIANTS:
            await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            await page.set_viewport_size({"width": width, "height": 844})
            violations += [(screen, theme, width, one) for one in await page.evaluate(RUN_AXE, rules)]
            overflow = await player.locator(".flow-screen").evaluate("(one) => one.scrollWidth - one.clientWidth")
            violations += [(screen, theme, width, f"is {overflow} px too wide")] if overflow > 0 else []
        if screen == "Your order":
            await _fill_order(player)
        if screen == "Delivery":
            await player.get_by_label("First day").fill("2026-06-15")
        if screen == "How to pay":
            await player.get_by_role("button", name="Card").click()
        elif screen != "Confirm":
            await player.locator("[data-footer]").click()

    assert violations == []


async def _fill_order(player: Locator) -> None:
    await player.get_by_label("Name").fill("Ann")
    await player.get_by_label("Rye").check()
    await player.get_by_label("Size").select_option("Small")
    await player.get_by_label("I accept the prices").check()


async def test_closed_flow_is_resumed_where_it_was(tabs: Tabs, console: ConsoleClient) -> None:
    await send_flow(console, ALL_COMPONENTS)
    tab, player = await open_flow(tabs, console)
    await button(player, "Start").click()
    await button(player, "Agree").click()
    await player.get_by_label("Name").fill("Ann")
    await button(player, "Close").click()
    await expect(player).to_be_hidden()

    await tab.page.get_by_role("button", name="Order bread").click()
    await expect(title(player)).to_have_text("Your order")
    await expect(player.get_by_label("Name")).to_have_value("Ann")
    await tab.page.keyboard.press("Escape")
    await expect(player).to_be_hidden()
    await tab.page.reload()
    await tab.page.get_by_role("button", name="Order bread").click()
    await expect(player.get_by_label("Name")).to_have_value("Ann")


async def test_texts_of_a_flow_are_never_markup(tabs: Tabs, console: ConsoleClient) -> None:
    hostile = "<img src=x onerror=alert(1)><b>bold</b>"
    content = json.loads(
        json.dumps(ALL_COMPONENTS).replace("Order until midnight", hostile).replace("Your order", "<i>x</i>")
    )
    content["screens"][1]["layout"]["children"][0]["text"] = [
        f"# {hostile}",
        "[click](javascript:alert(1))",
        f"| {hostile} |",
    ]
    await send_flow(console, content)
    _, player = await open_flow(tabs, console)

    await expect(player.get_by_text(hostile)).to_be_visible()
    await button(player, "Start").click()
    await expect(player.get_by_text(hostile).first).to_be_visible()
    assert await player.locator("b, i, img[src=x], a[href^=javascript]").count() == 0


async def test_step_that_no_page_posts_is_explained(console: ConsoleClient) -> None:
    await send_flow(console, ALL_COMPONENTS)

    async def received() -> list[int]:
        messages = (await console.control.json("GET", f"/control/phones/{ANN}"))["messages"]
        return [one["position"] for one in messages if one["direction"] == "to_phone"]

    [position] = await poll_until(received, bool)
    path = f"/phones/{ANN}/items/{position}/flow"
    assert "Welcome" in await console.reveal(path, {"step": "open"})

    for fields in (
        {},
        {"step": "fly"},
        {"step": "fill", "name": "name"},
        {"step": "fill", "name": "name", "value": "[" * 9999},
    ):
        body = {"csrf": await console.csrf(), **fields}
        quiet = {"X-Waypost-Quiet": "1"}
        async with console.http.post(console.base_url + path, data=body, headers=quiet) as response:
            assert response.status == 403, fields
            assert "cannot be read" in (await response.json())["message"]
    refused = json.loads(await console.reveal(path, {"step": "press", "target": "99"}))
    assert refused["rejected"]
    assert "nothing that can be tapped" in refused["message"]
