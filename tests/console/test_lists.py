"""What one list of the console can do all can: wrong filters, exports, selection, live rows, and table headers."""

import csv
import io
import re
from typing import Final

import pytest
from playwright.async_api import expect

from tests.console.conftest import LOOP, ConsoleClient, Tabs
from tests.support.callback_sink import CallbackSink
from tests.support.polling import poll_until
from waypost.assembly.dev import demo
from waypost.console.callbacks.deliveries import DELIVERIES
from waypost.console.conversations.listing import CONVERSATIONS
from waypost.console.lists import ListPage
from waypost.console.messages.listing import MESSAGES, RECEIVED
from waypost.console.requests import REQUESTS
from waypost.console.settings.audit import AUDIT

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

LISTS: Final = (MESSAGES, RECEIVED, CONVERSATIONS, DELIVERIES, REQUESTS, AUDIT)
WRONG: Final = (  # list, a wrong filter, its field, and what the field accepts
    (MESSAGES, "state=gone", "state", "Accepted: Accepted, Uncertain, Enqueued, Sent, "),
    (RECEIVED, "time=ever", "time", "Accepted: Any time, Last hour, "),
    (CONVERSATIONS, "state=gone", "state", "Accepted: Unread, Window open, Last message failed."),
    (DELIVERIES, "subscription=one", "subscription", "Accepted: the number of one of this app."),
    (DELIVERIES, "to=tomorrow", "to", "Use the format 2026-11-22T14:05."),
    (REQUESTS, "status=9xx", "status", "Accepted: 2xx, 3xx, 4xx, 5xx, or one status such as 404."),
    (AUDIT, "outcome=maybe", "outcome", "Accepted: done, rejected."),
    (AUDIT, "from=then", "from", "Use the format 2026-11-22T14:05."),
)


def path_of(page: ListPage) -> str:
    return page.path.format(app_id=demo.APP_ID)


async def fill_lists(console: ConsoleClient) -> None:
    """Cause a row of each list: a message, its callback, a request, an action and a message of a phone."""
    sink = CallbackSink()
    await sink.open()
    form = {"modes": "SENT", "tag": "orders", "version": "2", "url": sink.url, "doCheck": "false"}
    await console.api.form("POST", f"/partner/app/{console.app_id}/subscription", form)
    body = {"to": demo.SOURCE, "text": "Hello"}
    await console.control.json("POST", f"/control/phones/{console.phone}/messages", body)
    await console.send_text("Good morning")
    await sink.wait_until(lambda: bool(sink.accepted))
    await console.post(f"/apps/{console.app_id}/settings/token", status=200)
    for page in LISTS:
        await poll_until(lambda page=page: console.get(path_of(page)), lambda text: "data-place" in text)
    await sink.close()


@pytest.mark.parametrize(("page", "query", "field", "accepted"), WRONG)
async def test_wrong_filter_is_explained_at_its_field(
    shared_console: ConsoleClient, page: ListPage, query: str, field: str, accepted: str
) -> None:
    text = await shared_console.get(f"{path_of(page)}?{query}")

    hint = re.search(rf'<p class="hint" id="h-{field}">([^<]*)</p>', text)
    assert hint is not None
    assert accepted in hint[1]
    assert 'aria-invalid="true"' in text
    await shared_console.get(f"{path_of(page)}/export?{query}", status=400)
    await shared_console.get(f"{path_of(page)}/more?{query}")


async def test_every_list_exports_its_rows_and_those_that_are_selected(console: ConsoleClient) -> None:
    await fill_lists(console)

    for page in LISTS:
        text = await console.get(path_of(page))
        [row_id, *_] = re.findall(r'name="id" value="([^"]+)"', text)
        exported = list(csv.DictReader(io.StringIO(await console.get(f"{path_of(page)}/export"))))
        response = await console.post(f"{path_of(page)}/selected/export", {"id": row_id}, status=200)
        selected = list(csv.DictReader(io.StringIO(await response.text())))

        assert list(exported[0]) == list(page.export), page.name
        assert len(exported) >= text.count("data-place"), page.name
        assert len(selected) == 1, page.name
        assert selected[0] in exported, page.name
        await console.post(f"{path_of(page)}/selected/export", status=403)


async def test_every_list_has_headers_selection_and_saved_filters(tabs: Tabs, console: ConsoleClient) -> None:
    await fill_lists(console)
    tab = await tabs()

    for page in LISTS:
        await tab.go(path_of(page))
        table = tab.page.get_by_role("table", name=page.title)
        for column in page.columns:
            await expect(table.get_by_role("columnheader", name=column, exact=True)).to_have_count(1)
        row = tab.page.locator("#rows > div").first
        await expect(row.get_by_role("cell")).to_have_count(len(page.columns) + 1)
        await tab.page.keyboard.press("j")
        await tab.page.keyboard.press("x")
        await expect(tab.page.locator("#picked").get_by_role("status")).to_have_text("1 selected")
        await expect(tab.page.locator("details.saved")).to_be_visible()
        await tab.page.keyboard.press("/")
        await expect(tab.page.locator("#filter input[data-search]")).to_be_focused()


async def test_every_list_shows_new_rows_without_reloading(tabs: Tabs, console: ConsoleClient) -> None:
    await fill_lists(console)
    shown = {page.name: await tabs(path_of(page)) for page in LISTS}
    counts = {name: await tab.page.locator("#rows > div").count() for name, tab in shown.items()}

    body = {"to": demo.SOURCE, "text": "Hello again"}
    await console.control.json("POST", f"/control/phones/{demo.PHONES[1][0]}/messages", body)
    await console.send_text("And again")
    await console.post(f"/apps/{console.app_id}/settings/token", status=200)

    for name, tab in shown.items():
        if name == DELIVERIES.name:
            continue  # its receiver is gone: its row is `Blocked`, in the test of that list
        await expect(tab.page.locator("#rows > div").nth(counts[name])).to_be_attached()


async def test_time_of_a_row_opens_it_as_the_rest_of_the_row_does(tabs: Tabs, console: ConsoleClient) -> None:
    message_id = await console.send_text("Click the time")
    tab = await tabs(path_of(MESSAGES))

    await tab.page.locator(f"#m-{message_id} time").click()

    await tab.page.wait_for_url(f"**/messages/{message_id}")
