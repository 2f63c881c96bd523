"""The journey of a new user in the browser: from sign-in to a tapped button, its callback and its trace."""

import re
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.console.conftest import LOOP, ConsoleClient, Tabs
from tests.console.support.input_methods import INPUT_METHODS
from tests.support.callback_sink import CallbackSink
from tests.support.polling import HANGS_AFTER_S
from waypost.assembly.dev import demo

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)


@pytest_asyncio.fixture(loop_scope=LOOP)
async def receiver(console: ConsoleClient) -> AsyncGenerator[CallbackSink]:
    """A partner's receiver with a subscription to everything."""
    sink = CallbackSink()
    await sink.open()
    form = {
        "modes": "MESSAGE,ENQUEUED,SENT,DELIVERED,READ,FAILED,TEMPLATE", "tag": "shop", "url": sink.url,
        "version": "2",
    }  # fmt: skip
    await console.api.form("POST", f"/partner/app/{console.app_id}/subscription", form)
    yield sink
    await sink.close()


@pytest.mark.parametrize("method", INPUT_METHODS)
async def test_new_user_sends_a_template_taps_it_and_sees_the_callback(
    tabs: Tabs, console: ConsoleClient, receiver: CallbackSink, method: str
) -> None:
    user = INPUT_METHODS[method]
    tab = await tabs("/", signed_in=False)
    page = tab.page
    page.set_default_timeout(HANGS_AFTER_S * 1000)

    # Sign in: the demo needs one click.
    await user.press(page.get_by_role("button", name="Continue as the demo partner"))
    await expect(page.get_by_role("heading", level=1)).to_have_text("Overview")

    # Write a template, and submit it.
    await user.go(page, "Templates")
    await user.press(page.get_by_role("link", name="New template"))
    await user.write(page.get_by_label("Name", exact=True), "table_booked")
    await user.write(page.get_by_label("Topic", exact=True), "Bookings")
    await user.write(page.get_by_label("Body", exact=True), "Your table for {{1}} is booked.")
    await user.write(page.get_by_label("Sample for {{1}}"), "four")
    await user.press(page.get_by_role("button", name="Add button"))
    await user.write(page.get_by_label("Label", exact=True), "We will come")
    await expect(page.locator("#preview-side")).to_contain_text("Your table for four is booked.")
    await expect(page.locator("#lint")).to_contain_text("No violations")
    await user.press(page.get_by_role("button", name="Submit"))

    # Wait for its approval, and send it.
    await expect(page.locator("#status")).to_contain_text("approved")
    await user.write(page.get_by_label("To", exact=True), demo.DESTINATION)
    await user.press(page.locator("#send").get_by_role("button", name="Send"))
    await page.wait_for_url(re.compile(r"/messages/[0-9a-f-]{36}"))
    trace = page.url.removeprefix(console.base_url)
    await expect(page.locator("#summary")).to_contain_text("delivered")

    # See it on the phone, and tap.
    await user.press(page.get_by_role("link", name="Open phone"))
    await user.press(page.locator(".entry").get_by_role("button", name="We will come"))
    await expect(page.locator(".entry.is-own").last).to_contain_text("We will come")
    [tapped] = await receiver.wait_for(lambda callback: callback["payload"].get("type") in ("quick_reply", "button"))

    # See the callback, byte for byte, and the message's trace.
    await user.go(page, "Callbacks")
    await user.press(page.get_by_role("link", name="Deliveries").first)
    await expect(page.get_by_role("heading", level=1)).to_contain_text("eliver")
    await user.press(page.locator("main [data-list] a").first)
    await expect(page.locator("main")).to_contain_text(tapped["payload"]["id"][:20])
    await tab.go(trace)
    delivered = page.get_by_role("list", name="Callbacks about “delivered”")
    await expect(delivered).to_contain_text("200 OK")
