"""The newcomer's journey on screen: from signing in to a tapped button, its callback and its trace."""

import re
from collections.abc import AsyncGenerator
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.console.conftest import LOOP, Desk, Tabs
from tests.console.support.input_methods import Hands, Keys, Pointer
from tests.support.callback_sink import CallbackSink
from tests.support.waiting import HANGS_AFTER_S
from waypost.assembly.dev import demo

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

WAYS: Final = {"pointer": Pointer(), "keyboard": Keys()}


@pytest_asyncio.fixture(loop_scope=LOOP)
async def receiver(desk: Desk) -> AsyncGenerator[CallbackSink]:
    """A partner's receiver that is registered for everything."""
    sink = CallbackSink()
    await sink.open()
    form = {
        "modes": "MESSAGE,ENQUEUED,SENT,DELIVERED,READ,FAILED,TEMPLATE", "tag": "shop", "url": sink.url,
        "version": "2",
    }  # fmt: skip
    await desk.api.form("POST", f"/partner/app/{desk.app_id}/subscription", form)
    yield sink
    await sink.close()


@pytest.mark.parametrize("way", WAYS)
async def test_newcomer_sends_a_template_taps_it_and_sees_the_callback(
    tabs: Tabs, desk: Desk, receiver: CallbackSink, way: str
) -> None:
    hands: Hands = WAYS[way]
    tab = await tabs("/", signed_in=False)
    page = tab.page
    page.set_default_timeout(HANGS_AFTER_S * 1000)

    # Sign in: at a demonstration one click is enough.
    await hands.press(page.get_by_role("button", name="Continue as the demo partner"))
    await expect(page.get_by_role("heading", level=1)).to_have_text("Overview")

    # Write a template, and submit it.
    await hands.go(page, "Templates")
    await hands.press(page.get_by_role("link", name="New template"))
    await hands.write(page.get_by_label("Name", exact=True), "table_booked")
    await hands.write(page.get_by_label("Topic", exact=True), "Bookings")
    await hands.write(page.get_by_label("Body", exact=True), "Your table for {{1}} is booked.")
    await hands.write(page.get_by_label("Sample for {{1}}"), "four")
    await hands.press(page.get_by_role("button", name="Add button"))
    await hands.write(page.get_by_label("Label", exact=True), "We will come")
    await expect(page.locator("#preview-side")).to_contain_text("Your table for four is booked.")
    await expect(page.locator("#lint")).to_contain_text("0 violations")
    await hands.press(page.get_by_role("button", name="Submit"))

    # Watch it being approved, and send it.
    await expect(page.locator("#status")).to_contain_text("approved")
    await hands.write(page.get_by_label("To", exact=True), demo.DESTINATION)
    await hands.press(page.locator("#send").get_by_role("button", name="Send"))
    await page.wait_for_url(re.compile(r"/messages/[0-9a-f-]{36}"))
    trace = page.url.removeprefix(desk.base_url)
    await expect(page.locator("#summary")).to_contain_text("delivered")

    # See it on the phone, and tap.
    await hands.press(page.get_by_role("link", name="Open phone"))
    await hands.press(page.locator(".entry").get_by_role("button", name="We will come"))
    await expect(page.locator(".entry.is-own").last).to_contain_text("We will come")
    [tapped] = await receiver.wait_for(lambda told: told["payload"].get("type") in ("quick_reply", "button"))

    # See the callback, byte for byte, and the message's trace.
    await hands.go(page, "Callbacks")
    await hands.press(page.get_by_role("link", name="Deliveries").first)
    await expect(page.get_by_role("heading", level=1)).to_contain_text("eliver")
    await hands.press(page.locator("main [data-list] a").first)
    await expect(page.locator("main")).to_contain_text(tapped["payload"]["id"][:20])
    await tab.go(trace)
    await expect(page.locator("#steps")).to_contain_text("Callback “delivered”: delivered")
