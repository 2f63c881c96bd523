"""Flows in the console: the list, and the editor with its checks while typing."""

import io
import json
from typing import Any, Final

import aiohttp
import pytest
from playwright.async_api import Locator, Page, expect

from tests.console.conftest import LOOP, ConsoleClient, Tab, Tabs, answer_question
from waypost.console.flows.checking import read_diagnostics
from waypost.console.flows.sample import NEW_FLOW_JSON
from waypost.flow_json.validator import MAX_FLOW_JSON_BYTES, check_flow_json

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

SELECTED: Final = "() => { const one = document.getElementById('flow-text'); return one.value.slice(one.selectionStart, one.selectionEnd); }"


async def create_flow(console: ConsoleClient, name: str = "Sign up") -> str:
    """Create a draft by the form of the list; return its path in the console."""
    response = await console.post(f"/apps/{console.app_id}/flows", {"name": name, "category": "SIGN_UP"})
    return response.headers["location"]


async def post_text(console: ConsoleClient, path: str, text: bytes) -> tuple[int, Any]:
    """Post a text as the editor's script does; return status and JSON."""
    form = aiohttp.FormData({"csrf": await console.csrf()})
    form.add_field("file", io.BytesIO(text), filename="flow.json", content_type="application/json")
    async with console.http.post(console.base_url + path, data=form, headers={"X-Waypost-Quiet": "1"}) as response:
        return response.status, await response.json()


def editor(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Flow JSON")


async def test_new_flow_is_a_valid_draft_that_the_list_shows(tabs: Tabs, console: ConsoleClient) -> None:
    tab = await tabs(f"/apps/{console.app_id}/flows")
    page = tab.page

    await page.get_by_label("Name").fill("Sign up")
    await page.get_by_label("Category").select_option("Sign up")
    await page.get_by_role("button", name="Create draft").click()

    await expect(page.get_by_role("heading", name="Sign up", level=1)).to_be_visible()
    await expect(page.get_by_role("status").filter(has_text="No errors")).to_be_visible()
    await expect(editor(page)).to_have_value(NEW_FLOW_JSON)
    await tab.go(f"/apps/{console.app_id}/flows")
    listed = page.get_by_role("link", name="Sign up")
    await expect(listed).to_contain_text("draft")
    await expect(listed).to_contain_text("Version 7.3")


async def test_name_in_use_is_refused_in_words(console: ConsoleClient) -> None:
    await create_flow(console, "Twice")

    body = {"csrf": await console.csrf(), "name": "Twice", "category": "OTHER"}
    async with console.http.post(f"{console.base_url}/apps/{console.app_id}/flows", data=body) as response:
        text = await response.text()

    assert response.status == 400
    assert "unique" in text


async def test_errors_and_warnings_come_while_typing_and_lead_to_their_lines(
    tabs: Tabs, console: ConsoleClient
) -> None:
    page = (await tabs(await create_flow(console))).page
    wrong = NEW_FLOW_JSON.replace('"TextHeading"', '"TextHeader"').replace('"Continue"', f'"{"😀" * 36}"')

    await editor(page).fill(wrong)

    errors = page.get_by_role("list").filter(has=page.locator(".is-error"))
    await expect(errors.get_by_role("link")).to_have_count(1)
    await expect(errors.get_by_role("link")).to_contain_text("Line 12")
    warnings = page.get_by_role("list").filter(has=page.locator(".is-warning"))
    await expect(warnings.get_by_role("link")).to_contain_text("at most 35 characters")
    await errors.get_by_role("link").click()
    await expect(editor(page)).to_be_focused()
    await expect(page.locator("#flow-lines .is-error")).to_have_text(["12"])
    await expect(page.locator("#flow-lines .is-warning")).to_have_text(["23"])
    assert await page.evaluate(SELECTED) == '"TextHeader"'
    await warnings.get_by_role("link").press("Enter")
    assert await page.evaluate(SELECTED) == f'"{"😀" * 36}"'


async def test_publication_is_refused_in_words_until_the_error_is_corrected(tabs: Tabs, console: ConsoleClient) -> None:
    page = (await tabs(await create_flow(console))).page
    await editor(page).fill(NEW_FLOW_JSON.replace('"terminal": true,', ""))
    await expect(page.locator("#flow-count.is-bad")).to_be_visible()

    await page.get_by_role("button", name="Publish").click()

    rejection = page.get_by_role("alert").filter(has_text="The Flow was not published.")
    await expect(rejection).to_contain_text("validation errors")
    await editor(page).fill(NEW_FLOW_JSON)
    await page.get_by_role("button", name="Publish").click()
    await expect(page.locator("#flow-head .badge")).to_have_text("published")
    await expect(rejection).to_have_count(0)

    await editor(page).fill(NEW_FLOW_JSON.replace("How can we reach you?", "Who are you?"))
    await page.keyboard.press("Control+s")
    await expect(page.locator("#flow-head .badge")).to_have_text("draft")
    await page.reload()
    await expect(editor(page)).to_have_value(NEW_FLOW_JSON.replace("How can we reach you?", "Who are you?"))


async def test_flow_is_renamed_deprecated_and_a_draft_deleted(tabs: Tabs, console: ConsoleClient) -> None:
    tab: Tab = await tabs(await create_flow(console))
    page = tab.page
    await page.get_by_text("Name and endpoint").click()
    await page.locator(".flow-details").get_by_label("Name").fill("Another name")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Another name")
    await page.get_by_role("button", name="Publish").click()
    await page.get_by_role("button", name="Deprecate").click()
    assert "never" in await answer_question(page, "Deprecate")
    await expect(page.locator("#flow-head .badge")).to_have_text("deprecated")

    await tab.go(await create_flow(console, "To delete"))
    await page.get_by_role("button", name="Delete").click()
    await answer_question(page, "Delete")
    await expect(page.get_by_role("heading", name="Flows", level=1)).to_be_visible()
    await expect(page.get_by_role("link", name="To delete")).to_have_count(0)


async def test_text_is_played_as_it_is_typed_with_a_log_of_what_happens(tabs: Tabs, console: ConsoleClient) -> None:
    tab: Tab = await tabs(await create_flow(console))
    page, phone, log = tab.page, tab.page.locator("#flow-preview"), tab.page.get_by_role("list", name="Event log")
    await expect(phone.get_by_role("heading", name="Your details")).to_be_visible()

    await editor(page).fill(NEW_FLOW_JSON.replace("How can we reach you?", "Who are you?"))
    await expect(phone.get_by_role("heading", name="Who are you?")).to_be_visible()
    await phone.get_by_label("Name").fill("Ann")
    await phone.get_by_role("button", name="Continue").click()
    await expect(phone.get_by_text("Thank you, Ann.")).to_be_visible()

    await editor(page).fill(NEW_FLOW_JSON.replace("Thank you, ", "Thanks, "))  # the screen stays, with its example
    await expect(phone.get_by_text("Thanks, Ann.")).to_be_visible()
    await editor(page).fill(NEW_FLOW_JSON.replace('"TextHeading"', '"TextHeader"'))
    await expect(page.locator("#flow-count.is-bad")).to_be_visible()
    await expect(phone.get_by_text("Thanks, Ann.")).to_be_visible()  # of the last text without errors
    await phone.get_by_role("button", name="Send").click()

    await expect(phone.get_by_text("The answers were sent.")).to_be_visible()
    await expect(log.get_by_role("listitem").filter(has_text="CONFIRM").first).to_contain_text("after DETAILS")
    await expect(log.get_by_role("listitem").last).to_contain_text('"news": false')
    await page.get_by_role("button", name="Restart").click()
    await expect(log.get_by_role("listitem").last).to_contain_text("Opened")
    assert tab.errors == []


async def test_text_is_formatted_without_another_change_than_of_spaces(tabs: Tabs, console: ConsoleClient) -> None:
    tab: Tab = await tabs(await create_flow(console))
    page = tab.page
    content = json.loads(NEW_FLOW_JSON) | {"odd": ['{"[,:]}', "\\", {}, [], [1]]}

    await editor(page).fill(json.dumps(content, separators=(",", ":"), ensure_ascii=False))
    await page.get_by_role("button", name="Format").click()
    await expect(editor(page)).to_have_value(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    await editor(page).fill('{"a":1,"a":2 3,"open')
    await page.get_by_role("button", name="Format").click()
    await expect(editor(page)).to_have_value('{\n  "a": 1,\n  "a": 2 3,\n  "open\n')
    assert tab.errors == []


async def test_preview_of_another_flow_is_not_found(console: ConsoleClient) -> None:
    path, other = await create_flow(console, "One"), await create_flow(console, "Other")
    form = aiohttp.FormData({"csrf": await console.csrf(), "step": "open"})
    form.add_field("file", NEW_FLOW_JSON.encode(), filename="flow.json", content_type="application/json")
    headers = {"X-Waypost-Quiet": "1"}
    async with console.http.post(f"{console.base_url}{path}/play", data=form, headers=headers) as response:
        assert response.status == 200
        session = (await response.text()).partition("session=")[2].partition("\\")[0]

    assert "pieces" in await console.reveal(f"{path}/play?session={session}", {"step": "refresh"})
    for address in (f"{other}/play?session={session}", f"{path}/play?session=1", f"{path}/play"):
        body = {"csrf": await console.csrf(), "step": "refresh"}
        async with console.http.post(console.base_url + address, data=body, headers=headers) as response:
            assert response.status == 404, address


async def test_flow_of_nobody_is_not_found(console: ConsoleClient) -> None:
    for flow_id in ("123", "x", "..%2F1"):
        await console.get(f"/apps/{console.app_id}/flows/{flow_id}", status=404)


@pytest.mark.parametrize(
    ("text", "status", "says"),
    [
        (b"\xff\xfe", 403, "not UTF-8"),
        (b" " * (MAX_FLOW_JSON_BYTES + 1), 403, "more than 10 MB"),
        (b"[" * 200_000, 200, "1 error"),
        (b"{}", 200, "1 error"),
        (b"", 200, "1 error"),
        (json.dumps({"version": "7.3", "screens": ["<b>"] * 5000}).encode(), 200, "200 errors"),
    ],
    ids=["not UTF-8", "too large", "deep", "empty object", "empty", "many errors"],
)
async def test_any_text_gets_an_answer(shared_console: ConsoleClient, text: bytes, status: int, says: str) -> None:
    responded, data = await post_text(shared_console, f"/apps/{shared_console.app_id}/flows/check", text)

    assert responded == status
    assert says in json.dumps(data)
    assert "<b>" not in json.dumps(data)


async def test_operator_errors_without_places_are_shown_at_the_first_line() -> None:
    [one] = read_diagnostics(
        [{"error": "X", "error_type": "Y", "message": "Wrong.", "line_start": None, "pointers": "?"}]
    )

    assert (one.line, one.column, one.place, one.message) == (1, 1, "", "Wrong.")


async def test_sample_is_valid() -> None:
    checked = check_flow_json(NEW_FLOW_JSON)

    assert (checked.errors, checked.warnings) == ([], [])
