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
    await user.press(page.get_by_role("table", name="Requests").get_by_role("link").first)

    problem = page.locator("#problem")
    await expect(problem).to_contain_text("destination")
    await expect(problem).to_contain_text("What would be accepted")
    await expect(problem).to_contain_text("8 to 15 digits")
    await expect(page.locator("#summary")).to_contain_text("three-clicks")
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
    assert f"message={TEXT}" in words
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


async def test_page_of_a_request_shows_its_form_and_its_response_with_headers(
    tabs: Tabs, console: ConsoleClient
) -> None:
    tab = await tabs(await fail_to_send(console, "with-response"))

    terms = await tab.page.locator(".req-fields dt").all_text_contents()
    values = await tab.page.locator(".req-fields dd").all_text_contents()

    shown = dict(zip(terms, values, strict=True))
    assert shown["destination"] == "12"
    assert shown["message"] == TEXT
    assert shown["content-type"] == "application/json"
    assert shown["x-request-id"] == "with-response"
    await expect(tab.page.locator("main")).to_contain_text('"status": "error"')


async def test_every_accepted_request_is_listed_with_its_response_and_its_trace(console: ConsoleClient) -> None:
    message_id = await console.send_text("Find me in the log")

    async def find() -> str:
        found = re.findall(r'href="(/requests/[0-9a-f-]+)"', await console.get("/requests?status=2xx&route=/msg"))
        return await console.get(found[0]) if found else ""

    page = await poll_until(find, lambda text: message_id in text)

    assert "Send session message" in page
    assert f"&#34;messageId&#34;: &#34;{message_id}&#34;" in page
    assert f"/messages/{message_id}" in page
    assert "Find me in the log" in page


async def test_what_would_be_accepted_is_said_once(console: ConsoleClient) -> None:
    form = {"url": "https://example.com/", "tag": "x" * 200, "version": "3", "modes": "ALL"}
    headers = {"Authorization": console.running.variables["APP_TOKEN"], "X-Request-Id": "too-long"}
    url = f"{console.base_url}/partner/app/{demo.APP_ID}/subscription"
    async with console.http.post(url, data=form, headers=headers) as response:
        assert response.status == 400

    async def find() -> str:
        return await console.get("/requests?id=too-long")

    page = await poll_until(find, lambda text: "What would be accepted" in text)

    accepted = page.partition("What would be accepted:")[2].partition("</p>")[0]
    assert accepted.count("at most 180 characters") == 1
