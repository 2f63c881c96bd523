"""The link that a partner sends to a business: from the page behind it, through the signup window, to a live app."""

import re
from typing import Any, Final
from urllib.parse import urlencode

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.console.conftest import LOOP, ConsoleClient, Tabs
from tests.console.onboarding.test_onboarding_page import allow_window, find_app
from waypost.assembly.dev import demo

pytestmark = [pytest.mark.asyncio(loop_scope=LOOP), pytest.mark.timeout(120)]

PHONE: Final = "12025550148"


class Partner:
    """The partner of the demonstration, who calls the partner API."""

    def __init__(self, console: ConsoleClient, token: str) -> None:
        self._console, self._headers = console, {"Authorization": token}

    async def call(self, method: str, path: str, form: dict[str, str] | None = None) -> dict[str, Any]:
        url = f"{self._console.base_url}/partner/{path}"
        async with self._console.http.request(method, url, data=form, headers=self._headers) as response:
            assert response.status == 200, await response.text()
            return await response.json()


@pytest_asyncio.fixture(loop_scope=LOOP)
async def partner(console: ConsoleClient) -> Partner:
    login = {"email": demo.EMAIL, "password": demo.CLIENT_SECRET}
    return Partner(console, (await console.api.form("POST", "/partner/account/login", login))["token"])


async def make_link(partner: Partner, name: str) -> tuple[str, str]:
    """Create an app, and return its id and the path of its onboarding link."""
    app_id = (await partner.call("POST", "app", {"name": name}))["appId"]
    link = (await partner.call("GET", f"app/{app_id}/onboarding/embed/link?{urlencode({'user': 'Ada'})}"))["link"]
    return app_id, "/onboarding/" + link.rpartition("/onboarding/")[2]


async def use_window(page: Page, until: str) -> None:
    """Fill in the window as a person does, until a screen with this heading is shown."""
    heading = page.get_by_role("heading", level=1)
    await expect(heading).to_have_text("Sign in")
    while (title := await heading.inner_text()) != until:
        if title == "Your phone number":
            await page.get_by_label("Phone number").fill(PHONE)
        if title == "Verify the number":
            await page.get_by_role("button", name="Send a text message").click()
            text = await page.get_by_label("Simulated phone").inner_text()
            await page.get_by_label("Code").fill(text.rpartition(": ")[2])
        await page.get_by_role("button", name=re.compile("Continue|Confirm|Finish")).click()
        await expect(heading).not_to_have_text(title)


async def test_business_that_finishes_the_window_gets_a_live_app(
    console: ConsoleClient, tabs: Tabs, partner: Partner
) -> None:
    app_id, path = await make_link(partner, "Link Bakery")
    tab = await tabs(path, signed_in=False)
    page = tab.page

    await page.get_by_role("link", name="the signup window").click()
    await use_window(page, until="Onboarding of Link Bakery")

    await expect(page.get_by_text("The app can send and receive messages.")).to_be_visible()
    app = await find_app(console, "Link Bakery")
    assert (app["live"], app["phone_number"]) == (True, PHONE)
    token = (await partner.call("GET", f"app/{app_id}/token"))["token"]["token"]
    async with console.http.get(
        f"{console.base_url}/partner/app/{app_id}/pipeline", headers={"Authorization": token}
    ) as response:
        stages = (await response.json())["whatsapp"]
    assert stages["creationStage"] == "WHATSAPP_PROVISIONING_DONE"
    allow_window(tab)


async def test_window_that_is_closed_leaves_the_app_as_it_was_and_can_be_opened_again(
    console: ConsoleClient, tabs: Tabs, partner: Partner
) -> None:
    _, path = await make_link(partner, "Closed Bakery")
    tab = await tabs(path, signed_in=False)
    page = tab.page

    await page.get_by_role("link", name="the signup window").click()
    await page.get_by_role("button", name="Continue").click()
    await page.get_by_role("button", name="Cancel").click()

    await expect(page.get_by_role("alert")).to_contain_text("The signup window was closed before its end.")
    await expect(page.get_by_role("link", name="the signup window")).to_be_visible()
    app = await find_app(console, "Closed Bakery")
    assert (app["live"], app["phone_number"]) == (False, "")
    allow_window(tab)
    assert ["400 (Bad Request)" in error for error in tab.errors] == [True]  # the page of a return without a code
    tab.errors.clear()


async def test_window_waits_for_the_confirmed_address_of_the_contact(
    console: ConsoleClient, tabs: Tabs, partner: Partner
) -> None:
    app_id, path = await make_link(partner, "Contact Bakery")
    contact = {"contactEmail": "ada@bakery.test", "contactName": "Ada", "contactNumber": "12025550149"}
    await partner.call("PUT", f"app/{app_id}/onboarding/contact", contact)
    page = (await tabs(path, signed_in=False)).page

    await expect(page.get_by_text("Confirm the e-mail address")).to_be_visible()
    shown = await console.admin.json("GET", f"/admin/apps/{app_id}/contact-email")
    await page.goto(shown["url"])
    await page.get_by_role("button").click()
    await page.goto(console.base_url + path)

    await expect(page.get_by_role("link", name="the signup window")).to_be_visible()


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", "The signup window was closed before its end."),
        ("?error=access_denied", "The signup window was closed before its end."),
        ("?code=AQunknown", "The operator returned an error: "),
    ],
)
async def test_return_without_a_good_code_is_told(
    console: ConsoleClient, partner: Partner, query: str, reason: str
) -> None:
    _, path = await make_link(partner, "Coded Bakery")

    async with console.http.get(f"{console.base_url}{path}/signed-up{query}") as response:
        text = await response.text()

    assert (response.status, reason in text) == (400, True), text
    assert (await find_app(console, "Coded Bakery"))["phone_number"] == ""


async def test_unknown_link_cannot_finish_a_signup(console: ConsoleClient, partner: Partner) -> None:
    _, path = await make_link(partner, "Unknown Bakery")
    wrong = path[:-1] + ("0" if path[-1] != "0" else "1")

    async with console.http.get(f"{console.base_url}{wrong}/signed-up?code=AQunknown") as response:
        assert (response.status, "This link is not valid" in await response.text()) == (404, True)
