"""The command palette: whatever the console can show or do is a few letters away."""

import asyncio
import re
from collections.abc import Mapping

import pytest
from playwright.async_api import Dialog, Locator, Route

from tests.console.conftest import LOOP, Desk, Tab, Tabs
from waypost.assembly.dev import demo
from waypost.client.responses import ApiUnreachable, ClientResponse
from waypost.client.streaming import ClientRequestBody, StreamedResponse
from waypost.console.api_clients import ControlClient
from waypost.console.command_palette import COMMANDS, Command
from waypost.console.page_context import PageContextReader
from waypost.console.route import RouteKind
from waypost.console.routes import PAGES

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)


async def offered(tab: Tab, text: str) -> Locator:
    """Open the palette, type, and give what it offers; all of it is there a moment later."""
    await tab.page.keyboard.press("Control+k")
    await tab.page.locator("#palette-text:focus").wait_for()
    await tab.page.keyboard.type(text)
    return tab.page.locator("#palette-list li")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.name)
async def test_every_command_is_an_address_of_the_console(command: Command) -> None:
    kind = RouteKind.PAGE if command.posts is None else RouteKind.ACT
    path = command.path.partition("?")[0]

    assert [row.path for row in PAGES if row.kind is kind and row.path == path] == [path]


async def test_every_act_is_done_with_the_fields_it_has(desk: Desk) -> None:
    quiet = {"X-Waypost-Quiet": "1", "X-Waypost-Csrf": await desk.csrf()}
    statuses: dict[str, int] = {}
    for one in COMMANDS:  # signing out is the last
        if one.posts is None:
            continue
        url, fields = desk.base_url + one.path, dict(one.posts)
        async with desk.http.post(url, data=fields, headers=quiet, allow_redirects=False) as answer:
            statuses[one.name] = answer.status

    ended = statuses.pop("Sign out")
    assert len(statuses) > 5
    assert set(statuses.values()) <= {200, 204}, statuses
    assert ended == 303


async def test_command_for_each_page_that_stands_by_itself(desk: Desk) -> None:
    """Whoever adds a page adds how it is found."""
    navigation = await desk.get("/settings")
    named = {one.path.partition("?")[0] for one in COMMANDS}
    named |= {path.replace(demo.APP_ID, "{app_id}") for path in re.findall(r'href="([^"]+)" data-command', navigation)}
    alone = {row.path for row in PAGES if row.kind is RouteKind.PAGE and not re.search(r"\{(?!app_id)", row.path)}

    assert alone - named == {"/", "/sign-in"}


async def test_template_and_phone_are_found_by_name(tabs: Tabs) -> None:
    tab = await tabs()
    found = await offered(tab, "order_re")

    await found.get_by_text("order_ready").wait_for()
    await tab.page.keyboard.press("Enter")
    await tab.page.wait_for_url(f"**/templates/{demo.TEMPLATE_ID}")
    found = await offered(tab, "Ann")
    await found.get_by_text("Phone, 15550002001").wait_for()
    await tab.page.keyboard.press("Enter")
    await tab.page.wait_for_url(f"**/phones?show={demo.DESTINATION}*")
    await offered(tab, "+1 555 000 2044")
    await tab.page.keyboard.press("ArrowUp")  # what is typed stands last
    await tab.page.keyboard.press("Enter")

    await tab.page.wait_for_url("**/phones?show=15550002044*")
    await tab.page.get_by_text("+1 555 000 2044").first.wait_for()


async def test_what_was_chosen_stays_chosen_while_more_comes(tabs: Tabs) -> None:
    tab = await tabs()
    held, let_go = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        held.set()
        await let_go.wait()
        await route.continue_()

    await tab.page.route("**/commands", hold)
    found = await offered(tab, "555 000 2001")
    await held.wait()
    await tab.page.keyboard.press("ArrowUp")
    chosen = tab.page.locator("#palette-list li[aria-selected='true']")
    before = await chosen.inner_text()
    let_go.set()
    await found.get_by_text("Ann").wait_for()

    assert "Phone +5550002001" in before
    assert await chosen.inner_text() == before


async def test_clock_is_moved_from_any_page_which_stays(tabs: Tabs, desk: Desk) -> None:
    tab = await tabs(f"/apps/{desk.app_id}/messages")
    before = (await desk.control.json("GET", "/control/clock"))["now_ms"]
    found = await offered(tab, "1 hour")
    await found.get_by_text("Clock: advance 1 hour").wait_for()

    await tab.page.keyboard.press("Enter")
    await tab.page.get_by_text("The clock is at").wait_for()

    after = (await desk.control.json("GET", "/control/clock"))["now_ms"]
    assert after - before >= 3_600_000
    assert tab.page.url.endswith("/messages")


async def test_colours_are_chosen_and_the_page_comes_back(tabs: Tabs) -> None:
    tab = await tabs("/settings/keys")
    found = await offered(tab, "theme dark")
    await found.get_by_text("Theme: dark").wait_for()

    async with tab.page.expect_navigation():
        await tab.page.keyboard.press("Enter")

    assert tab.page.url.endswith("/settings/keys")
    assert await tab.page.locator("html").get_attribute("data-theme") == "dark"


async def test_faults_are_disarmed_once_that_is_confirmed(tabs: Tabs, desk: Desk) -> None:
    fault = {"on": "call", "call": "messages.send", "when": {"next": 2}, "what": {"error": 131016}}
    await desk.control.json("POST", "/control/faults", fault)
    tab = await tabs("/settings")
    asked: list[str] = []
    answers = iter((False, True))

    async def answer(dialog: Dialog) -> None:
        asked.append(dialog.message)
        await (dialog.accept() if next(answers) else dialog.dismiss())

    tab.page.on("dialog", answer)
    found = await offered(tab, "disarm")
    await found.get_by_text("Disarm all faults").wait_for()
    await tab.page.keyboard.press("Enter")
    armed = (await desk.control.json("GET", "/control/faults"))["faults"]
    await tab.page.keyboard.press("Enter")
    await tab.page.get_by_text("All faults disarmed.").wait_for()

    assert len(armed) == 1
    assert len(asked) == 2
    assert (await desk.control.json("GET", "/control/faults"))["faults"] == []


class Stuck:
    """A simulator that takes calls and never answers."""

    async def __call__(
        self, method: str, path: str, headers: Mapping[str, str], body: ClientRequestBody
    ) -> ClientResponse:
        await asyncio.sleep(60)
        raise ApiUnreachable(path)

    async def open(
        self, method: str, path: str, headers: Mapping[str, str], body: ClientRequestBody = None
    ) -> StreamedResponse:
        raise ApiUnreachable(path)


async def test_simulator_that_never_answers_holds_no_page_up(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = vars(desk.dev)["_sides"].waypost.console.services
    monkeypatch.setattr("waypost.console.page_context.CONTEXT_TIMEOUT_S", 0.05)
    monkeypatch.setattr("waypost.console.command_palette.PALETTE_PHONES_TIMEOUT_S", 0.05)
    monkeypatch.setattr(parts.apis, "control", ControlClient(Stuck()))

    shell = await PageContextReader(parts.apis.control, parts.clock).read()
    told = await desk.get("/commands")

    assert shell.has_simulator
    assert shell.faults == []
    assert "Phone, " not in told
    assert "order_ready" in told
