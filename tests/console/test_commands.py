"""The command palette: it finds every page and action by a few letters."""

import asyncio
import re
from collections.abc import Mapping

import pytest
from playwright.async_api import Locator, Route, expect

from tests.console.conftest import LOOP, ConsoleClient, Tab, Tabs
from waypost.assembly.dev import demo
from waypost.client.responses import ApiUnreachable, ClientResponse
from waypost.client.transports import ClientRequestBody, StreamedResponse
from waypost.console.api_clients import ControlClient
from waypost.console.page_tools import Command, PageContextReader
from waypost.console.route import RouteKind
from waypost.console.routes import COMMANDS, PAGES

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)


async def search_palette(tab: Tab, text: str) -> Locator:
    """Open the palette, type, and return its results, which are complete a moment later."""
    await tab.page.keyboard.press("Control+k")
    await tab.page.locator("#palette-text:focus").wait_for()
    await tab.page.keyboard.type(text)
    return tab.page.locator("#palette-list li")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
async def test_every_command_is_a_route_of_the_console(command: Command) -> None:
    kind = RouteKind.PAGE if command.posts is None else RouteKind.ACT
    path = re.split(r"[?#]", command.path)[0]

    assert [row.path for row in PAGES if row.kind is kind and row.path == path] == [path]


async def test_every_command_that_posts_has_the_fields_of_its_action(console: ConsoleClient) -> None:
    quiet = {"X-Waypost-Quiet": "1", "X-Waypost-Csrf": await console.csrf()}
    statuses: dict[str, int] = {}
    for command in COMMANDS:  # signing out is the last
        if command.posts is None:
            continue
        url, fields = console.base_url + command.path, dict(command.posts)
        async with console.http.post(url, data=fields, headers=quiet, allow_redirects=False) as response:
            statuses[command.name] = response.status

    signed_out = statuses.pop("Sign out")
    assert len(statuses) > 5
    assert set(statuses.values()) <= {200, 204}, statuses
    assert signed_out == 303


async def test_every_page_without_parameters_has_a_command(console: ConsoleClient) -> None:
    """A new page needs a command."""
    navigation = await console.get("/settings")
    commands = {re.split(r"[?#]", command.path)[0] for command in COMMANDS}
    commands |= {
        path.replace(demo.APP_ID, "{app_id}") for path in re.findall(r'href="([^"]+)" data-command', navigation)
    }
    pages = {row.path for row in PAGES if row.kind is RouteKind.PAGE and not re.search(r"\{(?!app_id)", row.path)}

    assert pages - commands == {"/", "/sign-in"}


async def test_template_and_phone_are_found_by_name(tabs: Tabs) -> None:
    tab = await tabs()
    results = await search_palette(tab, "order_re")

    await results.get_by_text("order_ready").wait_for()
    await tab.page.keyboard.press("Enter")
    await tab.page.wait_for_url(f"**/templates/{demo.TEMPLATE_ID}")
    results = await search_palette(tab, "Ann")
    await results.get_by_text("Phone, 15550002001").wait_for()
    await tab.page.keyboard.press("Enter")
    await tab.page.wait_for_url(f"**/phones?show={demo.DESTINATION}*")
    await search_palette(tab, "+1 555 000 2044")
    await tab.page.keyboard.press("ArrowUp")  # the typed number is the last result
    await tab.page.keyboard.press("Enter")

    await tab.page.wait_for_url("**/phones?show=15550002044*")
    await tab.page.get_by_text("+1 555 000 2044").first.wait_for()


async def test_selection_is_kept_while_more_results_arrive(tabs: Tabs) -> None:
    tab = await tabs()
    requested, released = asyncio.Event(), asyncio.Event()

    async def delay(route: Route) -> None:
        requested.set()
        await released.wait()
        await route.continue_()

    await tab.page.route("**/commands", delay)
    results = await search_palette(tab, "555 000 2001")
    await requested.wait()
    await tab.page.keyboard.press("ArrowUp")
    chosen = tab.page.locator("#palette-list li[aria-selected='true']")
    before = await chosen.inner_text()
    released.set()
    await results.get_by_text("Phone, 15550002001").wait_for()
    await results.get_by_text("Conversation, +1 555 000 2001").wait_for()  # from the server, before or after the phones

    assert "Phone +5550002001" in before
    assert await chosen.inner_text() == before


async def test_clock_can_be_advanced_without_leaving_a_page(tabs: Tabs, console: ConsoleClient) -> None:
    tab = await tabs(f"/apps/{console.app_id}/messages")
    before = (await console.control.json("GET", "/control/clock"))["now_ms"]
    results = await search_palette(tab, "1 hour")
    await results.get_by_text("Clock: advance 1 hour").wait_for()

    await tab.page.keyboard.press("Enter")
    await tab.page.get_by_text("The clock is at").wait_for()

    after = (await console.control.json("GET", "/control/clock"))["now_ms"]
    assert after - before >= 3_600_000
    assert tab.page.url.endswith("/messages")


async def test_theme_is_changed_and_the_page_reloaded(tabs: Tabs) -> None:
    tab = await tabs("/settings/keys")
    results = await search_palette(tab, "theme dark")
    await results.get_by_text("Theme: dark").wait_for()

    async with tab.page.expect_navigation():
        await tab.page.keyboard.press("Enter")

    assert tab.page.url.endswith("/settings/keys")
    assert await tab.page.locator("html").get_attribute("data-theme") == "dark"


async def test_faults_are_disarmed_only_after_confirmation(tabs: Tabs, console: ConsoleClient) -> None:
    fault = {"on": "call", "call": "messages.send", "when": {"next": 2}, "what": {"error": 131016}}
    await console.control.json("POST", "/control/faults", fault)
    tab = await tabs("/settings")
    results = await search_palette(tab, "disarm")
    await results.get_by_text("Disarm all faults").wait_for()
    await tab.page.keyboard.press("Enter")
    question = tab.page.get_by_role("alertdialog")
    await expect(question).to_contain_text("Disarm all")
    await tab.page.keyboard.press("Escape")
    await expect(question).to_have_count(0)
    armed = (await console.control.json("GET", "/control/faults"))["faults"]
    await tab.page.keyboard.press("Enter")
    await expect(question.get_by_role("button", name="Disarm all faults")).to_be_focused()
    await tab.page.keyboard.press("Enter")
    await tab.page.get_by_text("All faults disarmed.").wait_for()

    assert len(armed) == 1
    assert (await console.control.json("GET", "/control/faults"))["faults"] == []


class UnresponsiveSimulator:
    """A simulator that accepts calls and never responds."""

    async def __call__(
        self, method: str, path: str, headers: Mapping[str, str], body: ClientRequestBody
    ) -> ClientResponse:
        await asyncio.sleep(60)
        raise ApiUnreachable(path)

    async def open(
        self, method: str, path: str, headers: Mapping[str, str], body: ClientRequestBody = None
    ) -> StreamedResponse:
        raise ApiUnreachable(path)


async def test_simulator_that_never_responds_delays_no_page(
    console: ConsoleClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = vars(console.dev)["_sides"].waypost.console.services
    monkeypatch.setattr("waypost.console.page_tools.CONTEXT_TIMEOUT_S", 0.05)
    monkeypatch.setattr("waypost.console.palette.PALETTE_PHONES_TIMEOUT_S", 0.05)
    monkeypatch.setattr(services.apis, "control", ControlClient(UnresponsiveSimulator()))

    context = await PageContextReader(services.apis.control, services.clock).read()
    page = await console.get("/commands")

    assert context.has_simulator
    assert context.faults == []
    assert "Phone, " not in page
    assert "order_ready" in page
