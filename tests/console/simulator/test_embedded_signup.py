"""Embedded signup in a browser: a partner's page, written for the operator's script, with the simulator's in its place."""

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import Browser, Page, expect

from tests.console.conftest import LOOP, ConsoleClient
from tests.support.polling import HANGS_AFTER_S
from waypost.assembly.dev import demo
from waypost.simulator.state.accounts import partner_id

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

AXE: Final = resources.files("axe_playwright_python") / "axe.min.js"
PHONE: Final = "+1 202 555 0147"
TITLES: Final = (
    "Sign in", "Connect your business", "Choose your business", "Choose an account and a number", "Name the account",
    "Your phone number", "Verify the number", "Review what you share", "You are ready",
)  # fmt: skip
PAGE: Final = """<!doctype html><html lang="en"><title>Partner</title><h1>Partner</h1><button>Connect WhatsApp</button>
<script>
const got = [];
window.addEventListener("message", (event) => {
  if (!event.origin.endsWith("facebook.com")) return;
  try { const data = JSON.parse(event.data); got.push({message: data, origin: event.origin}); } catch { got.push("text"); }
});
window.fbAsyncInit = () => FB.init({appId: "APP_ID", autoLogAppEvents: true, xfbml: true, version: "v25.0"});
document.querySelector("button").onclick = () => FB.login((response) => got.push({response}), {
  config_id: "", response_type: "code", override_default_response_type: true, extras: EXTRAS});
</script>
<script async defer crossorigin="anonymous" src="SDK"></script></html>"""


@dataclass
class PartnerSite:
    """A site of a partner, with one page for each form of `extras`."""

    console: ConsoleClient
    url: str = ""
    app_id: str = demo.GRAPH_APP_ID
    script_host: str = ""  # empty: the simulator's own
    extras: dict[str, Any] = field(default_factory=lambda: {"setup": {}, "sessionInfoVersion": "3"})

    async def show(self, _request: web.Request) -> web.Response:
        sdk = f"{self.script_host or self.console.running.graph_url}/en_US/sdk.js"
        text = PAGE.replace("SDK", sdk).replace("APP_ID", self.app_id).replace("EXTRAS", json.dumps(self.extras))
        return web.Response(text=text, content_type="text/html")

    async def arm(self, **fault: Any) -> None:
        await self.console.control.json("POST", "/control/faults", fault)

    async def call_graph(self, path: str, **parameters: str) -> dict[str, Any]:
        """Call the operator's API as the partner's server does, by POST."""
        url, headers = f"{self.console.running.graph_url}/v25.0/{path}", {"Authorization": f"Bearer {demo.GRAPH_TOKEN}"}
        async with aiohttp.ClientSession() as http, http.post(url, params=parameters, headers=headers) as response:
            return await response.json()

    async def exchange(self, code: str) -> tuple[int, dict[str, Any]]:
        """Exchange a code as the partner's server does."""
        query = {"client_id": self.app_id, "client_secret": demo.GRAPH_APP_SECRET, "code": code}
        url = f"{self.console.running.graph_url}/v25.0/oauth/access_token"
        async with aiohttp.ClientSession() as http, http.get(url, params=query) as response:
            return response.status, await response.json()


@pytest_asyncio.fixture(loop_scope=LOOP)
async def site(console: ConsoleClient) -> AsyncGenerator[PartnerSite]:
    site, application = PartnerSite(console), web.Application()
    application.router.add_get("/{name:.*}", site.show)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    site.url = f"http://localhost:{runner.addresses[0][1]}/"
    yield site
    await runner.cleanup()


@pytest_asyncio.fixture(loop_scope=LOOP)
async def page(browser: Browser) -> AsyncGenerator[Page]:
    context = await browser.new_context()
    context.set_default_timeout(HANGS_AFTER_S * 1000)
    yield await context.new_page()
    await context.close()


async def open_window(page: Page, site: PartnerSite) -> Page:
    """Open the partner's page, press its button, and return the window."""
    await page.goto(site.url)
    await page.wait_for_function("window.FB !== undefined")
    async with page.expect_popup() as popup:
        await page.get_by_role("button", name="Connect WhatsApp").click()
    return await popup.value


async def go_to(window: Page, screen: str) -> None:
    """Use the window as a person does, with what it proposes, up to the screen with this title."""
    heading = window.get_by_role("heading", level=1)
    await expect(heading).to_have_count(1)
    while (title := await heading.inner_text()) != screen:
        if title == "Your phone number":
            await window.get_by_label("Phone number").fill(PHONE)
        if title == "Verify the number":
            await window.get_by_role("button", name="Send a text message").click()
            text = await window.get_by_label("Simulated phone").inner_text()
            await window.get_by_label("Code").fill(text.rpartition(": ")[2])
        await window.get_by_role("button", name="Confirm" if "Review" in title else "Continue").click()
        await expect(heading).not_to_have_text(title)


async def wait_for(page: Page, count: int) -> list[dict[str, Any]]:
    """Return what the partner's page has got once there are so many."""
    await page.wait_for_function("count => got.length >= count", arg=count)
    return await page.evaluate("got")


async def test_page_for_the_operators_script_gets_message_and_code(page: Page, site: PartnerSite) -> None:
    window = await open_window(page, site)
    await go_to(window, "You are ready")
    async with window.expect_event("close"):
        await window.get_by_role("button", name="Finish").click()
    message, answer = await wait_for(page, 2)

    assert message["origin"] == "https://www.facebook.com"
    assert (message["message"]["type"], message["message"]["event"]) == ("WA_EMBEDDED_SIGNUP", "FINISH")
    assert set(message["message"]["data"]) == {"phone_number_id", "waba_id", "business_id"}
    status, body = await site.exchange(answer["response"]["authResponse"]["code"])
    assert (status, body["token_type"]) == (200, "bearer")


async def test_script_of_the_operators_own_name_opens_the_window_of_the_other(page: Page, site: PartnerSite) -> None:
    """As in a browser that is intercepted, for which both names lead to the simulator."""
    async with site.console.http.get(f"{site.console.running.graph_url}/en_US/sdk.js") as response:
        script = await response.text()
    await page.route("https://connect.facebook.net/**", lambda route: route.fulfill(body=script))
    await page.context.route("https://www.facebook.com/**", lambda route: route.fulfill(body="the window"))
    site.script_host = "https://connect.facebook.net"

    window = await open_window(page, site)
    await window.wait_for_load_state()

    address = urlsplit(window.url)
    assert (address.netloc, address.path) == ("www.facebook.com", "/v25.0/dialog/oauth")


async def test_window_that_is_closed_cancels_with_its_step(page: Page, site: PartnerSite) -> None:
    window = await open_window(page, site)
    await go_to(window, "Choose an account and a number")
    await window.close()
    message, answer = await wait_for(page, 2)

    assert message["message"]["event"] == "CANCEL"
    assert message["message"]["data"] == {"current_step": "WABA_PHONE_PROFILE_PICKER"}
    assert answer["response"] == {"authResponse": None, "status": "unknown"}


async def test_error_of_a_screen_is_shown_and_reported(page: Page, site: PartnerSite) -> None:
    await site.arm(on="onboarding", what={"window_error": 3441030}, when={"next": 1})
    window = await open_window(page, site)
    await go_to(window, "Your phone number")
    await window.get_by_label("Phone number").fill(PHONE)
    await window.get_by_role("button", name="Continue").click()
    await expect(window.get_by_role("alert")).to_contain_text("3441030")
    async with window.expect_event("close"):
        await window.get_by_role("button", name="Report and close").click()
    message, _ = await wait_for(page, 2)

    assert message["message"]["event"] == "CANCEL"
    assert message["message"]["data"]["error_code"] == "3441030"


async def test_number_that_the_partner_has_verified_is_offered_first_and_needs_no_code(
    page: Page, site: PartnerSite
) -> None:
    phone, control = "12025550188", site.console.control
    await control.json("PUT", f"/control/onboarding/partners/{site.app_id}", {"has_credit_line": True})
    added = await site.call_graph(f"{partner_id(site.app_id)}/add_phone_numbers", phone_number=phone)
    await site.call_graph(f"{added['id']}/request_code", code_method="SMS", language="en_US")
    code = (await control.json("GET", f"/control/phones/{phone}/code"))["sent"]["code"]
    await site.call_graph(f"{added['id']}/verify_code", code=code)
    site.extras = {"version": "v4", "setup": {"preVerifiedPhone": {"ids": [added["id"]]}}}

    window = await open_window(page, site)
    await go_to(window, "Choose an account and a number")
    await expect(window.get_by_label(f"+{phone}")).to_be_checked()
    await window.get_by_role("button", name="Continue").click()
    await expect(window.get_by_text(f"Your number is +{phone}.")).to_be_visible()
    await window.get_by_role("button", name="Continue").click()
    await expect(window.get_by_role("heading", level=1)).to_have_text("Review what you share")


async def test_dialog_without_the_script_returns_to_its_uri(page: Page, site: PartnerSite) -> None:
    back = f"{site.url}back"
    dialog = f"{site.console.running.graph_url}/v25.0/dialog/oauth"
    await page.goto(f"{dialog}?client_id={site.app_id}&redirect_uri={back}&state=s1&response_type=code")
    await go_to(page, "You are ready")
    await page.get_by_role("button", name="Finish").click()
    await page.wait_for_url(f"{back}*")
    query = parse_qs(urlsplit(page.url).query)

    assert query["state"] == ["s1"]
    assert (await site.exchange(query["code"][0]))[0] == 400  # the exchange must repeat the redirect_uri


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (360, "dark")])
async def test_every_screen_is_accessible(page: Page, site: PartnerSite, width: int, theme: Any) -> None:
    await page.set_viewport_size({"width": width, "height": 800})
    await page.emulate_media(color_scheme=theme)
    await page.goto(f"{site.console.running.graph_url}/messaging/whatsapp/onboard/?app_id={site.app_id}")
    for title in TITLES:
        await go_to(page, title)
        found = await page.evaluate(f"{AXE.read_text()}; axe.run(document).then(found => found.violations)")
        assert found == [], title
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), title


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("dialog/oauth?client_id=1&redirect_uri=https://x.example/", "client_id must be the id of an app"),
        ("v25.0/dialog/oauth?client_id=APP", "redirect_uri must be a URL"),
        ("dialog/oauth?client_id=APP&channel=short", "channel must be"),
        (
            "dialog/oauth?client_id=APP&redirect_uri=https://x.example/&response_type=token",
            "response_type must be code",
        ),
        ("dialog/oauth?client_id=APP&redirect_uri=https://x.example/&extras=[", "extras must be an object in JSON"),
        (
            "dialog/oauth?client_id=APP&redirect_uri=https://x.example/&config_id=9",
            "config_id is no login configuration",
        ),
        ("dialog/window/nobody", "does not exist any more"),
    ],
)
async def test_dialog_that_cannot_be_opened_says_why(site: PartnerSite, path: str, text: str) -> None:
    url = f"{site.console.running.graph_url}/{path.replace('APP', site.app_id)}"
    async with aiohttp.ClientSession() as http, http.get(url) as response:
        assert response.status in (400, 404)
        assert text in await response.text()


@pytest_asyncio.fixture(loop_scope=LOOP)
async def limited(site: PartnerSite) -> AsyncGenerator[PartnerSite]:
    """The partner's site, whose app has the addresses of a test; afterwards those of this machine."""
    yield site
    host = {"allowed_domains": ["localhost"], "redirect_uris": [site.url, f"{site.url}back"]}
    await site.console.control.json("PUT", f"/control/onboarding/apps/{site.app_id}/addresses", host)


async def set_addresses(site: PartnerSite, domains: list[str], uris: list[str]) -> None:
    body = {"allowed_domains": domains, "redirect_uris": uris}
    await site.console.control.json("PUT", f"/control/onboarding/apps/{site.app_id}/addresses", body)


@pytest.mark.parametrize(
    ("domains", "uris", "query", "text"),
    [
        (["x.example"], ["https://x.example/a"], "channel=KEY&origin=https://y.example", "JSSDK Unknown Host domain"),
        (["x.example"], ["https://y.example/a"], "channel=KEY&origin=https://x.example", "JSSDK Unknown Host domain"),
        (["x.example"], ["https://x.example/a"], "channel=KEY&origin=http://x.example", "called from http pages"),
        (["x.example"], ["https://x.example/a"], "channel=KEY&origin=https://[", "JSSDK Unknown Host domain"),
        (["x.example"], ["https://x.example/a"], "redirect_uri=https://x.example/b", "URL Blocked"),
        (["x.example"], ["https://x.example/a"], "channel=KEY&origin=https://x.example", ""),
        (["x.example"], ["https://x.example/a"], "redirect_uri=https://x.example/a", ""),
    ],
)
async def test_page_elsewhere_than_the_apps_addresses_is_refused(
    limited: PartnerSite, domains: list[str], uris: list[str], query: str, text: str
) -> None:
    await set_addresses(limited, domains, uris)
    query = query.replace("KEY", f"k{abs(hash((query, text))):020d}")
    url = f"{limited.console.running.graph_url}/dialog/oauth?client_id={limited.app_id}&{query}"

    async with aiohttp.ClientSession() as http, http.get(url) as response:
        assert response.status == (400 if text else 200)
        assert (text or "Sign in") in await response.text()


async def test_script_says_where_its_page_is(page: Page, limited: PartnerSite) -> None:
    await set_addresses(limited, ["shop.example"], ["https://shop.example/"])
    window = await open_window(page, limited)
    await expect(window.get_by_role("alert")).to_contain_text("JSSDK Unknown Host domain")
    await window.close()
    (answer,) = await wait_for(page, 1)

    assert answer["response"] == {"authResponse": None, "status": "unknown"}
    await set_addresses(limited, ["localhost"], [limited.url])
    await go_to(await open_window(page, limited), "Connect your business")
