"""What is happening now."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, insert, update

from tests.console.conftest import LOOP, Desk, Tabs
from waypost.assembly.dev import demo
from waypost.base.clock import MINUTE_MS
from waypost.console.overview.minute_counts import MAX_NEWEST_READ, MinuteCounts, count_in_states
from waypost.console.services import ConsoleServices
from waypost.domain.app import BusinessAccount
from waypost.store.accounts.credentials import CredentialKind, add_credential
from waypost.store.accounts.partners import add_business_account
from waypost.store.console.overview import MinuteCount, StoredMinuteCounts
from waypost.store.database import Database
from waypost.store.queue.jobs import JobState, QueueName
from waypost.store.tables import queue_jobs, subscriptions, templates

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

NOW_MS = 1_760_000_000_000
CLOSED = "15559990001"
"""Somebody who has never written, so that free text fails."""


def parts_of(desk: Desk) -> ConsoleServices:
    """What is below the doors, for what no door brings about."""
    return vars(desk.dev)["_sides"].waypost.console.services


def store_of(desk: Desk) -> Database:
    """The store alone."""
    return parts_of(desk).database


async def until(is_so: Callable[[], Any], *, tries: int = 100) -> None:
    """Wait for what takes the stages a moment."""
    for _ in range(tries):
        if await is_so():
            return
        await asyncio.sleep(0.05)
    pytest.fail("it did not become so")


async def test_message_appears_on_the_overview_while_it_is_open(tabs: Tabs, desk: Desk) -> None:
    tab = await tabs("/")
    assert await tab.page.title() == "Overview · Waypost"

    await desk.send_text("Good morning")

    await tab.page.locator("#newest").get_by_text("delivered").first.wait_for()
    await tab.page.locator("#totals .tile", has_text="Delivered").get_by_text("1").wait_for()
    await tab.page.locator("#hour-chart .chart-bar rect.tone-info").first.wait_for()


async def test_newcomer_is_led_from_the_first_message_to_the_callback(tabs: Tabs, desk: Desk) -> None:
    tab = await tabs("/")
    steps = tab.page.locator("#steps .step")

    await tab.page.get_by_role("button", name="Send template").click()
    await tab.page.wait_for_url("**/phones?show=*")
    await tab.go("/")
    await steps.nth(0).get_by_text("Sent.").wait_for()
    await desk.control.json("POST", f"/control/phones/{desk.phone}/messages", {"to": demo.SOURCE, "text": "Yes"})

    await steps.nth(1).get_by_text("Reply received.").wait_for()
    assert await steps.nth(2).get_by_role("link", name="Open Callbacks").is_visible()


async def test_newest_messages_say_which_template_or_which_kind_they_are(desk: Desk) -> None:
    fields = {
        "channel": "whatsapp", "source": demo.SOURCE, "destination": demo.DESTINATION,
        "src.name": demo.APP_NAME,
        "template": json.dumps({"id": demo.TEMPLATE_ID, "params": ["Ann", "17"]}),
    }  # fmt: skip
    await desk.api.form("POST", f"/partner/app/{desk.app_id}/template/msg", fields)
    await desk.send_text("Hello", to=CLOSED)

    async def has_failed() -> bool:
        page = await desk.get(f"/apps/{desk.app_id}")
        return '<span class="newest-what">Text <span class="quiet">' in page

    await until(has_failed)

    newest = (await desk.get(f"/apps/{desk.app_id}")).partition('id="newest"')[2]
    assert '<span class="newest-what">order_ready (en_US)' in newest
    assert ">template<" not in newest


async def test_failed_message_needs_attention_and_says_what_to_do(desk: Desk) -> None:
    await desk.send_text("Hello", to=CLOSED)

    async def is_told() -> bool:
        return "24-hour window is closed (code 131047)" in await desk.get(f"/apps/{desk.app_id}")

    await until(is_told)
    page = await desk.get(f"/apps/{desk.app_id}")
    assert "1 message failed in the last hour" in page
    assert "Send a template. Session messages are accepted only" in page
    assert f'href="/apps/{desk.app_id}/messages?state=failed&amp;code=131047&amp;time=hour"' in page


async def test_what_is_in_trouble_is_named_with_where_it_is_mended(desk: Desk) -> None:
    await store_of(desk).write(_trouble, desk.app_id)
    now_ms = parts_of(desk).clock.now_ms()
    await store_of(desk).write(
        add_credential, CredentialKind.CLIENT_SECRET, 1, "feed" * 16, now_ms, "", now_ms + 60_000
    )

    page = await desk.get(f"/apps/{desk.app_id}")

    assert "Callbacks to shop are paused: it took nothing for three days" in page
    assert "Template order_ready (en_US) is paused" in page
    assert "Client secret feedfeed expires soon" in page
    assert "A job became a dead letter after internal errors: a defect" in page
    assert "paused by the service" in page


def _trouble(connection: Connection, app_id: str) -> None:
    connection.execute(
        insert(subscriptions),
        {
            "id": 7, "partner_id": 1, "app_id": app_id, "tag": "shop", "url": "http://127.0.0.1:9/",
            "version": 2, "modes": "SENT", "active": True, "show_on_ui": False, "created_on_ms": 1,
            "modified_on_ms": 1, "paused_on_ms": 2, "pause_reason": "it took nothing for three days",
        },
    )  # fmt: skip
    connection.execute(update(templates).values(status="PAUSED"))
    connection.execute(insert(queue_jobs), set_aside("subscription 7"))


async def test_entry_that_was_set_aside_is_tried_again_by_its_own_partner_only(desk: Desk) -> None:
    await store_of(desk).write(_trouble, desk.app_id)
    page = await desk.get(f"/apps/{desk.app_id}")
    position = page.partition("/dead-letters/")[2].partition("/")[0]
    await store_of(desk).write(_set_a_strangers_aside)

    await desk.post(f"/apps/{desk.app_id}/dead-letters/{int(position) + 1}/retry", status=404)
    await desk.post(f"/apps/{desk.app_id}/dead-letters/{position}/retry")

    assert "dead letter" not in await desk.get(f"/apps/{desk.app_id}")
    assert len((await desk.admin.json("GET", "/admin/dead-letters"))["dead_letters"]) == 1


def _set_a_strangers_aside(connection: Connection) -> None:
    add_business_account(connection, BusinessAccount("77", 2, "ns", "demo"))
    connection.execute(insert(queue_jobs), set_aside("subscription 8"))


def set_aside(group: str) -> dict[str, Any]:
    """An entry that no worker has in its memory."""
    return {
        "queue": int(QueueName.CALLBACKS), "concurrency_group": group, "ordering_key": f"{group} ann", "ref": "a-callback",
        "due_ms": 1, "state": int(JobState.DEAD_LETTER), "note": "a defect",
    }  # fmt: skip


async def test_first_message_is_refused_where_no_template_can_go(desk: Desk) -> None:
    await store_of(desk).write(_trouble, desk.app_id)

    answer = await desk.post(f"/apps/{desk.app_id}/first-message", status=403)

    assert "no approved template" in await answer.text()


# The tally, which counts a day a piece at a time.


class Day:
    """Messages of a day in memory, counted as the store counts them."""

    def __init__(self) -> None:
        self.messages: list[tuple[int, str]] = []
        self.read = 0

    async def count(self, from_ms: int, before_ms: int, at_most: int) -> StoredMinuteCounts:
        found = sorted(m for m in self.messages if from_ms <= m[0] < before_ms)[-at_most:]
        self.read = max(self.read, len(found))
        rows = [MinuteCount(at // MINUTE_MS, state, None, 1, None) for at, state in found]
        if len(found) < at_most:
            return StoredMinuteCounts(rows, from_ms)
        oldest = rows[0].minute
        whole = [one for one in rows if one.minute > oldest]
        if not whole:
            return StoredMinuteCounts(rows, oldest * MINUTE_MS)
        return StoredMinuteCounts(whole, (oldest + 1) * MINUTE_MS)


async def looked(tally: MinuteCounts, day: Day, now_ms: int, *, times: int = 1) -> int:
    """How many messages the tally knows of after so many looks."""
    for _ in range(times):
        tally.updated_s = float("-inf")
        await tally.update(day.count, now_ms)
    return tally.count_between(0, now_ms + MINUTE_MS).total()


async def test_tally_counts_a_long_day_piece_by_piece_and_says_how_far_it_is() -> None:
    day, tally = Day(), MinuteCounts()
    day.messages = [(NOW_MS - n * 100, "sent") for n in range(3 * MAX_NEWEST_READ)]

    first = await looked(tally, day, NOW_MS)
    was_whole = tally.is_whole(NOW_MS)
    rest = await looked(tally, day, NOW_MS, times=3)

    assert MAX_NEWEST_READ * 0.9 < first < 3 * MAX_NEWEST_READ
    assert not was_whole
    assert rest == 3 * MAX_NEWEST_READ
    assert tally.is_whole(NOW_MS)
    assert day.read <= MAX_NEWEST_READ


async def test_tally_sees_what_has_become_of_messages_of_hours_ago() -> None:
    day, tally = Day(), MinuteCounts()
    day.messages = [(NOW_MS - n * MINUTE_MS, "sent") for n in range(120)]
    await looked(tally, day, NOW_MS, times=2)

    day.messages = [(at, "read") for at, _ in day.messages]
    await looked(tally, day, NOW_MS + 1, times=3)

    counted = tally.count_between(0, NOW_MS + MINUTE_MS)
    assert (count_in_states(counted, ["read"]), count_in_states(counted, ["sent"])) == (120, 0)


async def test_tally_begins_anew_when_the_clock_was_moved_past_what_one_look_reads() -> None:
    day, tally = Day(), MinuteCounts()
    day.messages = [(NOW_MS, "sent")]
    await looked(tally, day, NOW_MS)
    later_ms = NOW_MS + 20 * MINUTE_MS
    day.messages += [(NOW_MS + n * 40, "sent") for n in range(1, MAX_NEWEST_READ + 5000)]

    total = await looked(tally, day, later_ms, times=3)

    assert total == MAX_NEWEST_READ + 5000


async def test_tally_of_more_a_minute_than_a_look_reads_stays_whole() -> None:
    day, tally = Day(), MinuteCounts()
    day.messages = [(NOW_MS - n * 10 * MINUTE_MS, "sent") for n in range(60)]
    await looked(tally, day, NOW_MS, times=2)
    day.messages += [(NOW_MS + n, "sent") for n in range(MAX_NEWEST_READ + 5000)]

    for later_ms in range(0, 3 * MINUTE_MS, 20_000):
        await looked(tally, day, NOW_MS + MAX_NEWEST_READ + 5000 + later_ms)

    assert tally.is_whole(NOW_MS)
    assert tally.count_between(0, NOW_MS - MINUTE_MS).total() > 50


async def test_tally_forgets_yesterday() -> None:
    day, tally = Day(), MinuteCounts()
    day.messages = [(NOW_MS, "sent")]
    await looked(tally, day, NOW_MS)

    assert await looked(tally, day, NOW_MS + 48 * 60 * MINUTE_MS) == 0
    assert tally.minutes == {}
