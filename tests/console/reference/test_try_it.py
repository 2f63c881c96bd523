"""The API reference beside the console: "Try it" with the session's credential or a typed one, and the links between."""

import json
from typing import Any, Final

import pytest
from playwright.async_api import Page, Request, expect

from tests.console.conftest import LOOP, ConsoleClient, Tab, Tabs
from tests.console.test_accessibility import AXE, AXE_TAGS, RUN_AXE
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
    await page.get_by_role("link", name="API reference: POST /wa/api/v1/msg").click()
    await page.get_by_role("link", name="Requests in the console").click()

    await expect(page.get_by_role("list", name="Requests")).to_contain_text("POST /wa/api/v1/msg")


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
            assert await tab.page.evaluate(RUN_AXE, {"type": "tag", "values": AXE_TAGS}) == []
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
