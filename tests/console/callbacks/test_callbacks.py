"""The callback pages: subscriptions, deliveries and their attempts, replays, and signing keys."""

import json
import re
from collections.abc import AsyncGenerator
from html import unescape
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Locator
from sqlalchemy import Connection, insert
from standardwebhooks import Webhook

from tests.console.conftest import LOOP, ConsoleClient, Tabs, answer_question
from tests.support.builders import APP, PARTNER
from tests.support.callback_sink import CallbackSink, ReceivedCallback, respond_always
from tests.support.polling import poll_until
from waypost.client.api_client import ApiClient, HttpTransport
from waypost.store.callbacks.receivers import MAX_COUNTED_CALLBACKS
from waypost.store.database import Database
from waypost.store.queue.job_subjects import JobState, QueueName
from waypost.store.queue.jobs import replay_group
from waypost.store.tables import callbacks, queue_jobs

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

MODES = "ENQUEUED,SENT,DELIVERED,FAILED"


@pytest_asyncio.fixture(loop_scope=LOOP)
async def receiver() -> AsyncGenerator[CallbackSink]:
    """The partner's receiver of callbacks."""
    sink = CallbackSink()
    await sink.open()
    yield sink
    await sink.close()


def base_path(console: ConsoleClient) -> str:
    return f"/apps/{console.app_id}/callbacks"


async def subscribe(console: ConsoleClient, url: str, tag: str = "orders", **more: str) -> int:
    form = {"modes": MODES, "tag": tag, "url": url, "doCheck": "false", **more}
    response = await console.api.form("POST", f"/partner/app/{console.app_id}/subscription", form)
    return int(response["subscription"]["id"])


async def get_subscription(console: ConsoleClient, subscription_id: int) -> dict[str, Any]:
    return await console.admin.json("GET", f"/admin/subscriptions/{subscription_id}")


def received_callbacks(sink: CallbackSink) -> list[ReceivedCallback]:
    """Return the attempts that arrived, without pings."""
    return [attempt for attempt in sink.requests if "Waypost-Callback-Id" in attempt.headers]


async def deliver(console: ConsoleClient, sink: CallbackSink, count: int = 1) -> list[ReceivedCallback]:
    """Send messages; return when all three callbacks of each are recorded as delivered."""
    expected = len(received_callbacks(sink)) + 3 * count
    for number in range(count):
        await console.send_text(f"Good morning {number}")
    await sink.wait_until(lambda: len(received_callbacks(sink)) == expected)
    await poll_until(lambda: console.admin.json("GET", "/admin/queues"), lambda queues: not queues["callbacks"])
    return received_callbacks(sink)


async def test_new_subscription_gets_callbacks_live_and_their_exact_bytes_are_shown(
    tabs: Tabs, console: ConsoleClient, receiver: CallbackSink
) -> None:
    tab = await tabs(base_path(console))
    page = tab.page
    await page.get_by_text("No subscriptions yet").wait_for()
    await page.get_by_role("textbox", name="Tag").fill("orders")
    await page.get_by_role("textbox", name="Endpoint URL").fill(receiver.url)
    await page.get_by_label("One per line").fill("X-Receiver-Password: hush-hush")
    await page.get_by_role("button", name="Create subscription").click()
    await page.get_by_text("Its endpoint responded to the ping.").wait_for()
    assert "hush-hush" not in await page.content()
    assert receiver.requests[0].headers["X-Receiver-Password"] == "hush-hush"

    await tab.go(f"{base_path(console)}/deliveries")
    await page.get_by_text("No callbacks yet").wait_for()
    await console.send_text("Good morning")
    rows = page.locator("#rows > div[id]")
    await rows.filter(has_text="200 OK").nth(2).wait_for()  # enqueued, sent, delivered

    await rows.filter(has_text="enqueued").get_by_role("link").click()
    await page.get_by_role("heading", name="Attempts").wait_for()
    enqueued = next(
        attempt for attempt in received_callbacks(receiver) if attempt.value["payload"]["type"] == "enqueued"
    )
    assert await page.locator(".exact pre").text_content() == enqueued.body.decode()
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Download exact bytes").click()
    path = await (await download.value).path()
    assert path.read_bytes() == enqueued.body
    shown = await page.locator("#delivery-tries").inner_text()
    assert enqueued.headers["webhook-signature"] in shown.replace("\n", "")
    assert "hush-hush" not in await page.content()
    assert "made with the current key" in await page.content()

    await page.get_by_role("button", name="Replay").click()
    await receiver.wait_until(lambda: len(received_callbacks(receiver)) == 4)
    await page.locator(".tries > li").nth(1).wait_for()
    replayed = received_callbacks(receiver)[3]
    assert (replayed.body, replayed.callback_id, replayed.sequence) == (
        enqueued.body,
        enqueued.callback_id,
        enqueued.sequence,
    )


async def test_long_queue_is_counted_up_to_a_limit(console: ConsoleClient, receiver: CallbackSink) -> None:
    subscription_id = await subscribe(console, receiver.url)
    store: Database = vars(console.dev)["_sides"].waypost.console.services.database
    await store.write(_add_jobs, subscription_id, MAX_COUNTED_CALLBACKS + 1)

    cards = await console.get(base_path(console))
    page = await console.get(f"{base_path(console)}/subscriptions/{subscription_id}")

    assert "<strong>10\u202f000+</strong>" in cards
    assert "7 to be replayed" in cards
    assert "10\u202f000+ waiting callbacks will not be delivered." in page
    counted = await get_subscription(console, subscription_id)
    assert (counted["waiting"], counted["waiting_is_longer"]) == (MAX_COUNTED_CALLBACKS, True)


def _add_jobs(connection: Connection, subscription_id: int, count: int) -> None:
    """Add dead letters, which no worker claims."""
    live = {
        "partner_id": PARTNER.id, "app_id": APP.id, "subscription_id": subscription_id, "subject": "ann",
        "event": "sent", "body": b"{}", "created_on_ms": 1, "state": int(JobState.DEAD_LETTER),
    }  # fmt: skip
    connection.execute(insert(callbacks), [{**live, "id": f"{n}", "position": n, "sequence": n} for n in range(count)])
    group = replay_group(subscription_id)
    replay = {
        "queue": int(QueueName.CALLBACKS), "due_ms": 1, "state": int(JobState.DEAD_LETTER),
        "concurrency_group": group, "ordering_key": f"{group} ann",
    }  # fmt: skip
    connection.execute(insert(queue_jobs), [{**replay, "ref": f"{n}"} for n in range(7)])


async def test_pause_resume_and_ping_update_the_open_card(
    tabs: Tabs, console: ConsoleClient, receiver: CallbackSink
) -> None:
    await subscribe(console, receiver.url)
    tab = await tabs(base_path(console))
    page = tab.page

    await page.get_by_role("button", name="Pause").click()
    await page.get_by_text("paused by you").wait_for()
    await page.get_by_role("button", name="Resume").click()
    await page.get_by_text("active", exact=True).wait_for()
    receiver.choose_status = respond_always(503)
    await page.get_by_role("button", name="Send ping").click()
    await page.get_by_text("orders responded with 503").wait_for()
    await console.send_text("Good morning")
    await page.get_by_text("Callbacks have been failing since").wait_for()

    assert await page.locator(".sparks svg").count() == 1


async def test_retry_now_calls_a_failing_receiver_before_its_next_attempt_from_each_page_that_shows_it(
    tabs: Tabs, console: ConsoleClient, receiver: CallbackSink
) -> None:
    subscription_id = await subscribe(console, receiver.url)
    receiver.choose_status, receiver.choose_headers = respond_always(503), lambda _: {"Retry-After": "7200"}
    tab = await tabs(f"{base_path(console)}/deliveries")
    page = tab.page

    async def fail() -> None:
        receiver.choose_status = respond_always(503)
        await console.send_text("Good morning")
        await poll_until(
            lambda: get_subscription(console, subscription_id),
            lambda one: one["retry_after_until_ms"] is not None and one["waiting"] == 3,
        )

    async def retry(button: Locator) -> None:
        delivered = len(receiver.accepted)
        receiver.choose_status = respond_always(200)
        await button.click()
        await receiver.wait_until(lambda: len(receiver.accepted) == delivered + 3)

    await fail()
    outage = page.locator("#outages")
    await outage.get_by_text("Callbacks to orders have been failing since").wait_for()
    await outage.get_by_text("Next attempt").wait_for()
    await retry(outage.get_by_role("button", name="Retry now"))
    await page.get_by_text("Calling orders now.").wait_for()
    await outage.get_by_role("button").wait_for(state="detached")
    blocked = page.locator("#rows > div[id]").filter(has_text="Retrying: 503").get_by_role("link")
    await blocked.wait_for(state="detached")  # the row of the first outage

    await fail()
    await blocked.click()
    await retry(page.locator("#delivery-facts").get_by_role("button", name="Retry now"))
    await page.get_by_text("ms after it was created").wait_for()

    await fail()
    await tab.go(f"{base_path(console)}/subscriptions/{subscription_id}")
    await retry(page.get_by_role("button", name="Retry now"))
    await page.get_by_text("active", exact=True).wait_for()

    await fail()
    await tab.go(f"{base_path(console)}/replay?which=given_up")
    await page.get_by_role("heading", name="0 callbacks match").wait_for()
    waiting = page.get_by_role("region", name="Waiting for delivery")
    assert "3 wait for orders, the first since" in await waiting.inner_text()
    await retry(waiting.get_by_role("button", name="Retry now"))
    await page.get_by_role("heading", name="Health").wait_for()


async def test_retry_of_a_subscription_that_was_paused_meanwhile_says_so(
    console: ConsoleClient, receiver: CallbackSink
) -> None:
    subscription_id = await subscribe(console, receiver.url)
    path = f"{base_path(console)}/subscriptions/{subscription_id}"
    await console.post(f"{path}/pause")

    await console.post(f"{path}/retry")

    assert "The subscription is paused: resume it" in await console.get(path)


async def test_test_of_a_subscription_shows_the_request_and_the_response(
    tabs: Tabs, console: ConsoleClient, receiver: CallbackSink
) -> None:
    meta = '{"headers":{"X-Receiver-Password":"not for the page"}}'
    subscription_id = await subscribe(console, receiver.url, meta=meta)
    tab = await tabs(f"{base_path(console)}/subscriptions/{subscription_id}")
    test = tab.page.locator("#test")

    await test.get_by_role("button", name="Send test").click()
    await test.get_by_text("Delivered after").wait_for()
    shown = await test.inner_text()
    receiver.choose_status = respond_always(503)
    await test.get_by_role("button", name="Send again").click()
    await test.get_by_text("Not delivered: a receiver must respond with 2xx").wait_for()

    ping = receiver.requests[0]
    assert receiver.url in shown
    assert ping.headers["webhook-signature"] in shown
    assert "sandbox-start" in shown
    assert "Response headers" in shown
    assert "not for the page" not in shown
    assert (ping.headers["X-Receiver-Password"], len(receiver.requests)) == ("not for the page", 2)


async def test_test_of_a_subscription_says_why_there_was_no_response(
    console: ConsoleClient, receiver: CallbackSink
) -> None:
    subscription_id = await subscribe(console, receiver.url)
    await receiver.close()
    body = {"csrf": await console.csrf()}

    path = f"{base_path(console)}/subscriptions/{subscription_id}/check"
    async with console.http.post(console.base_url + path, data=body) as response:
        page = await response.text()

    assert response.status == 200
    assert "Could not connect: the connection was refused" in page
    assert "Response headers" not in page


async def test_key_rotation_shows_both_keys_and_both_sign(
    tabs: Tabs, console: ConsoleClient, receiver: CallbackSink
) -> None:
    subscription_id = await subscribe(console, receiver.url)
    tab = await tabs(f"{base_path(console)}/subscriptions/{subscription_id}")
    page = tab.page
    assert "whsec_" not in await page.content()
    await page.get_by_role("button", name="Show key").click()
    old = await page.locator(".key pre").text_content()

    await page.locator("summary", has_text="Rotate key").click()
    await page.get_by_role("button", name="Create new key").click()
    await answer_question(page, "Create new key")
    await page.locator(".key pre").nth(1).wait_for()
    keys = await page.locator(".key pre").all_text_contents()

    assert keys[1] == old != keys[0]
    [callback, *_] = await deliver(console, receiver)
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    for key in keys:
        Webhook(key).verify(callback.body, {name: callback.headers[name] for name in names})
    await tab.go(f"{base_path(console)}/subscriptions/{subscription_id}")
    assert "whsec_" not in await page.content()


async def test_response_times_are_charted_against_the_limit(
    tabs: Tabs, console: ConsoleClient, receiver: CallbackSink
) -> None:
    await subscribe(console, receiver.url)
    await subscribe(console, "http://127.0.0.1:9/", "quiet", modes="DELETED")
    await deliver(console, receiver, 2)

    tab = await tabs(f"{base_path(console)}/response-times?range=hour")

    picture = tab.page.locator(".chart-distribution")
    assert await picture.get_attribute("role") == "img"
    assert "Response times of orders" in (await picture.locator("> title").text_content() or "")
    assert "limit" in (await picture.text_content() or "")
    assert await tab.page.locator(".chart-lines").count() == 1
    assert await tab.page.get_by_text("0 % of 6").count() == 2
    await tab.page.get_by_text("View as table").first.click()
    assert await tab.page.locator(".chart-table[open] tbody tr").count() >= 1


async def test_replay_shows_the_number_of_matches_before_it_starts(
    console: ConsoleClient, receiver: CallbackSink
) -> None:
    subscription_id = await subscribe(console, receiver.url)
    await deliver(console, receiver, 2)
    path = f"{base_path(console)}/replay?subscription={subscription_id}&which=delivered&event=sent&recipient=%2B{console.phone}"

    page = await console.get(path)

    assert "2 callbacks match" in page
    assert len(received_callbacks(receiver)) == 6
    to_ms = page.partition('name="to_ms" value="')[2].partition('"')[0]
    form = {
        "subscription": str(subscription_id), "which": "delivered", "event": "sent", "recipient": console.phone,
        "from": "", "to_ms": to_ms,
    }  # fmt: skip
    await console.post(f"{base_path(console)}/replay", form)
    await receiver.wait_until(lambda: len(received_callbacks(receiver)) == 8)
    assert {attempt.value["payload"]["type"] for attempt in received_callbacks(receiver)[6:]} == {"sent"}
    assert "Nothing is sent yet" in await console.get(f"{base_path(console)}/replay?which=given_up")


async def test_list_is_filtered_by_the_query(console: ConsoleClient, receiver: CallbackSink) -> None:
    subscription_id = await subscribe(console, receiver.url)
    [callback, *_] = await deliver(console, receiver, 2)
    message_id = callback.value["payload"]["id"]
    path = f"{base_path(console)}/deliveries"

    async def rows(query: str) -> int:
        return (await console.get(path + query)).count('<div id="delivery-')

    assert await rows("") == 6
    assert await rows("?event=sent") == 2
    assert await rows(f"?q={message_id}") == 3
    assert await rows(f"?q=%2B{console.phone}&subscription={subscription_id}&state=delivered") == 6
    assert await rows("?q=15550009999") == 0
    assert await rows("?state=waiting") == 0
    assert await rows("?to=2026-01-01T00:00") == 0
    assert await rows("?from=2026-01-01T00:00:00") == 6
    assert "Message trace" in await console.get(f"{path}?q={callback.callback_id}")
    assert "Unknown state. Accepted: waiting, delivered, not delivered." in await console.get(f"{path}?state=lost")
    assert "Use the format 2026-11-22T14:05." in await console.get(f"{path}?from=yesterday")
    assert await rows("?before=nonsense") == 6


async def test_older_callbacks_are_on_the_next_page_without_duplicates(
    console: ConsoleClient, receiver: CallbackSink
) -> None:
    await subscribe(console, receiver.url)
    await deliver(console, receiver, 18)
    path, ids = f"{base_path(console)}/deliveries", list[str]()

    for count in (50, 4):
        page = await console.get(path)
        rows = re.findall(r'<div id="delivery-([^"]+)"', page)
        assert len(rows) == count
        ids += rows
        next_link = re.search(r'href="([^"]+)" rel="next"', page)
        path = unescape(next_link[1]) if next_link else ""

    assert path == ""
    assert sorted(ids) == sorted(attempt.callback_id for attempt in received_callbacks(receiver))


async def test_rejected_form_keeps_its_input_and_shows_the_error(
    console: ConsoleClient, receiver: CallbackSink
) -> None:
    receiver.choose_status = respond_always(404)
    form = {
        "tag": "orders", "url": receiver.url, "version": "2", "modes": "SENT", "check": "on",
        "headers": "X-Own: kept",
    }  # fmt: skip

    for changes, error in (
        ({}, "it responded with 404"),
        ({"url": "ftp://somewhere"}, "absolute http or https address"),
        ({"modes": ""}, "modes is required"),
        ({"headers": "no header"}, "is not a header"),
        ({"headers": "Host: elsewhere"}, "are ours to set"),
        ({"version": "2", "modes": "ALL"}, "beside ALL in version 2"),
        ({"tag": ""}, "tag"),
    ):
        body = {"csrf": await console.csrf(), **form, **changes}
        async with console.http.post(console.base_url + f"{base_path(console)}/new", data=body) as response:
            page = await response.text()
            assert response.status == 400, changes
            assert error in page
            assert "is-wrong" in page
            assert f'value="{body["url"]}"' in page
    assert (await console.admin.json("GET", "/admin/subscriptions"))["subscriptions"] == []


async def test_update_keeps_headers_that_it_does_not_name(console: ConsoleClient, receiver: CallbackSink) -> None:
    meta = json.dumps({"note": "ours", "headers": {"X-One": "1", "X-Two": "2", "X-Three": "3"}})
    subscription_id = await subscribe(console, receiver.url, meta=meta)
    page = await console.get(f"{base_path(console)}/subscriptions/{subscription_id}")
    assert "X-Two" in page
    form = {
        "tag": "renamed", "url": receiver.url, "version": "2", "modes": "SENT",
        "remove": "X-One", "headers": "x-two: 22\nX-Four: 4",
    }  # fmt: skip

    await console.post(f"{base_path(console)}/subscriptions/{subscription_id}", form)

    path = f"/partner/app/{console.app_id}/subscription/{subscription_id}"
    subscription = (await console.api.json("GET", path))["subscription"]
    assert (subscription["tag"], subscription["modes"]) == ("renamed", ["SENT"])
    assert json.loads(subscription["meta"]) == {
        "note": "ours",
        "headers": {"X-Three": "3", "x-two": "22", "X-Four": "4"},
    }
    await console.post(
        f"{base_path(console)}/subscriptions/{subscription_id}", {**form, "remove": "", "headers": "", "tag": "again"}
    )
    assert json.loads((await console.api.json("GET", path))["subscription"]["meta"])["note"] == "ours"


async def test_deleted_subscription_disappears_and_its_callbacks_are_still_shown(
    console: ConsoleClient, receiver: CallbackSink
) -> None:
    subscription_id = await subscribe(console, receiver.url)
    [callback, *_] = await deliver(console, receiver)

    await console.post(f"{base_path(console)}/subscriptions/{subscription_id}/delete")

    assert "No subscriptions yet" in await console.get(base_path(console))
    await console.get(f"{base_path(console)}/subscriptions/{subscription_id}", status=404)
    assert "deleted" in await console.get(f"{base_path(console)}/deliveries/{callback.callback_id}")
    await console.post(f"{base_path(console)}/deliveries/{callback.callback_id}/replay")
    assert len(received_callbacks(receiver)) == 3


async def test_subscriptions_of_another_partner_are_not_accessible(
    console: ConsoleClient, receiver: CallbackSink
) -> None:
    other_app, api = await _another_partner(console)
    form = {"modes": MODES, "tag": "theirs", "url": receiver.url, "doCheck": "false"}
    response = await api.form("POST", f"/partner/app/{other_app}/subscription", form)
    foreign_id = int(response["subscription"]["id"])
    own_id = await subscribe(console, receiver.url)
    own_path = base_path(console)
    their_path = f"{own_path}/subscriptions/{foreign_id}"

    for path in (f"/apps/{other_app}/callbacks", f"{their_path}", f"{their_path}/live", f"{own_path}/deliveries/0"):
        await console.get(path, status=404)  # fmt: skip
    for act in ("", "/check", "/pause", "/resume", "/key", "/rotate", "/delete"):
        await console.post(their_path + act, {"keep_old_for_s": "0"}, status=404)
    await console.post(f"{own_path}/replay", {"subscription": str(foreign_id), "which": "both"}, status=403)
    assert (await console.get(f"{own_path}/deliveries?subscription={foreign_id}")).count('<div id="delivery-') == 0

    assert receiver.requests == []
    assert (await get_subscription(console, foreign_id))["key_serial"] == 1
    assert (await get_subscription(console, own_id))["active"] is True


async def _another_partner(console: ConsoleClient) -> tuple[str, ApiClient]:
    partner = await console.admin.json("POST", "/admin/partners", {"email": "bob@other.test", "name": "Other"})
    account = {"id": "98765", "operator_account_id": "demo", "namespace": "other"}
    await console.admin.json("POST", "/admin/business-accounts", {**account, "partner_id": partner["id"]})
    app = await console.admin.json(
        "POST",
        "/admin/apps",
        {
            "partner_id": partner["id"], "name": "OtherShop", "phone_number": "15559990000",
            "phone_number_id": "99", "business_account_id": "98765",
        },
    )  # fmt: skip
    return app["id"], ApiClient(HttpTransport(console.base_url), {"Authorization": app["app_token"]})


async def test_pages_show_since_when_callbacks_fail_and_which_attempts_are_replays(
    console: ConsoleClient, receiver: CallbackSink
) -> None:
    receiver.choose_status = respond_always(500)
    subscription_id = await subscribe(console, receiver.url)
    message_id = await console.send_text("Good morning")
    await poll_until(
        lambda: get_subscription(console, subscription_id),
        lambda subscription: subscription["next_attempt_ms"] is not None,
    )
    first = received_callbacks(receiver)[0]
    delivery = f"{base_path(console)}/deliveries/{first.callback_id}"
    trace = f"/apps/{console.app_id}/messages/{message_id}"

    failing = "callbacks to orders have been failing since"
    assert failing in await console.get(delivery)
    assert "<dt>Failing since</dt>" in await console.get(trace)
    assert "orders" in await console.get(base_path(console))

    receiver.choose_status = respond_always(200)
    await console.control.json("POST", "/control/clock/advance", {"ms": 60_000})
    await poll_until(
        lambda: get_subscription(console, subscription_id),
        lambda subscription: subscription["failing_since_ms"] is None,
    )
    await poll_until(lambda: console.admin.json("GET", "/admin/queues"), lambda queues: not queues["callbacks"])
    assert failing not in await console.get(delivery)
    count = len(received_callbacks(receiver))
    await console.admin.json("POST", "/admin/callbacks/replay", {"callback_id": first.callback_id})
    await receiver.wait_until(lambda: len(received_callbacks(receiver)) == count + 1)
    page = await poll_until(lambda: console.get(delivery), lambda text: '<span class="try-kind">replay</span>' in text)

    assert '<span class="try-kind">initial</span>' in page
    assert "replayed 1 time since" in page
    assert "replayed" in await console.get(f"{base_path(console)}/deliveries")
    assert " · replayed</span>" in await console.get(trace)
