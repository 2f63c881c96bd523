"""The onboarding page: from a new business to its first delivered message, by a person's steps, offline."""

import re
import time
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from playwright.async_api import Locator, Page, expect

from tests.console.conftest import LOOP, ConsoleClient, Tab, Tabs
from tests.console.support.input_methods import INPUT_METHODS, InputMethod
from waypost.assembly.dev import demo
from waypost.client.api_client import ApiClient, HttpTransport

pytestmark = [pytest.mark.asyncio(loop_scope=LOOP), pytest.mark.timeout(120)]

MAX_PERSON_S: Final = 90
PRESS_S: Final = 3.0
"""A person's time to find a control, point at it and press: keystroke-level model, M 1.35 + P 1.1 + BB 0.2, rounded up."""
KEY_S: Final = 0.28  # the same model, an average typist
PHONE: Final = "12025550147"


@dataclass
class Person:
    """A person's steps with a page, counted."""

    method: InputMethod
    began_s: float = field(default_factory=time.monotonic)
    presses: int = 0
    characters: int = 0

    async def press(self, control: Locator) -> None:
        self.presses += 1
        await self.method.press(control)

    async def write(self, control: Locator, text: str) -> None:
        self.presses += 1  # to reach the field
        self.characters += len(text)
        await self.method.write(control, text)

    def estimate_s(self) -> float:
        """Return how long a person takes: the steps, and all that the test has waited for the service and the browser."""
        return self.presses * PRESS_S + self.characters * KEY_S + time.monotonic() - self.began_s


def line(page: Page, name: str) -> Locator:
    return page.locator(".business").filter(has=page.get_by_role("link", name=name, exact=True))


async def find_app(console: ConsoleClient, name: str) -> dict[str, Any]:
    apps = (await console.admin.json("GET", "/admin/apps"))["apps"]
    return next(app for app in apps if app["name"] == name)


async def finding(console: ConsoleClient, name: str) -> dict[str, Any]:
    """Return the doctor's result about an app's onboarding."""
    results = (await console.admin.json("GET", "/admin/doctor"))["results"]
    return next(result for result in results if result["subject"] == f"onboarding of {name}")


def allow_window(tab: Tab) -> None:
    """Take the requests to the simulator's window out of those that leave the console."""
    window = f"{tab.console.running.graph_url}/"
    tab.external_requests[:] = [url for url in tab.external_requests if not url.startswith(window)]


@pytest.mark.parametrize("method", INPUT_METHODS)
async def test_app_of_the_partner_api_gets_to_its_first_delivered_message(
    console: ConsoleClient, tabs: Tabs, method: str
) -> None:
    """`POST /partner/app`, then two presses on the page; the message goes to a simulated phone."""
    login = {"email": demo.EMAIL, "password": demo.CLIENT_SECRET}
    token = (await console.api.form("POST", "/partner/account/login", login))["token"]
    headers = {"Authorization": token}
    async with console.http.post(f"{console.base_url}/partner/app", data={"name": "Bakery"}, headers=headers) as made:
        assert made.status == 200, await made.text()
    page = (await tabs("/businesses")).page
    person, bakery = Person(INPUT_METHODS[method]), line(page, "Bakery")
    await expect(bakery).to_contain_text("Missing: a number;")

    await person.press(bakery.get_by_role("button", name="Sign up at once"))
    await expect(page.locator("#notices")).to_contain_text("Bakery is signed up.")
    await person.press(bakery.get_by_role("button", name="Send first message"))
    await expect(bakery.locator(".badge", has_text="delivered")).to_be_visible()

    taken_s = person.estimate_s()
    assert taken_s <= MAX_PERSON_S, (taken_s, person)
    assert (person.presses, person.characters) == (2, 0)
    app = await find_app(console, "Bakery")
    assert app["live"] is True
    chats = (await console.control.json("GET", f"/control/phones/{demo.DESTINATION}/chats"))["chats"]
    assert app["phone_number"] in [chat["phone_number"] for chat in chats if chat["last"] is not None]


async def test_new_business_signs_up_in_the_window_and_gets_a_reply(console: ConsoleClient, tabs: Tabs) -> None:
    """All screens by hand, with a typed name, number and code: still within the time."""
    tab = await tabs("/")
    page, person = tab.page, Person(INPUT_METHODS["pointer"])
    await person.press(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Onboarding"))
    await person.write(page.get_by_label("Name"), "Corner Bakery")
    await person.press(page.get_by_role("button", name="Create only"))
    bakery = line(page, "Corner Bakery")
    await person.press(bakery.get_by_role("link", name="Open signup window"))
    heading = page.get_by_role("heading", level=1)
    await expect(heading).to_have_text("Sign in")

    while (title := await heading.inner_text()) != "Onboarding":
        if title == "Your phone number":
            await expect(page.get_by_label("Display name")).to_have_value("Corner Bakery")
            await person.write(page.get_by_label("Phone number"), PHONE)
        if title == "Verify the number":
            await person.press(page.get_by_role("button", name="Send a text message"))
            text = await page.get_by_label("Simulated phone").inner_text()
            await person.write(page.get_by_label("Code"), text.rpartition(": ")[2])
        await person.press(page.get_by_role("button", name=re.compile("Continue|Confirm|Finish")))
        await expect(heading).not_to_have_text(title)
    await expect(page.locator("#notices")).to_contain_text("Corner Bakery is signed up.")
    await person.press(bakery.get_by_role("button", name="Send first message"))
    await expect(bakery.locator(".badge", has_text="delivered")).to_be_visible()
    taken_s = person.estimate_s()
    words = (await bakery.locator(".business-missing p").first.inner_text()).removeprefix("Missing: ")

    assert taken_s <= MAX_PERSON_S, (taken_s, person)
    assert (await finding(console, "Corner Bakery"))["text"] == f"missing: {words}"
    form = {"modes": "MESSAGE", "tag": "shop", "url": f"{console.base_url}/healthz", "version": "2"}
    app = await find_app(console, "Corner Bakery")
    await console.post(f"/apps/{app['id']}/callbacks/new", form)
    await person.press(bakery.get_by_role("button", name="Reply from phone"))
    await expect(bakery).to_contain_text("Nothing is missing.")
    allow_window(tab)


async def arm(console: ConsoleClient, name: str) -> None:
    """Let the next signup go wrong, by the one click of its preset."""
    await console.post(f"/simulator/faults/presets/signup-{name}")


async def test_error_of_the_window_is_told_and_the_signup_can_be_repeated(console: ConsoleClient, tabs: Tabs) -> None:
    await arm(console, "number_registered")
    page = (await tabs("/businesses")).page

    await page.get_by_role("button", name="Create and sign up").click()

    notice = page.locator("#notices")
    await expect(notice).to_contain_text(
        "The signup window shows error 3441030: The phone number is registered already."
    )
    await line(page, "Business 1").get_by_role("button", name="Sign up at once").click()
    await expect(notice).to_contain_text("Business 1 is signed up.")


async def test_code_that_has_expired_is_told(console: ConsoleClient, tabs: Tabs) -> None:
    await arm(console, "code_expired")
    page = (await tabs("/businesses")).page

    await page.get_by_role("button", name="Create and sign up").click()

    await expect(page.locator("#notices")).to_contain_text("This authorization code has expired.")
    await expect(line(page, "Business 1")).to_contain_text("Missing: a number;")


async def test_number_with_an_unknown_pin_is_registered_with_the_one_that_is_entered(
    console: ConsoleClient, tabs: Tabs
) -> None:
    await arm(console, "pin_forgotten")
    page = (await tabs("/businesses")).page
    await page.get_by_role("button", name="Create and sign up").click()
    shop = line(page, "Business 1")
    for _ in range(3):  # it is tried three times
        await expect(shop).to_contain_text("register the number")
        await console.control.json("POST", "/control/clock/advance", {"ms": 60_000})
    await expect(shop).to_contain_text("it has failed to register the number")
    app = await find_app(console, "Business 1")
    results = await finding(console, "Business 1")
    token = await console.control.json("POST", "/control/tokens", {"waba_ids": [app["business_account_id"]]})
    owner = ApiClient(HttpTransport(console.running.graph_url), {"Authorization": f"Bearer {token['token']}"})
    await owner.json("POST", f"/v25.0/{app['phone_number_id']}", {"pin": "246810"})  # its owner sets another PIN

    await shop.get_by_label("PIN, if the number has one").fill("246810")
    await shop.get_by_role("button", name="Retry registration").click()

    await expect(shop.locator(".business-stage")).to_contain_text("live")
    assert results["state"] == "wrong"
    assert results["fix_hint"] == f"mend the cause, then: waypost app onboard {app['id']}"


async def test_app_at_the_operator_offers_nothing_that_only_the_simulator_can_do(console: ConsoleClient) -> None:
    account = {"base_url": "https://graph.facebook.com", "token": "t", "app_id": "77", "app_secret": "s"}
    await console.admin.json("PUT", "/admin/operator-accounts/cloud", account)
    business = {"id": "555", "partner_id": 1, "namespace": "n", "operator_account_id": "cloud"}
    await console.admin.json("POST", "/admin/business-accounts", business)
    app = {
        "partner_id": 1, "name": "Real Shop", "phone_number": "15551230000", "phone_number_id": "556",
        "business_account_id": "555",
    }  # fmt: skip
    app_id = (await console.admin.json("POST", "/admin/apps", app))["id"]

    text = await console.get("/businesses")

    own = text.partition(f'<li id="business-{app_id}"')[2].partition("</li>")[0]
    assert f'href="/apps/{app_id}/templates/new"' in own
    assert "<form" not in own
    for action in ("template", "message", "reply"):
        await console.post(f"/businesses/{app_id}/{action}", status=404)


async def test_window_of_another_session_connects_nothing(console: ConsoleClient) -> None:
    await console.post("/businesses", {"name": "Corner Shop", "how": "create"})
    app = await find_app(console, "Corner Shop")

    await console.get(f"/businesses/{app['id']}/signed-up?code=1&state=another")

    assert (await find_app(console, "Corner Shop"))["phone_number"] == ""
