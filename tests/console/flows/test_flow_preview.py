"""The preview link of a Flow: without a sign-in, for 30 days, and nothing but what the link allows."""

import json
import re
from collections.abc import AsyncGenerator
from itertools import count
from typing import Any, Final
from urllib.parse import quote

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.console.conftest import LOOP, ConsoleClient, close_console, open_console
from tests.console.flows.test_flow_player import HEADERS, graph
from tests.console.support.flow_samples import ALL_COMPONENTS
from tests.console.test_accessibility import AXE, VARIANTS
from tests.support.polling import HANGS_AFTER_S
from waypost.assembly.dev import demo
from waypost.base.clock import DAY_MS, VirtualClock

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

_numbers: Final = count(1)
GREETING: Final[dict[str, Any]] = {
    "version": "7.3",
    "screens": [
        {
            "id": "HELLO", "title": "Hello", "terminal": True, "success": True,
            "data": {"who": {"type": "string", "__example__": "example"}},
            "layout": {"type": "SingleColumnLayout", "children": [
                {"type": "TextBody", "text": "`'Hello ' ${data.who}`"},
                {"type": "Footer", "label": "Done", "on-click-action": {"name": "complete", "payload": {"who": "${data.who}"}}}]},
        }
    ],
}  # fmt: skip


@pytest_asyncio.fixture(loop_scope=LOOP)
async def page(browser: Browser) -> AsyncGenerator[Page]:
    """A tab of somebody who is not signed in; fails at the end if it had an error or an external request."""
    context = await browser.new_context(viewport={"width": 1200, "height": 900})
    await context.add_init_script(path=str(AXE))
    page = await context.new_page()
    page.set_default_timeout(HANGS_AFTER_S * 1000)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if "Content Security" in message.text else None)
    yield page
    await context.close()
    assert problems == []


async def preview_url(console: ConsoleClient, content: dict[str, Any]) -> str:
    """Create a flow; return the link that the Graph API has for its preview."""
    flow = {"name": f"flow {next(_numbers)}", "categories": ["OTHER"], "flow_json": json.dumps(content)}
    flow_id = (await graph(console, f"{demo.WABA_ID}/flows", flow))["id"]
    url = f"{console.running.graph_url}/{demo.GRAPH_VERSION}/{flow_id}?fields=preview.invalidate(false)"
    async with console.http.get(url, headers=HEADERS) as response:
        return (await response.json())["preview"]["preview_url"]


async def test_screens_are_shown_with_their_examples_and_not_played(console: ConsoleClient, page: Page) -> None:
    url = await preview_url(console, ALL_COMPONENTS)
    await page.goto(url)

    await expect(page.get_by_text("Fresh bread, every morning")).to_be_visible()
    await page.get_by_role("link", name="ORDER").click()
    await expect(page.locator("[data-title]")).to_have_text("Your order")
    assert await page.locator("[data-step]").first.evaluate("(one) => Boolean(one.closest('[inert]'))")
    await page.goto(await preview_url(console, GREETING))
    await expect(page.get_by_text("Hello example")).to_be_visible()


async def test_interactive_preview_is_played_with_its_parameters_and_a_log(console: ConsoleClient, page: Page) -> None:
    url = await preview_url(console, GREETING)
    payload = quote(json.dumps({"screen": "HELLO", "data": {"who": "Ann"}}))
    await page.goto(
        f"{url}&interactive=true&debug=true&flow_token=t-1&flow_action=navigate&flow_action_payload={payload}"
    )

    await expect(page.get_by_text("Hello Ann")).to_be_visible()
    await page.get_by_role("button", name="Done").click()
    await expect(page.get_by_text("The answers were sent.")).to_be_visible()
    log = page.get_by_role("list", name="Event log")
    await expect(log).to_contain_text('"flow_token": "t-1"')
    await expect(log).to_contain_text('"who": "Ann"')
    alone = quote(json.dumps({"who": "Ben"}))
    await page.goto(f"{url}&interactive=true&flow_action_payload={alone}")
    await expect(page.get_by_text("Hello Ben")).to_be_visible()
    await expect(page.get_by_role("list", name="Event log")).to_have_count(0)


async def test_preview_has_no_axe_violation_in_either_theme_at_any_width(console: ConsoleClient, page: Page) -> None:
    url = await preview_url(console, ALL_COMPONENTS)
    violations: list[Any] = []

    for address in (url, f"{url}&interactive=true&debug=true", url.replace("hash=", "hash=0")):
        await page.goto(address)
        await page.locator("[data-title], [role=alert]").first.wait_for()
        for theme, width, rules in VARIANTS:
            await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            await page.set_viewport_size({"width": width, "height": 844})
            found = await page.evaluate("async (runOnly) => (await axe.run(document, { runOnly })).violations", rules)
            violations += [(address, theme, width, one["id"], one["nodes"][0]["html"]) for one in found]
            violations += await page.evaluate(
                "() => document.documentElement.scrollWidth > innerWidth ? ['scrolls sideways'] : []"
            )

    assert violations == []


PLAYED: Final = "&interactive=true"


@pytest.mark.parametrize(
    ("pattern", "changed", "status", "says"),
    [
        ("hash=", "hash=0", 403, "not valid"),
        ("ext=", "ext=9", 403, "not valid"),
        (r"\?.*", "", 403, "not valid"),
        ("/flows/", "/flows/1", 404, "no Flow behind this link"),
        ("$", f"{PLAYED}&flow_action=fly", 400, "flow_action must be one of navigate, data_exchange"),
        ("$", f"{PLAYED}&flow_action_payload=[1]", 400, "flow_action_payload must be a JSON object"),
        ("$", f"{PLAYED}&flow_action_payload={'[' * 1000}", 400, "flow_action_payload must be"),
        ("$", f"{PLAYED}&phone_number=1555", 400, "phone_number must be a number"),
        ("$", f"{PLAYED}&flow_token={'t' * 2000}", 400, "flow_token"),
        ("$", "&screen=%3Cb%3E", 200, ""),
    ],
    ids=[
        "forged", "longer", "no link", "another flow", "action", "payload", "deep payload", "number", "token", "unknown screen",
    ],
)  # fmt: skip
async def test_link_that_allows_nothing_is_explained(
    shared_console: ConsoleClient, pattern: str, changed: str, status: int, says: str
) -> None:
    url = await preview_url(shared_console, GREETING)

    async with shared_console.http.get(re.sub(pattern, changed, url, count=1)) as response:
        text = await response.text()

    assert response.status == status
    assert says in text
    assert "<b>" not in text


async def test_session_of_one_link_is_not_played_by_another(console: ConsoleClient) -> None:
    one, other = await preview_url(console, GREETING), await preview_url(console, ALL_COMPONENTS)
    steps = [url.replace("/preview/?", "/preview/steps?") for url in (one, other)]
    async with console.http.post(steps[0], data={"step": "open"}) as response:
        opened = await response.text()
    session = opened.partition("session=")[2].partition("\\")[0].partition('"')[0]

    responses: list[int] = []
    for address in (f"{steps[0]}&session={session}", f"{steps[1]}&session={session}", f"{steps[0]}&session=1"):
        async with console.http.post(address, data={"step": "refresh"}) as response:
            responses.append(response.status)
    for data in ({"step": "fly"}, {f"name{n}": "x" for n in range(50)}, {"step": "fill", "name": "x" * 200_000}):
        async with console.http.post(f"{steps[0]}&session={session}", data=data) as response:
            responses.append(response.status)

    assert responses == [200, 404, 404, 400, 400, 413]


async def test_link_ends_after_thirty_days(tmp_path: Any, demo_data: Any) -> None:
    console = await open_console(tmp_path, demo_data=demo_data, clock=VirtualClock())
    url = await preview_url(console, GREETING)
    for advanced_days, status in ((29, 200), (2, 403)):
        await console.control.json("POST", "/control/clock/advance", {"ms": advanced_days * DAY_MS})
        async with console.http.get(url) as response:
            assert response.status == status
    await close_console(console)
