"""The API reference beside the console: "Try it" with the session's credential or a typed one, and the links between."""

import json
import shlex
from typing import Any, Final
from urllib.parse import parse_qsl

import pytest
from playwright.async_api import Page, Request, expect

from tests.console.conftest import LOOP, ConsoleClient, Tab, Tabs
from tests.console.test_accessibility import ALL, AXE, RUN_AXE
from tests.support.polling import HANGS_AFTER_S
from waypost.assembly.dev import demo

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

SEND: Final = "/docs/post-wa-api-v1-template-msg"
APPS: Final = "/docs/get-partner-account-api-partnerApps"
WIDTHS: Final = (1440, 390)


async def press_send(page: Page) -> None:
    await page.get_by_role("button", name="Send").click()


def body_of(text: str) -> Any:
    return json.loads(text[text.index("{") : text.rindex("}") + 1])


async def test_message_is_sent_with_the_credential_of_the_session(tabs: Tabs, console: ConsoleClient) -> None:
    tab = await tabs(SEND)
    sent: list[Request] = []
    tab.page.on("request", lambda request: sent.append(request))
    result = tab.page.locator("#try-result")

    await expect(tab.page.get_by_label("Use the credential of")).to_be_visible()
    await press_send(tab.page)

    await expect(result).to_contain_text("200")
    message_id = body_of(await result.inner_text())["messageId"]
    assert (await console.admin.json("GET", f"/admin/messages/{message_id}"))["destination"] == demo.DESTINATION
    [request] = [one for one in sent if "/wa/api" in one.url]
    assert request.headers["apikey"] == console.running.variables["APP_TOKEN"]
    assert "cookie" not in await request.all_headers()
    assert console.running.variables["APP_TOKEN"] not in await tab.page.content()
    stored = await tab.page.evaluate("[localStorage.length, sessionStorage.length, location.search]")
    assert stored == [0, 0, ""]
    assert {cookie.get("name") for cookie in await tab.page.context.cookies()} <= {"waypost_session", "waypost_app"}
    audited = (await console.admin.json("GET", "/admin/audit?action=try-token"))["entries"]
    assert [(entry["action"], entry["subject"]) for entry in audited] == [
        ("POST /apps/{app_id}/try-token", f"app_id={demo.APP_ID}")
    ]


async def test_operation_that_requires_a_universal_token_asks_for_it(tabs: Tabs) -> None:
    tab = await tabs("/docs/post-partner-app-app-id-token")

    await expect(tab.page.locator("#try-note")).to_contain_text("Type a universal token")
    await expect(tab.page.locator("#try-typed")).to_contain_text("universal token")
    await expect(tab.page.get_by_label("Use the credential of")).to_be_hidden()


async def test_operation_of_a_partner_gets_a_partner_token(tabs: Tabs) -> None:
    tab = await tabs("/docs/get-partner-account-api-partnerApps")
    await expect(tab.page.get_by_label("Use the credential of")).to_be_visible()

    await press_send(tab.page)

    await expect(tab.page.locator("#try-result")).to_contain_text(demo.APP_NAME)


async def test_typed_credential_works_without_a_session(tabs: Tabs, console: ConsoleClient) -> None:
    tab = await tabs(SEND, signed_in=False)
    tab.errors.clear()  # the browser reports that there is no session
    result = tab.page.locator("#try-result")
    await expect(tab.page.locator("#try-note")).to_contain_text("Sign in")

    await press_send(tab.page)
    await expect(result).to_contain_text("Type the API key")
    await tab.page.get_by_label("apikey").fill(console.running.variables["API_KEY"])
    await press_send(tab.page)

    await expect(result).to_contain_text("200")
    tab.errors.clear()


async def test_failed_request_leads_to_its_entry_and_back(tabs: Tabs) -> None:
    tab = await tabs("/docs/post-wa-api-v1-msg")
    page = tab.page
    await expect(page.get_by_label("Use the credential of")).to_be_visible()

    await page.get_by_label("destination").fill("12")
    await press_send(page)
    await expect(page.locator("#try-result")).to_contain_text("8 to 15 digits")
    tab.errors.clear()  # the browser reports the status 400
    entry = await page.get_by_role("link", name="Why it failed, in the console").get_attribute("href")
    assert entry is not None
    await expect_entry(tab, entry)
    await page.get_by_role("link", name="API reference: Send session message by API key").click()
    await page.get_by_role("link", name="Requests in the console").click()

    await expect(page.get_by_role("table", name="Requests")).to_contain_text("POST /wa/api/v1/msg")


async def expect_entry(tab: Tab, path: str) -> None:
    """Open an entry of the request log, which is written within a second or two."""
    for _ in range(HANGS_AFTER_S):
        await tab.go(path)
        if await tab.page.locator("#problem").count():
            return
        await tab.page.wait_for_timeout(200)
    raise AssertionError(f"{path} is not in the request log")


async def test_ended_session_is_explained_on_both_sides(tabs: Tabs, console: ConsoleClient) -> None:
    tab = await tabs(SEND)
    page = tab.page
    await expect(page.get_by_label("Use the credential of")).to_be_visible()
    await console.post("/sign-out")

    await press_send(page)
    await expect(page.locator("#try-result")).to_contain_text("session has ended")
    await expect(page.get_by_label("apikey")).to_be_visible()
    await expect(page.get_by_role("link", name="Sign in")).to_have_attribute(
        "href", f"/sign-in?next={SEND.replace('/', '%2F')}"
    )
    tab.errors.clear()  # the browser reports the status 401
    await tab.go("/settings")

    await expect(page.get_by_role("status")).to_contain_text("Your session has ended")
    await page.get_by_role("button", name="Continue as the demo partner").click()
    assert page.url.endswith("/settings")


async def test_credential_is_given_to_pages_of_the_session_only(console: ConsoleClient) -> None:
    path = f"/apps/{demo.APP_ID}/try-token"
    cases: tuple[tuple[dict[str, str], int], ...] = (
        ({}, 403),
        ({"X-Waypost-CSRF": "wrong"}, 403),
        ({"X-Waypost-CSRF": await console.csrf(), "Origin": "http://evil.example"}, 403),
        ({"X-Waypost-CSRF": await console.csrf(), "Sec-Fetch-Site": "cross-site"}, 403),
        ({"X-Waypost-CSRF": await console.csrf()}, 200),
    )
    for headers, status in cases:
        async with console.http.post(console.base_url + path, headers={**headers, "X-Waypost-Quiet": "1"}) as response:
            assert response.status == status, headers
            assert status != 200 or response.headers["Cache-Control"] == "no-store"
    await console.post("/apps/01990000-0000-7000-8000-0000000000ff/try-token", status=404)


@pytest.mark.parametrize("path", [SEND, "/docs", "/docs/no-such-operation", "/docs/post-partner-app-app-id-media"])
async def test_pages_of_the_reference_are_accessible_at_every_width(tabs: Tabs, path: str) -> None:
    tab = await tabs("/settings")
    await tab.page.add_init_script(path=str(AXE))
    await tab.go(path)
    for theme in ("light", "dark"):
        for width in WIDTHS:
            await tab.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            await tab.page.set_viewport_size({"width": width, "height": 900})
            assert await tab.page.evaluate(RUN_AXE, [ALL, False]) == []
            wide = await tab.page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert wide <= 0, (width, theme)
    tab.errors.clear()  # the browser reports the status 404


async def test_request_is_sent_by_keyboard_alone(tabs: Tabs) -> None:
    tab = await tabs("/docs/get-partner-account-api-partnerApps")
    await expect(tab.page.get_by_label("Use the credential of")).to_be_visible()

    await tab.page.get_by_label("Use the credential of").focus()
    for _ in range(30):
        if await tab.page.evaluate("document.activeElement?.textContent") == "Send":
            break
        await tab.page.keyboard.press("Tab")
    await tab.page.keyboard.press("Enter")

    await expect(tab.page.locator("#try-result")).to_contain_text("200")


async def test_response_shows_its_headers_and_leads_to_the_trace(tabs: Tabs) -> None:
    tab = await tabs("/docs/post-partner-app-app-id-template-msg")
    page = tab.page
    await expect(page.get_by_label("Use the credential of")).to_be_visible()

    await press_send(page)

    result = page.locator("#try-result")
    await result.locator("summary", has_text="Response headers").click()
    await expect(result.locator("dl")).to_contain_text("content-type")
    await expect(result.get_by_role("link", name="This request in the console")).to_be_visible()
    message_id = body_of(await result.locator("pre").inner_text())["messageId"]
    await result.get_by_role("link", name="Trace of the message").click()
    await page.wait_for_url(f"**/apps/{demo.APP_ID}/messages/{message_id}")


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        ("/docs/post-partner-app-app-id-msg", "message", 'it\'s "new" & 100 % \u00e4'),
        ("/docs/post-partner-app-app-id-v3-message", "to", "+1 555 000 2001"),
        ("/docs/get-partner-app-app-id-templates", "pageSize", "5"),
    ],
)
async def test_curl_is_the_request_that_is_sent(tabs: Tabs, path: str, name: str, value: str) -> None:
    tab = await tabs(path)
    page = tab.page
    await expect(page.get_by_label("Use the credential of")).to_be_visible()
    for folded in await page.locator("#try summary").all():
        await folded.click()
    await page.locator(f"[data-name='{name}']").fill(value)
    curl = await page.locator("#sample-curl pre").inner_text()

    async with page.expect_request(lambda request: "/partner/app/" in request.url) as sent:
        await press_send(page)
    request = await sent.value

    words = shlex.split(curl.replace("\\\n", " "))
    assert words[:4] == ["curl", "-X", request.method, request.url]
    options = list(zip(words[4::2], words[5::2], strict=True))
    assert ("-H", "Authorization: $APP_TOKEN") in options
    body = request.post_data or ""
    if ("-H", "Content-Type: application/json") in options:
        assert body == dict(options)["--data-raw"]
    else:
        fields = [tuple(text.split("=", 1)) for option, text in options if option == "--data-urlencode"]
        assert parse_qsl(body) == fields
    assert value in curl or json.dumps(value) in curl or "it'\\''s" in curl
    await expect(page.locator("#try-result .status")).to_be_visible()
    tab.errors.clear()  # the browser reports a status of 400


async def test_operations_are_searched_with_the_keyboard_and_without_a_network(tabs: Tabs) -> None:
    tab = await tabs(SEND)
    page = tab.page
    links = page.get_by_role("navigation", name="Operations").get_by_role("listitem").filter(visible=True)
    everything = await links.count()
    await page.context.set_offline(True)

    await page.keyboard.press("/")
    await page.keyboard.type("template library")
    found = await links.all_inner_texts()

    assert 0 < len(found) < 6 < everything
    assert any("Create template from library" in text for text in found)
    await page.keyboard.press("Escape")
    await expect(links).to_have_count(everything)
    await page.keyboard.type("nothing like this")
    await expect(page.get_by_text("No operation matches.")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.type("post wallet transfer")
    await expect(links).to_have_count(1)
    await page.context.set_offline(False)
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/docs/post-partner-account-api-wallet-balance-transfer")


async def test_page_marks_its_operation_and_shows_try_it_at_the_top(tabs: Tabs) -> None:
    tab = await tabs("/docs/get-partner-app-app-id-payment-configurations")
    page = tab.page

    current = page.get_by_role("navigation", name="Operations").locator("[aria-current=page]")
    await expect(current).to_contain_text("List payment configurations")
    await expect(current).to_be_in_viewport(ratio=0.9)
    await expect(page.get_by_role("heading", name="Try it")).to_be_in_viewport(ratio=1)
    await expect(page.get_by_role("button", name="Send")).to_be_in_viewport(ratio=0.9)


async def test_first_page_leads_from_a_token_to_a_message(tabs: Tabs) -> None:
    tab = await tabs("/docs")

    headings = await tab.page.locator(".steps h2").all_inner_texts()

    assert headings == ["Get a token", "Send a message", "See what becomes of it"]
    await expect(tab.page.locator(".steps pre").nth(2)).to_contain_text("/template/msg")
