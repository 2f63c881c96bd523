"""Bubbles in a browser: accessible, tapped, responded to, and not disturbed by live updates.

They are on a page of the console; what they post is intercepted before it leaves the browser.
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

from tests.console.conftest import LOOP, ConsoleClient, Tab, Tabs, close_console, open_console
from tests.console.support.bubble_samples import (
    DRAFTS,
    NOW_MS,
    UNTIL_MS,
    all_items,
    business_message,
    phone_message,
    template_message,
)
from tests.support.manual_clock import ManualClock
from tests.support.media_samples import SAMPLES
from tests.support.polling import HANGS_AFTER_S
from waypost.assembly.dev import demo
from waypost.console.bubbles.items import prepare_messages
from waypost.console.bubbles.previews import draft_message
from waypost.console.page_request import PageRequest
from waypost.console.rendering import PageRenderer
from waypost.console.web.assets import Assets
from waypost.console.web.zones import UTC_ZONE

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

FILE: Final = "bubbles/bubble.html"
AXE: Final = resources.files("axe_playwright_python") / "axe.min.js"
PAGE_REQUEST: Final = cast("PageRequest", SimpleNamespace(session=SimpleNamespace(csrf="the-token"), zone=UTC_ZONE))
ASSETS: Final = Assets()
PAGES: Final = PageRenderer(ASSETS, ManualClock(NOW_MS))
SHOW_BUBBLES: Final = """(html) => {
  const main = document.querySelector("#main");
  main.innerHTML = `<h1>Bubbles</h1><div class="bubble-wall" id="wall">${html}</div>`;
  for (const one of main.querySelectorAll(".cell")) one.style.cssText = "display: grid; margin-bottom: 10px";
}"""


@dataclass
class Wall:
    """A page with bubbles on it.

    Attributes:
        posted: paths and fields of the posted forms, in order.
    """

    tab: Tab
    has_posted: asyncio.Event = field(default_factory=asyncio.Event)
    posted: list[tuple[str, dict[str, str]]] = field(default_factory=list[tuple[str, dict[str, str]]])

    @property
    def page(self) -> Page:
        return self.tab.page

    async def show_bubbles(self, html: Iterable[str]) -> None:
        cells = "".join(f'<div class="cell">{bubble}</div>' for bubble in html)
        await self.page.evaluate(SHOW_BUBBLES, cells)
        base = self.tab.console.base_url
        await self.page.add_style_tag(url=base + ASSETS.url_path("css/bubbles.css"))
        await self.page.add_script_tag(url=base + ASSETS.url_path("js/bubbles.js"), type="module")

    async def update(self, item: dict[str, Any]) -> None:
        """Update an item as the stream of a page does."""
        element = {"id": f"b-{item['wamid']}", "html": render(item), "into": "", "at": "end"}
        module = ASSETS.url_path("js/live.js")
        await self.page.evaluate("async ([path, piece]) => (await import(path)).put([piece])", [module, element])

    async def next_post(self, count: int = 1) -> tuple[str, dict[str, str]]:
        """Return the latest posted form, as soon as there are `count`."""
        while len(self.posted) < count:
            self.has_posted.clear()
            await asyncio.wait_for(self.has_posted.wait(), HANGS_AFTER_S)
        return self.posted[-1]

    async def respond(self, route: Route) -> None:
        """Respond to an action, or serve a picture."""
        if route.request.method == "GET":
            return await route.fulfill(body=SAMPLES["png"], content_type="image/png")
        fields = dict(parse_qsl(route.request.post_data or "", keep_blank_values=True))
        self.posted.append((urlsplit(route.request.url).path, fields))
        self.has_posted.set()
        return await route.fulfill(status=204)


@pytest_asyncio.fixture(loop_scope=LOOP, scope="module")
async def module_console(tmp_path_factory: pytest.TempPathFactory, demo_data: Path) -> AsyncGenerator[ConsoleClient]:
    """`waypost dev`, once per module: no form of a bubble reaches it."""
    console = await open_console(tmp_path_factory.mktemp("bubbles"), demo_data=demo_data)
    yield console
    await close_console(console)


@pytest_asyncio.fixture(loop_scope=LOOP)
async def wall(browser: Browser, module_console: ConsoleClient) -> AsyncGenerator[Wall]:
    """An empty page; fails at the end if it had an error or sent an external request."""
    tabs = Tabs(browser, module_console)
    wall = Wall(await tabs("/settings/password"))  # a page without a stream
    await wall.page.route("**/bubbles/**", wall.respond)
    yield wall
    await wall.page.context.close()
    assert wall.tab.errors == []
    assert wall.tab.external_requests == []


def render(item: dict[str, Any]) -> str:
    [message] = prepare_messages([item], lambda media_id: {"url": f"/bubbles/{media_id}"})
    return PAGES.render_macro(FILE, "bubble", UTC_ZONE, message, PAGE_REQUEST, f"/bubbles/{item['wamid']}")


def render_all_bubbles() -> list[str]:
    items = prepare_messages(all_items(), lambda media_id: {"url": "/bubbles/p"} if media_id == "m-image" else {})
    return [PAGES.render_macro(FILE, "bubble", UTC_ZONE, message, PAGE_REQUEST, "/bubbles/x") for message in items]


def render_all_templates() -> list[str]:
    return [
        PAGES.render_macro(FILE, "template", UTC_ZONE, draft_message(draft, until_ms=UNTIL_MS), PAGE_REQUEST, name)
        for name, draft in DRAFTS.items()
    ]


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name)


async def test_bubbles_have_no_axe_violation_and_fit_a_narrow_screen(wall: Wall) -> None:
    await wall.show_bubbles([*render_all_bubbles(), *render_all_templates()])
    await wall.page.evaluate(AXE.read_text(encoding="utf-8"))
    await wall.page.emulate_media(reduced_motion="reduce")

    for scheme, width in (("light", 1440), ("dark", 360)):
        await wall.page.emulate_media(color_scheme=cast("Any", scheme), reduced_motion="reduce")
        await wall.page.set_viewport_size({"width": width, "height": 900})
        violations = await wall.page.evaluate(
            """async () => (await axe.run("#wall", {resultTypes: ["violations"]})).violations
              .map((one) => [one.id, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200) + node.failureSummary)])"""
        )
        assert violations == []
        assert await wall.page.evaluate(
            """() => {
              const wall = document.querySelector("#wall");
              return [wall.scrollWidth - wall.clientWidth, Math.max(0, wall.getBoundingClientRect().right - innerWidth)];
            }"""
        ) == [0, 0]


async def test_text_that_looks_like_markup_is_shown_as_text(wall: Wall) -> None:
    await wall.show_bubbles([render(business_message("hostile"))])

    await expect(wall.page.locator(".bubble-text")).to_have_text('<script>alert(1)</script> & "x" javascript:alert(1)')


async def test_tapping_a_reply_posts_its_index_its_text_and_the_csrf_token(wall: Wall) -> None:
    await wall.show_bubbles([render(business_message("replies"))])

    await button(wall.page, "No").click()

    assert await wall.next_post() == (
        "/bubbles/replies/tap", {"csrf": "the-token", "index": "1", "text": "No"},
    )  # fmt: skip


async def test_tapping_a_button_of_a_card_names_the_card(wall: Wall) -> None:
    await wall.show_bubbles([render(template_message("carousel"))])

    await button(wall.page, "Yes please").nth(1).click()

    _, fields = await wall.next_post()
    assert (fields["card"], fields["index"]) == ("1", "0")


async def test_list_opens_as_a_dialog_and_closes_after_a_choice(wall: Wall) -> None:
    await wall.show_bubbles([render(business_message("list"))])
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
    await wall.show_bubbles([render(template_message("many"))])

    await expect(button(wall.page, "Call us")).to_have_count(0)
    await button(wall.page, "See all options").click()
    sheet = wall.page.get_by_role("dialog", name="All options")
    await sheet.get_by_role("button", name="Call us").click()

    await expect(sheet).to_be_hidden()
    await expect(wall.page.get_by_role("dialog", name="Call us")).to_contain_text("+15550001000")


async def test_form_is_sent_as_one_object_and_stays_open_while_the_bubble_changes(wall: Wall) -> None:
    item = business_message("address")
    await wall.show_bubbles([render(item)])
    await wall.page.locator("[data-sheet]").click()
    sheet = wall.page.get_by_role("dialog")
    await sheet.get_by_label("Name").fill("Ann")

    await wall.update({**item, "state": "read"})
    await expect(wall.page.locator(".bubble-ticks.is-read")).to_have_count(1)
    await sheet.get_by_role("button", name="Send address").click()

    path, fields = await wall.next_post()
    assert path == "/bubbles/address/respond"
    assert json.loads(fields["response"]) == {"name": "Ann"}
    await expect(sheet).to_be_hidden()


async def test_address_permission_location_and_contact_requests_post_their_responses(wall: Wall) -> None:
    names = ("address", "permission", "ask_place", "ask_card")
    await wall.show_bubbles(render(business_message(name)) for name in names)
    page = wall.page

    await button(page, "Provide address").click()
    await page.get_by_label("City").fill("Pune")
    await button(page, "Send address").click()
    path, fields = await wall.next_post(1)
    assert (path, json.loads(fields["response"])) == ("/bubbles/address/respond", {"city": "Pune"})
    await button(page, "Choose preference").click()
    await button(page, "Do not allow").click()
    path, fields = await wall.next_post(2)
    assert (path, fields["response"]) == ("/bubbles/permission/respond", '{"response": "reject"}')
    await button(page, "Send location").first.click()
    await page.get_by_label("Latitude").fill("52.5")
    await page.get_by_label("Longitude").fill("13.4")
    await page.get_by_role("dialog").get_by_role("button", name="Send location").click()
    path, fields = await wall.next_post(3)
    assert (path, fields["latitude"], fields["name"]) == ("/bubbles/ask_place/location", "52.5", "")
    await button(page, "Share Contact Info").click()
    await button(page, "Share").last.click()
    assert (await wall.next_post(4))[0] == "/bubbles/ask_card/contact"


async def test_product_order_is_built_from_the_quantities(wall: Wall) -> None:
    await wall.show_bubbles([render(business_message("products"))])
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


async def test_order_is_paid_in_its_dialog_and_shown_as_paid(wall: Wall) -> None:
    await wall.show_bubbles([render(business_message("order"))])
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
    await wall.show_bubbles([render(business_message("order", payment={"status": "captured"}))])
    await expect(button(wall.page, "Review and pay")).to_have_count(0)
    await expect(bubble.locator(".bubble-facts")).to_contain_text("Paid")


async def test_order_shows_its_latest_status_and_why_a_payment_failed() -> None:
    error = {"code": "BAD_REQUEST_ERROR", "reason": "payment_cancelled"}
    order = business_message("order", payment={"status": "failed", "error": error})
    [order, update] = prepare_messages([order, business_message("order_news")], lambda _: {})

    shown = [
        PAGES.render_macro(FILE, "bubble", UTC_ZONE, message, PAGE_REQUEST, "/bubbles/x") for message in (order, update)
    ]

    for fact in ("Partially shipped", "The cup follows on Monday.", "Failed: payment cancelled"):
        assert fact in shown[0]
    assert "Partially shipped" in shown[1]
    assert "Review and pay" in shown[0]
    assert "Review and pay" not in shown[1]


async def test_codes_are_copied_and_an_unrequested_code_is_reported(wall: Wall) -> None:
    await wall.show_bubbles([render(template_message("one_tap")), render(template_message("offer"))])

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
    await wall.show_bubbles([render(template_message("offer"))])
    offer = wall.page.locator(".bubble-offer")

    await offer.evaluate("(one) => (one.dataset.untilMs = Date.now() + 7_199_000)")
    await expect(offer).to_contain_text("Ends in 01:59:5")
    await offer.evaluate("(one) => (one.dataset.untilMs = Date.now() + 1_200)")
    await expect(offer).to_contain_text("Offer ended")


async def test_cards_scroll_by_keys_and_buttons_to_both_ends(wall: Wall) -> None:
    await wall.page.emulate_media(reduced_motion="reduce")
    await wall.show_bubbles([render(template_message("carousel"))])
    cards, page = wall.page.locator("[data-cards]"), wall.page

    await expect(button(page, "Previous cards")).to_be_hidden()
    await cards.focus()
    await page.keyboard.press("ArrowRight")
    await expect(button(page, "Previous cards")).to_be_visible()
    await button(page, "Next cards").click()
    await expect(button(page, "Next cards")).to_be_hidden()
    await expect(cards).to_be_focused()


async def test_long_text_expands_and_stays_expanded_while_the_bubble_changes(wall: Wall) -> None:
    item = business_message("long")
    await wall.show_bubbles([render(item)])
    text = wall.page.locator(".bubble-text")
    before = await text.evaluate("(one) => one.clientHeight")

    await button(wall.page, "Read more").click()
    await wall.update({**item, "state": "read"})

    await expect(button(wall.page, "Read less")).to_be_visible()
    assert await text.evaluate("(one) => one.clientHeight") > before


async def test_quote_scrolls_to_the_quoted_message(wall: Wall) -> None:
    items = [business_message("text"), business_message("long"), phone_message("own_text", context_id="text")]
    await wall.show_bubbles(
        PAGES.render_macro(FILE, "bubble", UTC_ZONE, message, PAGE_REQUEST, "")
        for message in prepare_messages(items, lambda _: {})
    )

    await wall.page.locator(".bubble-quote").click()

    await expect(wall.page.locator("#b-text.is-shown")).to_be_in_viewport()
    assert "#" not in wall.page.url


async def test_bubble_names_its_sender_time_and_state(wall: Wall) -> None:
    await wall.show_bubbles([render(business_message("text", state="read")), render(phone_message("own_photo"))])

    theirs = wall.page.get_by_role("article", name="From the business, 2026-11-22")
    await expect(theirs.get_by_text("Read", exact=True)).to_have_count(1)
    own = wall.page.get_by_role("article", name="From this phone")
    await expect(own.get_by_role("img", name="Photo")).to_be_visible()


async def test_bubble_without_actions_and_template_have_nothing_to_tap(wall: Wall) -> None:
    item = business_message("replies")
    [message] = prepare_messages([item], lambda _: {})
    await wall.show_bubbles(
        [PAGES.render_macro(FILE, "bubble", UTC_ZONE, message, PAGE_REQUEST), *render_all_templates()]
    )

    await expect(wall.page.locator("#wall form, #wall dialog, #wall a.bubble-button")).to_have_count(0)
    await expect(wall.page.locator("#t-gaps .gap")).to_have_count(3)
    await expect(wall.page.locator("#t-nothing")).to_contain_text("No content yet.")


async def test_template_message_from_the_control_api_is_rendered_with_its_buttons(
    module_console: ConsoleClient,
) -> None:
    """Not a sample: sent by the API, and read from the control API."""
    path = f"/control/phones/{module_console.phone}"
    before = [message["position"] for message in (await module_console.control.json("GET", path))["messages"]]
    params = {"id": demo.TEMPLATE_ID, "params": ["Ann", "4711"]}
    await module_console.api.form(
        "POST", f"/partner/app/{module_console.app_id}/template/msg",
        {"source": demo.SOURCE, "destination": module_console.phone, "src.name": demo.APP_NAME, "template": json.dumps(params)},
    )  # fmt: skip
    after = max(before, default=0)
    inbox = await module_console.control.json("GET", f"{path}?wait_ms=5000&after={after}")

    [message] = prepare_messages(inbox["messages"], lambda _: {})
    html = PAGES.render_macro(FILE, "bubble", UTC_ZONE, message, PAGE_REQUEST, "/x")
    assert "Hi Ann, your order 4711 is ready." in html
    assert "Yes please" in html
    assert "Another day" in html
