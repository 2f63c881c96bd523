"""The list of deliveries: the status of each as what happened, quick filters, and replays of many."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from playwright.async_api import Locator
from sqlalchemy import Connection, update

from tests.console.conftest import LOOP, ConsoleClient, Tabs, close_console, open_console
from tests.console.support.input_methods import INPUT_METHODS, InputMethod
from tests.support.callback_sink import CallbackSink, respond_always
from tests.support.polling import poll_until
from waypost.base.clock import HOUR_MS, ClockSetting, VirtualClock
from waypost.console.callbacks.deliveries import DeliveryStatus, delivery_status
from waypost.store.callbacks.deliveries import OpenCallback, SubscriptionHealth
from waypost.store.database import Database
from waypost.store.queue.job_subjects import JobState
from waypost.store.tables import callbacks

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

NOW: Final = 1_000_000
BEGINS: Final = datetime(2026, 5, 4, 0, 30, tzinfo=UTC)
HEALTHY: Final = SubscriptionHealth(1, "orders", True, None, None, None)
WAITS: Final = {"ended_on_ms": None, "delivered": None}
DELIVERED: Final = {"ended_on_ms": 5, "delivered": True}
FAILED: Final = {"ended_on_ms": 5, "delivered": False}
JOB: Final = OpenCallback("x", NOW + 240_000, 0)
# fmt: off
STATUSES: Final[tuple[tuple[Any, ...], ...]] = (
    # callback   responses     job    subscription                                    status
    (DELIVERED,  [503, 200],   None,  HEALTHY,                                        DeliveryStatus("delivered", "200 OK")),
    (DELIVERED,  [299],        None,  HEALTHY,                                        DeliveryStatus("delivered", "299")),
    (DELIVERED,  [],           None,  None,                                           DeliveryStatus("delivered", "Delivered")),
    (FAILED,     [503],        None,  HEALTHY,                                        DeliveryStatus("given up", "Not delivered: 503 Service Unavailable")),
    (FAILED,     [None],       None,  HEALTHY,                                        DeliveryStatus("given up", "Not delivered: no response")),
    (WAITS,      [],           JOB,   HEALTHY,                                        DeliveryStatus("waiting", "Queued")),
    (WAITS,      [503],        JOB,   HEALTHY,                                        DeliveryStatus("retrying", "Retrying: 503, next", NOW + 240_000)),
    (WAITS,      [None],       JOB,   HEALTHY._replace(next_attempt_ms=NOW + 300_000), DeliveryStatus("retrying", "Retrying: no response, next", NOW + 300_000)),
    (WAITS,      [503],        JOB._replace(due_ms=0), HEALTHY,                       DeliveryStatus("retrying", "Retrying: 503, next now")),
    (WAITS,      [],           JOB,   HEALTHY._replace(failing_since_ms=7, last_status=503), DeliveryStatus("blocked", "Blocked: 503 since", 7, "moment")),
    (WAITS,      [],           JOB,   HEALTHY._replace(failing_since_ms=7),           DeliveryStatus("blocked", "Blocked: no response since", 7, "moment")),
    (WAITS,      [503],        JOB,   HEALTHY._replace(failing_since_ms=7, paused_on_ms=9), DeliveryStatus("paused", "Paused by the service since", 9, "moment")),
    (WAITS,      [503],        JOB,   HEALTHY._replace(active=False),                 DeliveryStatus("paused by you", "Paused by you")),
    (WAITS,      [],           JOB._replace(state=JobState.DEAD_LETTER), HEALTHY,     DeliveryStatus("dead letter", "Dead letter after internal errors")),
    (WAITS,      [],           JOB,   None,                                           DeliveryStatus("deleted", "Subscription deleted")),
)
# fmt: on


class CountedClicks:
    """Clicks, or presses a key, and counts that."""

    def __init__(self, user: InputMethod) -> None:
        self.user = user
        self.count = 0

    async def click(self, target: Locator) -> None:
        await self.user.press(target)
        self.count += 1


@pytest_asyncio.fixture(loop_scope=LOOP)
async def console(tmp_path: Path, demo_data: Path) -> AsyncGenerator[ConsoleClient]:
    """A console whose clock begins just after midnight, so that a day later is tomorrow."""
    clock = VirtualClock()
    clock.apply(ClockSetting(int(BEGINS.timestamp() * 1000), clock.setting.machine_ms, 1))
    console = await open_console(tmp_path, demo_data=demo_data, changes={"rates": False}, clock=clock)
    yield console
    await close_console(console)


@pytest_asyncio.fixture(loop_scope=LOOP)
async def receiver() -> AsyncGenerator[CallbackSink]:
    sink = CallbackSink()
    await sink.open()
    yield sink
    await sink.close()


async def subscribe(console: ConsoleClient, url: str, tag: str) -> int:
    form = {"modes": "ENQUEUED,SENT,DELIVERED", "tag": tag, "url": url, "doCheck": "false"}
    response = await console.api.form("POST", f"/partner/app/{console.app_id}/subscription", form)
    return int(response["subscription"]["id"])


async def advance(console: ConsoleClient, ms: int) -> None:
    while ms:
        ms = (await console.control.json("POST", "/control/clock/advance", {"ms": ms}))["left_ms"]


async def wait_until_nothing_waits(console: ConsoleClient) -> None:
    await poll_until(lambda: console.admin.json("GET", "/admin/queues"), lambda queues: not queues["callbacks"])


def mark_as_not_delivered(connection: Connection) -> None:
    """Mark all callbacks as not delivered: a receiver that fails for a day and a half has one, the others wait."""
    connection.execute(update(callbacks).values(delivered=False))


@pytest.mark.parametrize(("callback", "responses", "job", "subscription", "expected"), STATUSES)
async def test_status_says_what_happened(
    callback: dict[str, object], responses: list[int | None], job: OpenCallback | None,
    subscription: SubscriptionHealth | None, expected: DeliveryStatus,
) -> None:  # fmt: skip
    assert delivery_status(callback, responses, job, subscription, NOW) == expected


@pytest.mark.parametrize("method", INPUT_METHODS)
async def test_yesterdays_failures_of_one_subscription_are_replayed_in_four_clicks(
    tabs: Tabs, console: ConsoleClient, receiver: CallbackSink, method: str
) -> None:
    await subscribe(console, f"{receiver.url}?orders", "orders")
    await subscribe(console, f"{receiver.url}?stock", "stock")
    for text in ("One", "Two"):
        await console.send_text(text)
    await receiver.wait_until(lambda: len(receiver.accepted) == 12)
    await wait_until_nothing_waits(console)
    store: Database = vars(console.dev)["_sides"].waypost.console.services.database
    await store.write(mark_as_not_delivered)
    await advance(console, 25 * HOUR_MS)
    await console.send_text("Too late, so that it fails at the operator")
    await receiver.wait_until(lambda: len(receiver.accepted) == 14)
    await wait_until_nothing_waits(console)

    page = (await tabs(f"/apps/{console.app_id}")).page
    clicks = CountedClicks(INPUT_METHODS[method])
    await clicks.click(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Callbacks"))
    orders = page.locator(".receiver", has=page.get_by_role("heading", name="orders"))
    await clicks.click(orders.get_by_role("link", name="Deliveries"))
    await clicks.click(page.get_by_role("link", name="Not delivered yesterday"))
    replay = page.get_by_role("button", name="Replay all 6")
    await replay.wait_for()
    shown = await page.locator(".delivery-state .badge").all_inner_texts()
    await clicks.click(replay)
    await page.get_by_text("Replaying 6 callbacks.").wait_for()
    await receiver.wait_until(lambda: len(receiver.accepted) == 20)

    assert clicks.count == 4
    assert len(shown) == 6
    assert all(status.startswith("Not delivered") for status in shown)
    assert [one.sequence for one in receiver.accepted[14:]] == [1, 2, 3, 4, 5, 6]


async def test_selected_callbacks_are_replayed_by_mouse_and_by_keyboard(
    tabs: Tabs, console: ConsoleClient, receiver: CallbackSink
) -> None:
    await subscribe(console, receiver.url, "orders")
    await console.send_text("Good morning")
    await receiver.wait_until(lambda: len(receiver.accepted) == 3)
    await wait_until_nothing_waits(console)
    page = (await tabs(f"/apps/{console.app_id}/callbacks/deliveries")).page
    button = page.get_by_role("button", name="Replay selected")
    rows = page.locator("#rows > .has-pick")
    await rows.nth(2).wait_for()

    assert not await button.is_visible()
    await rows.nth(0).get_by_role("checkbox").check()
    await rows.nth(2).get_by_role("link").focus()
    await page.keyboard.press("x")
    await page.get_by_text("2 selected", exact=True).wait_for()
    await button.click()
    await page.get_by_text("Replaying 2 callbacks.").wait_for()
    await receiver.wait_until(lambda: len(receiver.accepted) == 5)
    await rows.filter(has_text="replayed").nth(1).wait_for()
    assert await page.locator("[data-pick]:checked").count() == 0
    await rows.nth(1).get_by_role("checkbox").check()
    await page.get_by_role("button", name="Select all shown").click()
    await button.click()
    await page.get_by_text("Replaying 3 callbacks.").wait_for()
    await receiver.wait_until(lambda: len(receiver.accepted) == 8)


async def test_nothing_selected_and_foreign_ids_replay_nothing(console: ConsoleClient, receiver: CallbackSink) -> None:
    await subscribe(console, receiver.url, "orders")
    path = f"/apps/{console.app_id}/callbacks"

    await console.post(f"{path}/replay-selected")
    empty = await console.get(f"{path}/deliveries")
    await console.post(f"{path}/replay-selected", {"id": "01990000-0000-7000-8000-000000000001"})
    unknown = await console.get(f"{path}/deliveries")

    assert "Select callbacks first." in empty
    assert "Nothing was replayed." in unknown


async def test_blocked_and_retried_callbacks_say_so(tabs: Tabs, console: ConsoleClient, receiver: CallbackSink) -> None:
    receiver.choose_status = respond_always(503)
    await subscribe(console, receiver.url, "orders")
    await console.send_text("Good morning")
    page = (await tabs(f"/apps/{console.app_id}/callbacks/deliveries")).page

    await page.locator(".delivery-state", has_text="Retrying: 503, next in").first.wait_for()
    await page.locator(".delivery-state", has_text="Blocked: 503 since 00:3").first.wait_for()
    await page.get_by_role("link", name="Waiting", exact=True).click()

    assert await page.locator("#rows > .has-pick").count() == 3


async def test_times_of_the_filter_are_days_of_the_reader(console: ConsoleClient, receiver: CallbackSink) -> None:
    await subscribe(console, receiver.url, "orders")
    await console.send_text("Just after midnight in UTC")
    await receiver.wait_until(lambda: len(receiver.accepted) == 3)
    path = f"/apps/{console.app_id}/callbacks/deliveries"

    async def count(query: str, zone: str) -> int:
        return (await console.get(path + query, cookies={"waypost_zone": zone})).count('<div id="delivery-')

    assert await count("?time=today", "UTC") == 3
    await advance(console, 4 * HOUR_MS)
    assert await count("?time=today", "America/New_York") == 0
    assert await count("?time=yesterday", "America/New_York") == 3
    assert await count("?time=today", "Asia/Kolkata") == 3
    assert await count("?from=2026-05-04T06:00&to=2026-05-04T06:30", "Asia/Kolkata") == 3
    assert await count("?from=2026-05-04T06:00&to=2026-05-04T06:30&zone=Asia/Kolkata", "UTC") == 3
    assert await count("?from=2026-05-04T06:00&to=2026-05-04T06:30", "UTC") == 0
