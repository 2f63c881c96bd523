"""Bubbles in a browser: seen by everybody, tapped, answered, and never disturbed by what comes in live.

They stand on a page of the console's; what they post is caught before it leaves the browser.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast
from urllib.parse import parse_qsl, urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, Route, expect

from tests.console.conftest import LOOP, Desk, Tab, Tabs, close_desk, open_desk
from tests.console.support.bubble_samples import DRAFTS, NOW_MS, UNTIL_MS, every_item, of_template, said_by_phone, sent
from tests.support.media_samples import SAMPLES
from tests.support.waiting import HANGS_AFTER_S
from waypost.assembly.dev import demo
from waypost.base.clock import ManualClock
from waypost.console.bubbles.drafts import draft_message
from waypost.console.bubbles.items import prepare_messages
from waypost.console.rendering import PageRenderer
from waypost.console.web.assets import Assets
from waypost.console.web.page_request import PageRequest

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

FILE: Final = "bubbles/bubble.html"
AXE: Final = resources.files("axe_playwright_python") / "axe.min.js"
VISIT: Final = cast("PageRequest", SimpleNamespace(session=SimpleNamespace(csrf="the-token")))
ASSETS: Final = Assets()
PAGES: Final = PageRenderer(ASSETS, ManualClock(NOW_MS))
FORM: Final[dict[str, Any]] = {
    "version": "7.0",
    "screens": [{"id": "TABLE", "title": "A table", "layout": {"type": "SingleColumnLayout", "children": [
        {"type": "Form", "name": "form", "children": [
            {"type": "TextHeading", "text": "When will you come? <b>"},
            {"type": "TextInput", "name": "guests", "label": "Guests", "input-type": "number", "required": True},
            {"type": "Dropdown", "name": "where", "label": "Where", "data-source": [{"id": "in", "title": "Inside"}, {"id": "out", "title": "Terrace"}]},
            {"type": "CheckboxGroup", "name": "menu", "label": "Menus", "data-source": [{"id": "vegan", "title": "Vegan"}, {"id": "fish", "title": "Fish"}]},
            {"type": "OptIn", "name": "news", "label": "News"},
            {"type": "Footer", "label": "Reserve"}]}]}}],
}  # fmt: skip
LAY_OUT: Final = """(html) => {
  const main = document.querySelector("#main");
  main.innerHTML = `<h1>Bubbles</h1><div class="bubble-wall" id="wall">${html}</div>`;
  for (const one of main.querySelectorAll(".cell")) one.style.cssText = "display: grid; margin-bottom: 10px";
}"""


@dataclass
class Wall:
    """A page with bubbles on it.

    Attributes:
        posted: paths and fields of what was posted, in order.
    """

    tab: Tab
    tells: asyncio.Event = field(default_factory=asyncio.Event)
    posted: list[tuple[str, dict[str, str]]] = field(default_factory=list[tuple[str, dict[str, str]]])

    @property
    def page(self) -> Page:
        return self.tab.page

    async def hang(self, html: Iterable[str]) -> None:
        cells = "".join(f'<div class="cell">{one}</div>' for one in html)
        await self.page.evaluate(LAY_OUT, cells)
        base = self.tab.desk.base_url
        await self.page.add_style_tag(url=base + ASSETS.url_path("css/bubbles.css"))
        await self.page.add_script_tag(url=base + ASSETS.url_path("js/bubbles.js"), type="module")

    async def put(self, item: dict[str, Any]) -> None:
        """The item as a stream would send it once more."""
        piece = {"id": f"b-{item['wamid']}", "html": drawn(item), "into": "", "at": "end"}
        module = ASSETS.url_path("js/live.js")
        await self.page.evaluate("async ([path, piece]) => (await import(path)).put([piece])", [module, piece])

    async def next_post(self, count: int = 1) -> tuple[str, dict[str, str]]:
        """The newest of what was posted, as soon as there are so many."""
        while len(self.posted) < count:
            self.tells.clear()
            await asyncio.wait_for(self.tells.wait(), HANGS_AFTER_S)
        return self.posted[-1]

    async def answer(self, route: Route) -> None:
        """Answer an act, or show a picture."""
        if route.request.method == "GET":
            return await route.fulfill(body=SAMPLES["png"], content_type="image/png")
        fields = dict(parse_qsl(route.request.post_data or "", keep_blank_values=True))
        self.posted.append((urlsplit(route.request.url).path, fields))
        self.tells.set()
        return await route.fulfill(status=204)


@pytest_asyncio.fixture(loop_scope=LOOP, scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory, begun: Path) -> AsyncGenerator[Desk]:
    """`waypost dev`, once: nothing that a bubble posts gets there."""
    desk = await open_desk(tmp_path_factory.mktemp("bubbles"), begun=begun)
    yield desk
    await close_desk(desk)


@pytest_asyncio.fixture(loop_scope=LOOP)
async def wall(browser: Browser, host: Desk) -> AsyncGenerator[Wall]:
    """An empty one; when the test ends, it may not have had an error or asked for anything elsewhere."""
    tabs = Tabs(browser, host)
    wall = Wall(await tabs("/settings/password"))  # which shows nothing live
    await wall.page.route("**/bubbles/**", wall.answer)
    await wall.page.route("**/phones/flows/77", lambda route: route.fulfill(status=204))
    yield wall
    await wall.page.context.close()
    assert wall.tab.wrong == []
    assert wall.tab.elsewhere == []


def drawn(item: dict[str, Any]) -> str:
    [one] = prepare_messages([item], lambda media_id: {"url": f"/bubbles/{media_id}"})
    return PAGES.render_macro(FILE, "bubble", VISIT, one, VISIT, f"/bubbles/{item['wamid']}")


async def published(desk: Desk, form: dict[str, Any]) -> str:
    """A flow of the demo's account; gives its id."""
    wish = {"name": "table", "categories": ["OTHER"], "flow_json": json.dumps(form), "publish": True}
    address = f"{desk.running.graph_url}/{demo.GRAPH_VERSION}/{demo.WABA_ID}/flows"
    headers = {"Authorization": f"Bearer {demo.GRAPH_TOKEN}"}
    async with desk.http.post(address, json=wish, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        return str((await answer.json())["id"])


def every_bubble() -> list[str]:
    items = prepare_messages(every_item(), lambda media_id: {"url": "/bubbles/p"} if media_id == "m-image" else {})
    return [PAGES.render_macro(FILE, "bubble", VISIT, one, VISIT, "/bubbles/x") for one in items]


def every_template() -> list[str]:
    return [
        PAGES.render_macro(FILE, "template", VISIT, draft_message(draft, until_ms=UNTIL_MS), VISIT, name)
        for name, draft in DRAFTS.items()
    ]


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name)


async def test_axe_finds_nothing_in_any_bubble_and_none_is_wider_than_a_narrow_screen(wall: Wall) -> None:
    await wall.hang([*every_bubble(), *every_template()])
    await wall.page.evaluate(AXE.read_text(encoding="utf-8"))
    await wall.page.emulate_media(reduced_motion="reduce")

    for scheme, width in (("light", 1440), ("dark", 360)):
        await wall.page.emulate_media(color_scheme=cast("Any", scheme), reduced_motion="reduce")
        await wall.page.set_viewport_size({"width": width, "height": 900})
        found = await wall.page.evaluate(
            """async () => (await axe.run("#wall", {resultTypes: ["violations"]})).violations
              .map((one) => [one.id, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200) + node.failureSummary)])"""
        )
        assert found == []
        assert await wall.page.evaluate(
            """() => {
              const wall = document.querySelector("#wall");
              return [wall.scrollWidth - wall.clientWidth, Math.max(0, wall.getBoundingClientRect().right - innerWidth)];
            }"""
        ) == [0, 0]


async def test_text_that_looks_like_markup_is_shown_as_text(wall: Wall) -> None:
    await wall.hang([drawn(sent("hostile"))])

    await expect(wall.page.locator(".bubble-text")).to_have_text('<script>alert(1)</script> & "x" javascript:alert(1)')


async def test_tapping_a_reply_posts_its_place_its_text_and_the_token(wall: Wall) -> None:
    await wall.hang([drawn(sent("replies"))])

    await button(wall.page, "No").click()

    assert await wall.next_post() == (
        "/bubbles/replies/tap", {"csrf": "the-token", "index": "1", "text": "No"},
    )  # fmt: skip


async def test_tapping_a_button_of_a_card_names_the_card(wall: Wall) -> None:
    await wall.hang([drawn(of_template("carousel"))])

    await button(wall.page, "Yes please").nth(1).click()

    _, fields = await wall.next_post()
    assert (fields["card"], fields["index"]) == ("1", "0")


async def test_list_opens_over_the_page_and_goes_with_what_is_chosen(wall: Wall) -> None:
    await wall.hang([drawn(sent("list"))])
    opener = button(wall.page, "Our teas")
    await opener.focus()

    await wall.page.keyboard.press("Enter")
    sheet = wall.page.get_by_role("dialog", name="Our teas")
    await expect(sheet.get_by_text("From Uji")).to_be_visible()
    await wall.page.keyboard.press("Escape")
    await expect(sheet).to_be_hidden()
    await expect(opener).to_be_focused()
    await opener.click()
    await sheet.get_by_role("button", name="Assam").click()

    assert await wall.next_post() == (
        "/bubbles/list/tap", {"csrf": "the-token", "index": "1", "text": "Assam"},
    )  # fmt: skip
    await expect(sheet).to_be_hidden()


async def test_more_than_three_buttons_are_behind_all_options(wall: Wall) -> None:
    await wall.hang([drawn(of_template("many"))])

    await expect(button(wall.page, "Call us")).to_have_count(0)
    await button(wall.page, "See all options").click()
    sheet = wall.page.get_by_role("dialog", name="All options")
    await sheet.get_by_role("button", name="Call us").click()

    await expect(sheet).to_be_hidden()
    await expect(wall.page.get_by_role("dialog", name="Call us")).to_contain_text("+15550001000")


async def test_form_goes_back_as_one_object_and_stays_while_the_bubble_changes(wall: Wall) -> None:
    item = sent("flow")
    await wall.hang([drawn(item)])
    await button(wall.page, "Book a table").click()
    sheet = wall.page.get_by_role("dialog", name="Book a table")
    await sheet.get_by_label("Field 1").fill("people")
    await sheet.get_by_label("Value").first.fill("2")

    await wall.put({**item, "state": "read"})
    await expect(wall.page.locator(".bubble-ticks.is-read")).to_have_count(1)
    await sheet.get_by_role("button", name="Send").click()

    path, fields = await wall.next_post()
    assert path == "/bubbles/flow/answer"
    assert json.loads(fields["response"]) == {"people": "2"}
    await expect(sheet).to_be_hidden()


async def test_form_of_a_flow_has_the_fields_that_its_author_drew(wall: Wall, host: Desk) -> None:
    flow_id = await published(host, FORM)
    await wall.hang([drawn(sent("flow", buttons=[{"index": 0, "type": "FLOW", "text": "Book", "flow_id": flow_id}]))])
    await button(wall.page, "Book").click()
    sheet = wall.page.get_by_role("dialog", name="Book")

    await expect(sheet.get_by_label("Guests")).to_be_focused()
    await sheet.get_by_role("button", name="Reserve").click()
    assert wall.posted == []  # a field that is required is empty
    await sheet.get_by_label("Guests").fill("2")
    await sheet.get_by_label("Where").select_option("Terrace")
    await sheet.get_by_label("Vegan").check()
    await sheet.get_by_label("News").check()
    await sheet.get_by_role("button", name="Reserve").click()

    _, fields = await wall.next_post()
    assert json.loads(fields["response"]) == {
        "guests": "2", "where": "out", "menu": ["vegan"], "news": True,
    }  # fmt: skip


async def test_flow_of_another_account_is_not_there(host: Desk) -> None:
    await host.get("/phones/flows/123", status=404)
    await host.get("/phones/flows/x%2Fy", status=404)


async def test_form_takes_json_and_says_what_is_none(wall: Wall) -> None:
    await wall.hang([drawn(sent("flow"))])
    await button(wall.page, "Book a table").click()
    await wall.page.get_by_text("Enter JSON instead").click()
    text = wall.page.get_by_label("Response as JSON")

    await text.fill("{oops")
    await button(wall.page, "Send").click()
    assert await text.evaluate("(one) => one.validationMessage") == "Invalid JSON."
    await text.fill('{"seats": [1, 2]}')
    await button(wall.page, "Send").click()

    _, fields = await wall.next_post()
    assert json.loads(fields["response"]) == {"seats": [1, 2]}


async def test_address_permission_place_and_contact_have_their_answers(wall: Wall) -> None:
    names = ("address", "permission", "ask_place", "ask_card")
    await wall.hang(drawn(sent(name)) for name in names)
    page = wall.page

    await button(page, "Provide address").click()
    await page.get_by_label("City").fill("Pune")
    await button(page, "Send address").click()
    path, fields = await wall.next_post(1)
    assert (path, json.loads(fields["response"])) == ("/bubbles/address/answer", {"city": "Pune"})
    await button(page, "Choose preference").click()
    await button(page, "Do not allow").click()
    path, fields = await wall.next_post(2)
    assert (path, fields["response"]) == ("/bubbles/permission/answer", '{"response": "reject"}')
    await button(page, "Send location").first.click()
    await page.get_by_label("Latitude").fill("52.5")
    await page.get_by_label("Longitude").fill("13.4")
    await page.get_by_role("dialog").get_by_role("button", name="Send location").click()
    path, fields = await wall.next_post(3)
    assert (path, fields["latitude"], fields["name"]) == ("/bubbles/ask_place/location", "52.5", "")
    await button(page, "Share Contact Info").click()
    await button(page, "Share").last.click()
    assert (await wall.next_post(4))[0] == "/bubbles/ask_card/contact"


async def test_order_of_products_is_put_together_from_quantities(wall: Wall) -> None:
    await wall.hang([drawn(sent("products"))])
    await button(wall.page, "View items").click()
    sheet = wall.page.get_by_role("dialog", name="View items")
    await sheet.get_by_label("Quantity").nth(0).fill("0")
    await sheet.get_by_role("button", name="Place order").click()
    assert wall.posted == []

    await sheet.get_by_label("Quantity").nth(2).fill("3")
    await sheet.get_by_label("Price").nth(2).fill("4.5")
    await sheet.get_by_label("Message").fill("Gift wrap")
    await sheet.get_by_role("button", name="Place order").click()

    path, fields = await wall.next_post()
    assert path == "/bubbles/products/order"
    assert json.loads(fields["order"]) == {
        "catalog_id": "c-1", "text": "Gift wrap",
        "product_items": [{"product_retailer_id": "cup-1", "quantity": 3, "item_price": 4.5, "currency": "USD"}],
    }  # fmt: skip


async def test_order_is_paid_from_its_sheet_and_shows_that_it_is_paid(wall: Wall) -> None:
    await wall.hang([drawn(sent("order"))])
    bubble = wall.page.locator(".bubble")
    await expect(bubble).to_contain_text("Sencha from Uji, 100 g")
    await expect(bubble).to_contain_text("299.00 INR")
    await button(wall.page, "Review and pay").click()
    sheet = wall.page.get_by_role("dialog", name="Review and pay")
    await expect(sheet).to_contain_text("299.00 INR for order order-7.")
    await sheet.get_by_role("button", name="Pay", exact=True).click()

    assert await wall.next_post() == (
        "/bubbles/order/pay", {"csrf": "the-token", "status": "captured"},
    )  # fmt: skip
    await wall.hang([drawn(sent("order", payment={"status": "captured"}))])
    await expect(button(wall.page, "Review and pay")).to_have_count(0)
    await expect(bubble.locator(".bubble-facts")).to_contain_text("Paid")


async def test_order_shows_what_was_last_told_of_it_and_why_a_payment_failed() -> None:
    error = {"code": "BAD_REQUEST_ERROR", "reason": "payment_cancelled"}
    order = sent("order", payment={"status": "failed", "error": error})
    [order, news] = prepare_messages([order, sent("order_news")], lambda _: {})

    shown = [PAGES.render_macro(FILE, "bubble", VISIT, one, VISIT, "/bubbles/x") for one in (order, news)]

    for fact in ("Partially shipped", "The cup follows on Monday.", "Failed: payment cancelled"):
        assert fact in shown[0]
    assert "Partially shipped" in shown[1]
    assert "Review and pay" in shown[0]
    assert "Review and pay" not in shown[1]


async def test_codes_are_copied_and_a_code_that_nobody_asked_for_is_said(wall: Wall) -> None:
    await wall.hang([drawn(of_template("one_tap")), drawn(of_template("offer"))])

    await button(wall.page, "Copy code").click()
    await expect(wall.page.locator(".is-copied")).to_have_count(1)
    assert await wall.page.evaluate("navigator.clipboard.readText()") == "123456"
    await button(wall.page, "Copy offer code").click()
    await wall.page.wait_for_function("navigator.clipboard.readText().then((text) => text === 'TEA20')")
    await button(wall.page, "I didn't request a code").click()

    assert await wall.next_post() == (
        "/bubbles/t-one_tap/tap", {"csrf": "the-token", "not_requested": "true"},
    )  # fmt: skip


async def test_offer_counts_down_until_it_has_ended(wall: Wall) -> None:
    await wall.hang([drawn(of_template("offer"))])
    offer = wall.page.locator(".bubble-offer")

    await offer.evaluate("(one) => (one.dataset.untilMs = Date.now() + 7_199_000)")
    await expect(offer).to_contain_text("Ends in 01:59:5")
    await offer.evaluate("(one) => (one.dataset.untilMs = Date.now() + 1_200)")
    await expect(offer).to_contain_text("Offer ended")


async def test_cards_scroll_by_keys_and_buttons_to_both_ends(wall: Wall) -> None:
    await wall.page.emulate_media(reduced_motion="reduce")
    await wall.hang([drawn(of_template("carousel"))])
    cards, page = wall.page.locator("[data-cards]"), wall.page

    await expect(button(page, "Previous cards")).to_be_hidden()
    await cards.focus()
    await page.keyboard.press("ArrowRight")
    await expect(button(page, "Previous cards")).to_be_visible()
    await button(page, "Next cards").click()
    await expect(button(page, "Next cards")).to_be_hidden()
    await expect(cards).to_be_focused()


async def test_long_text_opens_and_stays_open_while_the_bubble_changes(wall: Wall) -> None:
    item = sent("long")
    await wall.hang([drawn(item)])
    text = wall.page.locator(".bubble-text")
    before = await text.evaluate("(one) => one.clientHeight")

    await button(wall.page, "Read more").click()
    await wall.put({**item, "state": "read"})

    await expect(button(wall.page, "Read less")).to_be_visible()
    assert await text.evaluate("(one) => one.clientHeight") > before


async def test_quote_leads_to_what_it_answers(wall: Wall) -> None:
    items = [sent("text"), sent("long"), said_by_phone("own_text", context_id="text")]
    await wall.hang(
        PAGES.render_macro(FILE, "bubble", VISIT, one, VISIT, "") for one in prepare_messages(items, lambda _: {})
    )

    await wall.page.locator(".bubble-quote").click()

    await expect(wall.page.locator("#b-text.is-shown")).to_be_in_viewport()
    assert "#" not in wall.page.url


async def test_bubble_says_who_sent_it_when_and_how_far_it_came(wall: Wall) -> None:
    await wall.hang([drawn(sent("text", state="read")), drawn(said_by_phone("own_photo"))])

    theirs = wall.page.get_by_role("article", name="From the business, 2026-11-22")
    await expect(theirs.get_by_text("Read", exact=True)).to_have_count(1)
    own = wall.page.get_by_role("article", name="From this phone")
    await expect(own.get_by_role("img", name="Photo")).to_be_visible()


async def test_bubble_without_acts_and_template_have_nothing_to_tap(wall: Wall) -> None:
    item = sent("replies")
    [one] = prepare_messages([item], lambda _: {})
    await wall.hang([PAGES.render_macro(FILE, "bubble", VISIT, one, VISIT), *every_template()])

    await expect(wall.page.locator("#wall form, #wall dialog, #wall a.bubble-button")).to_have_count(0)
    await expect(wall.page.locator("#t-gaps .gap")).to_have_count(3)
    await expect(wall.page.locator("#t-nothing")).to_contain_text("No content yet.")


async def test_what_dev_shows_of_a_template_is_drawn_with_its_buttons(host: Desk) -> None:
    """Not of samples: sent by the API, and looked up at the control door."""
    path = f"/control/phones/{host.phone}"
    before = [one["position"] for one in (await host.control.json("GET", path))["messages"]]
    params = {"id": demo.TEMPLATE_ID, "params": ["Ann", "4711"]}
    await host.api.form(
        "POST", f"/partner/app/{host.app_id}/template/msg",
        {"source": demo.SOURCE, "destination": host.phone, "src.name": demo.APP_NAME, "template": json.dumps(params)},
    )  # fmt: skip
    after = max(before, default=0)
    inbox = await host.control.json("GET", f"{path}?wait_ms=5000&after={after}")

    [one] = prepare_messages(inbox["messages"], lambda _: {})
    html = PAGES.render_macro(FILE, "bubble", VISIT, one, VISIT, "/x")
    assert "Hi Ann, your order 4711 is ready." in html
    assert "Yes please" in html
    assert "Another day" in html
