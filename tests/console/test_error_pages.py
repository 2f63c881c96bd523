"""Error pages: what happened, what to do next, one heading, no axe finding."""

from typing import Final

import pytest
from playwright.async_api import expect

from tests.console.conftest import LOOP, ConsoleClient, Tab, Tabs
from tests.console.test_accessibility import ALL, AXE, RUN_AXE
from waypost.assembly.dev import demo

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)


async def find_links(tab: Tab) -> list[str | None]:
    """Return the targets of the buttons of an error page."""
    return [await link.get_attribute("href") for link in await tab.page.locator("main a.button").all()]


# fmt: off
UNKNOWN: Final = (
    # path                    signed in   links
    ("/nothing-here",         True,       ("/docs", "/")),
    ("/nothing-here",         False,      ("/docs", "/sign-in")),
    ("/requests/none",        True,       ("/docs", "/")),
    ("/partner/app/x/nothing", False,     ("/docs", "/sign-in")),
)
# fmt: on


@pytest.mark.parametrize(("path", "signed_in", "links"), UNKNOWN)
async def test_unknown_address_is_a_page_for_a_browser(
    tabs: Tabs, console: ConsoleClient, path: str, signed_in: bool, links: tuple[str, ...]
) -> None:
    tab = await tabs("/sign-in", signed_in=signed_in)
    await tab.page.add_init_script(path=str(AXE))
    await tab.go(path)
    async with console.http.get(console.base_url + path, headers={"Accept": "application/json"}) as response:
        is_page = path.startswith("/requests")
        assert response.status == 404
        assert (response.content_type == "application/json") is not is_page

    assert await find_links(tab) == list(links)
    await expect(tab.page.locator("main")).to_contain_text("not found")
    assert await tab.page.evaluate(RUN_AXE, [ALL, False]) == []
    tab.errors.clear()  # the browser reports the status 404


async def test_form_of_an_ended_session_leads_back_to_its_page(tabs: Tabs) -> None:
    tab = await tabs("/settings/password")
    await tab.page.evaluate("document.querySelector('form[action=\"/sign-out\"] [name=csrf]').value = 'old'")

    await tab.page.get_by_role("button", name="Sign out").click()

    await expect(tab.page.get_by_role("heading", level=1)).to_contain_text("out of date")
    assert await find_links(tab) == ["/settings/password", "/"]
    tab.errors.clear()  # the browser reports the status 403


async def test_ended_session_is_named_at_the_sign_in_and_leads_on(tabs: Tabs, console: ConsoleClient) -> None:
    path = f"/apps/{demo.APP_ID}/messages?state=failed"
    tab = await tabs(path)
    await console.post("/sign-out")

    await tab.go(path)
    await expect(tab.page.get_by_role("status")).to_contain_text("Your session has ended")
    await tab.page.get_by_role("button", name="Continue as the demo partner").click()

    assert tab.page.url == console.base_url + path


async def test_first_visit_is_not_an_ended_session(tabs: Tabs) -> None:
    tab = await tabs("/settings", signed_in=False)

    await expect(tab.page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert "has ended" not in await tab.page.content()
