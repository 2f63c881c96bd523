"""The overview page: live counts, first steps, problems, and the counts per minute."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, insert, update

from tests.console.conftest import LOOP, ConsoleClient, Tabs
from waypost.assembly.dev import demo
from waypost.base.clock import MINUTE_MS
from waypost.console.overview.page import counted_since_ms
from waypost.console.overview.queries import MAX_NEWEST_READ, MinuteCounts, count_in_states
from waypost.console.services import ConsoleServices
from waypost.console.web.zones import UTC_ZONE
from waypost.domain.app import BusinessAccount
from waypost.domain.event import InboundWebhook, unreadable_group, unreadable_item
from waypost.store.accounts.credentials import CredentialKind, add_credential
from waypost.store.accounts.partners import add_business_account
from waypost.store.console.overview import MinuteCount, StoredMinuteCounts
from waypost.store.database import Database
from waypost.store.queue.inbound_webhooks import record_webhooks
from waypost.store.queue.job_subjects import JobState, QueueName
from waypost.store.tables import queue_jobs, subscriptions, templates

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

NOW_MS = 1_760_000_000_000
NEVER_WROTE = "15559990001"
"""A recipient who has never written, so that session messages fail."""


def get_services(console: ConsoleClient) -> ConsoleServices:
    """Return the services of the console, for states that no API can create."""
    return vars(console.dev)["_sides"].waypost.console.services


def get_store(console: ConsoleClient) -> Database:
    """Return the store."""
    return get_services(console).database


async def wait_until(condition: Callable[[], Any], *, tries: int = 100) -> None:
    """Wait until a condition is true."""
    for _ in range(tries):
        if await condition():
            return
        await asyncio.sleep(0.05)
    pytest.fail("the condition did not become true")


async def test_message_appears_on_the_overview_while_it_is_open(tabs: Tabs, console: ConsoleClient) -> None:
    tab = await tabs("/")
    assert await tab.page.title() == "Overview · Waypost"

    await console.send_text("Good morning")

    await tab.page.locator("#newest").get_by_text("delivered").first.wait_for()
    await tab.page.locator("#totals .tile", has_text="Delivered").get_by_text("1").wait_for()
    await tab.page.locator("#hour-chart .chart-bar rect.tone-good").first.wait_for()


async def test_first_steps_lead_from_the_first_message_to_the_callback(tabs: Tabs, console: ConsoleClient) -> None:
    tab = await tabs("/")
    steps = tab.page.locator("#steps .step")

    await tab.page.get_by_role("button", name="Send template").click()
    await tab.page.wait_for_url("**/phones?show=*")
    await tab.go("/")
    await steps.nth(2).get_by_text("Sent.").wait_for()
    await console.control.json("POST", f"/control/phones/{console.phone}/messages", {"to": demo.SOURCE, "text": "Yes"})

    await steps.nth(2).get_by_text("Reply received.").wait_for()
    assert await steps.nth(3).get_by_role("link", name="Receive callbacks").is_visible()


async def test_newest_messages_show_their_template_or_kind(console: ConsoleClient) -> None:
    fields = {
        "channel": "whatsapp", "source": demo.SOURCE, "destination": demo.DESTINATION,
        "src.name": demo.APP_NAME,
        "template": json.dumps({"id": demo.TEMPLATE_ID, "params": ["Ann", "17"]}),
    }  # fmt: skip
    await console.api.form("POST", f"/partner/app/{console.app_id}/template/msg", fields)
    await console.send_text("Hello", to=NEVER_WROTE)

    async def has_failed() -> bool:
        page = await console.get(f"/apps/{console.app_id}")
        return '<span class="newest-what">Text <span class="quiet">' in page

    await wait_until(has_failed)

    newest = (await console.get(f"/apps/{console.app_id}")).partition('id="newest"')[2]
    assert '<span class="newest-what">order_ready (en_US)' in newest
    assert ">template<" not in newest


async def test_failed_message_needs_attention_and_has_a_fix_hint(console: ConsoleClient) -> None:
    await console.send_text("Hello", to=NEVER_WROTE)

    async def is_listed() -> bool:
        return "24-hour window is closed (code 131047)" in await console.get(f"/apps/{console.app_id}")

    await wait_until(is_listed)
    page = await console.get(f"/apps/{console.app_id}")
    assert "1 message failed in the last hour" in page
    assert "Send a template. Session messages are accepted only" in page
    assert f'href="/apps/{console.app_id}/messages?state=failed&amp;code=131047&amp;time=hour"' in page


async def test_each_problem_is_listed_on_the_overview(console: ConsoleClient) -> None:
    await get_store(console).write(_add_problems, console.app_id)
    now_ms = get_services(console).clock.now_ms()
    await get_store(console).write(
        add_credential, CredentialKind.CLIENT_SECRET, 1, "feed" * 16, now_ms, "", now_ms + 60_000
    )

    page = await console.get(f"/apps/{console.app_id}")

    assert "Callbacks to shop are paused: it took nothing for three days" in page
    assert "Template order_ready (en_US) is paused" in page
    assert "Client secret feedfeed expires soon" in page
    assert "A job became a dead letter: a defect" in page
    assert "paused by the service" in page


def _add_problems(connection: Connection, app_id: str) -> None:
    connection.execute(
        insert(subscriptions),
        {
            "id": 7, "partner_id": 1, "app_id": app_id, "tag": "shop", "url": "http://127.0.0.1:9/",
            "version": 2, "modes": "SENT", "active": True, "show_on_ui": False, "created_on_ms": 1,
            "modified_on_ms": 1, "paused_on_ms": 2, "pause_reason": "it took nothing for three days",
        },
    )  # fmt: skip
    connection.execute(update(templates).values(status="PAUSED"))
    connection.execute(insert(queue_jobs), dead_letter_job("replay 7"))


async def test_dead_letter_can_be_retried_only_by_its_own_partner(console: ConsoleClient) -> None:
    await get_store(console).write(_add_problems, console.app_id)
    page = await console.get(f"/apps/{console.app_id}")
    position = page.partition("/dead-letters/")[2].partition("/")[0]
    await get_store(console).write(_add_dead_letter_of_another_partner)

    await console.post(f"/apps/{console.app_id}/dead-letters/{int(position) + 1}/retry", status=404)
    await console.post(f"/apps/{console.app_id}/dead-letters/{position}/retry")

    assert "dead letter" not in await console.get(f"/apps/{console.app_id}")
    assert len((await console.admin.json("GET", "/admin/dead-letters"))["dead_letters"]) == 1


async def test_unreadable_webhook_of_the_operator_account_is_shown_to_its_apps(console: ConsoleClient) -> None:
    item = unreadable_item(unreadable_group("demo"), "body", b"not json", "it is not JSON")
    webhook = InboundWebhook("01-unreadable", "demo", 1, b"not json", (item,))
    await get_store(console).join(record_webhooks, webhook)
    others = unreadable_item(unreadable_group("another"), "body", b"not json", "it is not JSON either")
    await get_store(console).join(record_webhooks, InboundWebhook("02-unreadable", "another", 1, b"", (others,)))

    page = await console.get(f"/apps/{console.app_id}")

    assert "A job became a dead letter: an unreadable part of a webhook (body): it is not JSON" in page
    assert "it is not JSON either" not in page
    position = page.partition("/dead-letters/")[2].partition("/")[0]
    await console.post(f"/apps/{console.app_id}/dead-letters/{position}/retry")


def _add_dead_letter_of_another_partner(connection: Connection) -> None:
    add_business_account(connection, BusinessAccount("77", 2, "ns", "demo"))
    connection.execute(insert(queue_jobs), dead_letter_job("replay 8"))


def dead_letter_job(group: str) -> dict[str, Any]:
    """Return a job that is a dead letter."""
    return {
        "queue": int(QueueName.CALLBACKS), "concurrency_group": group, "ordering_key": f"{group} ann", "ref": "a-callback",
        "due_ms": 1, "state": int(JobState.DEAD_LETTER), "note": "a defect",
    }  # fmt: skip


async def test_first_message_is_rejected_without_an_approved_template(console: ConsoleClient) -> None:
    await get_store(console).write(_add_problems, console.app_id)

    response = await console.post(f"/apps/{console.app_id}/first-message", status=403)

    assert "no approved template" in await response.text()


# MinuteCounts, which reads a day in parts.


class Day:
    """Messages of a day in memory, counted as the store counts them."""

    def __init__(self) -> None:
        self.messages: list[tuple[int, str]] = []
        self.max_read = 0

    async def count(self, from_ms: int, before_ms: int, at_most: int) -> StoredMinuteCounts:
        messages = sorted(m for m in self.messages if from_ms <= m[0] < before_ms)[-at_most:]
        self.max_read = max(self.max_read, len(messages))
        rows = [MinuteCount(at // MINUTE_MS, state, None, 1, None) for at, state in messages]
        if len(messages) < at_most:
            return StoredMinuteCounts(rows, from_ms)
        oldest = rows[0].minute
        complete_rows = [row for row in rows if row.minute > oldest]
        if not complete_rows:
            return StoredMinuteCounts(rows, oldest * MINUTE_MS)
        return StoredMinuteCounts(complete_rows, (oldest + 1) * MINUTE_MS)


async def update_counts(counts: MinuteCounts, day: Day, now_ms: int, *, times: int = 1) -> int:
    """Return the number of counted messages after some updates."""
    for _ in range(times):
        counts.updated_s = float("-inf")
        await counts.update(day.count, now_ms)
    return counts.count_between(0, now_ms + MINUTE_MS).total()


async def test_counts_read_a_long_day_in_parts_and_report_when_they_are_complete() -> None:
    day, counts = Day(), MinuteCounts()
    day.messages = [(NOW_MS - n * 100, "sent") for n in range(3 * MAX_NEWEST_READ)]

    first = await update_counts(counts, day, NOW_MS)
    was_whole = counted_since_ms(counts, NOW_MS, UTC_ZONE) is None
    total = await update_counts(counts, day, NOW_MS, times=3)

    assert MAX_NEWEST_READ * 0.9 < first < 3 * MAX_NEWEST_READ
    assert not was_whole
    assert total == 3 * MAX_NEWEST_READ
    assert counted_since_ms(counts, NOW_MS, UTC_ZONE) is None
    assert day.max_read <= MAX_NEWEST_READ


async def test_counts_follow_state_changes_of_older_messages() -> None:
    day, counts = Day(), MinuteCounts()
    day.messages = [(NOW_MS - n * MINUTE_MS, "sent") for n in range(120)]
    await update_counts(counts, day, NOW_MS, times=2)

    day.messages = [(at, "read") for at, _ in day.messages]
    await update_counts(counts, day, NOW_MS + 1, times=3)

    counted = counts.count_between(0, NOW_MS + MINUTE_MS)
    assert (count_in_states(counted, ["read"]), count_in_states(counted, ["sent"])) == (120, 0)


async def test_counts_start_over_when_the_clock_advances_beyond_one_read() -> None:
    day, counts = Day(), MinuteCounts()
    day.messages = [(NOW_MS, "sent")]
    await update_counts(counts, day, NOW_MS)
    later_ms = NOW_MS + 20 * MINUTE_MS
    day.messages += [(NOW_MS + n * 40, "sent") for n in range(1, MAX_NEWEST_READ + 5000)]

    total = await update_counts(counts, day, later_ms, times=3)

    assert total == MAX_NEWEST_READ + 5000


async def test_counts_stay_complete_with_more_messages_a_minute_than_one_read() -> None:
    day, counts = Day(), MinuteCounts()
    day.messages = [(NOW_MS - n * 10 * MINUTE_MS, "sent") for n in range(60)]
    await update_counts(counts, day, NOW_MS, times=2)
    day.messages += [(NOW_MS + n, "sent") for n in range(MAX_NEWEST_READ + 5000)]

    for later_ms in range(0, 3 * MINUTE_MS, 20_000):
        await update_counts(counts, day, NOW_MS + MAX_NEWEST_READ + 5000 + later_ms)

    assert counted_since_ms(counts, NOW_MS, UTC_ZONE) is None
    assert counts.count_between(0, NOW_MS - MINUTE_MS).total() > 50


async def test_counts_of_yesterday_are_dropped() -> None:
    day, counts = Day(), MinuteCounts()
    day.messages = [(NOW_MS, "sent")]
    await update_counts(counts, day, NOW_MS)

    assert await update_counts(counts, day, NOW_MS + 48 * 60 * MINUTE_MS) == 0
    assert counts.minutes == {}
