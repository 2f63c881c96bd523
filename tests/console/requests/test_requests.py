"""The request log in the console: why a request failed, in three clicks; and whose requests are shown."""

import re
import shlex
from typing import Final

import pytest
from playwright.async_api import expect

from tests.console.conftest import LOOP, ConsoleClient, Tabs
from tests.console.support.input_methods import INPUT_METHODS
from tests.support.polling import HANGS_AFTER_S, poll_until
from waypost.assembly.dev import demo

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

TEXT: Final = "words that nobody else may read"


async def fail_to_send(console: ConsoleClient, request_id: str) -> str:
    """Send a text to no number; return the path of the request in the log."""
    form = {
        "channel": "whatsapp",
        "source": demo.SOURCE,
        "src.name": demo.APP_NAME,
        "destination": "12",
        "message": TEXT,
    }
    headers = {"Authorization": console.running.variables["APP_TOKEN"], "X-Request-Id": request_id}
    url = f"{console.base_url}/partner/app/{demo.APP_ID}/msg"
    async with console.http.post(url, data=form, headers=headers) as response:
        assert response.status == 400
        assert response.headers["X-Request-Id"] == request_id

    async def find() -> str:
        async with console.http.get(f"{console.base_url}/requests?id={request_id}", allow_redirects=False) as found:
            return found.headers.get("Location", "")

    return await poll_until(find, bool)


@pytest.mark.parametrize("method", INPUT_METHODS)
async def test_why_a_request_failed_is_found_in_three_clicks(tabs: Tabs, console: ConsoleClient, method: str) -> None:
    user = INPUT_METHODS[method]
    await fail_to_send(console, "three-clicks")
    tab = await tabs("/")
    page = tab.page
    page.set_default_timeout(HANGS_AFTER_S * 1000)

    await user.press(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Messages"))
    await user.press(page.get_by_role("link", name="API requests"))
    await user.press(page.get_by_role("list", name="Requests").get_by_role("link").first)

    problem = page.locator("#problem")
    await expect(problem).to_contain_text("destination")
    await expect(problem).to_contain_text("What would be accepted")
    await expect(problem).to_contain_text("8 to 15 digits")
    await expect(page.locator("#summary")).to_contain_text("three-clicks")
    assert TEXT not in await page.content()
    assert not tab.errors


async def test_request_is_copied_as_curl_with_placeholders(console: ConsoleClient) -> None:
    path = await fail_to_send(console, "as-curl")

    page = await console.get(path)

    command = re.search(r"<pre tabindex=\"0\">(curl .*?)</pre>", page, re.DOTALL)
    assert command is not None
    words = shlex.split(command[1].replace("\\\n", " ").replace("&#39;", "'").replace("&#34;", '"'))
    assert words[:4] == ["curl", "-X", "POST", f"{console.base_url}/partner/app/{demo.APP_ID}/msg"]
    assert "Authorization: $APP_TOKEN" in words
    assert "destination=12" in words
    assert f"message=({len(TEXT)} characters)" in words
    assert console.running.variables["APP_TOKEN"] not in page


@pytest.mark.parametrize(
    ("query", "is_listed"),
    [("status=4xx", True), ("status=5xx", False), ("route=/msg", True), ("route=/template", False),
     (f"app={demo.APP_ID}", True), ("app=another", False), ("id=by-filter", True), ("before=0", False)],
)  # fmt: skip
async def test_filters_of_the_list(console: ConsoleClient, query: str, is_listed: bool) -> None:
    path = await fail_to_send(console, "by-filter")

    page = await console.get(f"/requests?{query}")

    assert (path in page or "by-filter</code>" in page) is is_listed


async def test_unknown_request_is_not_found(console: ConsoleClient) -> None:
    await console.get("/requests/01990000-0000-7000-8000-000000000000", status=404)
