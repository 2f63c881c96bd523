"""Callbacks on screen: who is told, what was told and how it went, telling it again, and the keys that sign."""

import json
import re
from collections.abc import AsyncGenerator
from html import unescape
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import Connection, insert
from standardwebhooks import Webhook

from tests.console.conftest import LOOP, Desk, Tabs
from tests.support.callback_sink import CallbackSink, Try, always
from tests.support.waiting import patiently
from waypost.client.api_client import ApiClient, HttpTransport
from waypost.store.callbacks.receivers import MAX_COUNTED_CALLBACKS
from waypost.store.callbacks.subscriptions import live_group, replay_group
from waypost.store.database import Database
from waypost.store.queue.jobs import JobState, QueueName
from waypost.store.tables import queue_jobs

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

MODES = "ENQUEUED,SENT,DELIVERED,FAILED"


@pytest_asyncio.fixture(loop_scope=LOOP)
async def receiver() -> AsyncGenerator[CallbackSink]:
    """A program of the partner's."""
    sink = CallbackSink()
    await sink.open()
    yield sink
    await sink.close()


def base(desk: Desk) -> str:
    return f"/apps/{desk.app_id}/callbacks"


async def subscribe(desk: Desk, url: str, tag: str = "orders", **more: str) -> int:
    form = {"modes": MODES, "tag": tag, "url": url, "doCheck": "false", **more}
    made = await desk.api.form("POST", f"/partner/app/{desk.app_id}/subscription", form)
    return int(made["subscription"]["id"])


async def standing(desk: Desk, known: int) -> dict[str, Any]:
    return await desk.admin.json("GET", f"/admin/subscriptions/{known}")


def told(sink: CallbackSink) -> list[Try]:
    """What came, without pings."""
    return [one for one in sink.tries if "Waypost-Callback-Id" in one.headers]


async def deliver(desk: Desk, sink: CallbackSink, count: int = 1) -> list[Try]:
    """Send messages, and return once all three callbacks of each are written down as delivered."""
    wanted = len(told(sink)) + 3 * count
    for number in range(count):
        await desk.send_text(f"Good morning {number}")
    await sink.wait_until(lambda: len(told(sink)) == wanted)
    await patiently(lambda: desk.admin.json("GET", "/admin/queues"), lambda queues: not queues["callbacks"])
    return told(sink)


async def test_new_receiver_is_told_live_and_what_it_got_is_shown_byte_for_byte(
    tabs: Tabs, desk: Desk, receiver: CallbackSink
) -> None:
    tab = await tabs(base(desk))
    page = tab.page
    await page.get_by_text("No subscriptions yet").wait_for()
    await page.get_by_role("textbox", name="Tag").fill("orders")
    await page.get_by_role("textbox", name="Endpoint URL").fill(receiver.url)
    await page.get_by_label("One per line").fill("X-Receiver-Password: hush-hush")
    await page.get_by_role("button", name="Create subscription").click()
    await page.get_by_text("Its endpoint responded to the ping.").wait_for()
    assert "hush-hush" not in await page.content()
    assert receiver.tries[0].headers["X-Receiver-Password"] == "hush-hush"

    await tab.go(f"{base(desk)}/deliveries")
    await page.get_by_text("No callbacks yet").wait_for()
    await desk.send_text("Good morning")
    rows = page.locator("#deliveries > li[id]")
    await rows.filter(has_text="200 in").nth(2).wait_for()  # enqueued, sent, delivered

    await rows.filter(has_text="enqueued").get_by_role("link").click()
    await page.get_by_role("heading", name="Attempts").wait_for()
    got = next(one for one in told(receiver) if one.value["payload"]["type"] == "enqueued")
    assert await page.locator(".exact pre").text_content() == got.body.decode()
    async with page.expect_download() as saving:
        await page.get_by_role("button", name="Download exact bytes").click()
    path = await (await saving.value).path()
    assert path.read_bytes() == got.body
    shown = await page.locator("#delivery-tries").inner_text()
    assert got.headers["webhook-signature"] in shown.replace("\n", "")
    assert "hush-hush" not in await page.content()
    assert "made with the current key" in await page.content()

    await page.get_by_role("button", name="Replay").click()
    await receiver.wait_until(lambda: len(told(receiver)) == 4)
    await page.locator(".tries > li").nth(1).wait_for()
    again = told(receiver)[3]
    assert (again.body, again.callback_id, again.sequence) == (got.body, got.callback_id, got.sequence)


async def test_long_line_is_counted_as_far_as_a_person_needs(desk: Desk, receiver: CallbackSink) -> None:
    known = await subscribe(desk, receiver.url)
    store: Database = vars(desk.dev)["_sides"].waypost.console.services.database
    await store.write(_append_waiting, known, MAX_COUNTED_CALLBACKS + 1)

    cards = await desk.get(base(desk))
    page = await desk.get(f"{base(desk)}/subscriptions/{known}")

    assert "<strong>10\u202f000+</strong>" in cards
    assert "7 to be replayed" in cards
    assert "10\u202f000+ waiting callbacks will not be delivered." in page
    counted = await standing(desk, known)
    assert (counted["waiting"], counted["waiting_is_longer"]) == (MAX_COUNTED_CALLBACKS, True)


def _append_waiting(connection: Connection, known: int, count: int) -> None:
    """Entries that no worker has in its memory, and none takes."""
    aside = {"queue": int(QueueName.CALLBACKS), "due_ms": 1, "state": int(JobState.DEAD_LETTER)}
    for group, many in ((live_group(known), count), (replay_group(known), 7)):
        of_group = {**aside, "concurrency_group": group, "ordering_key": f"{group} ann"}
        connection.execute(insert(queue_jobs), [{**of_group, "ref": f"{n}"} for n in range(many)])


async def test_pause_resume_and_check_show_on_the_card_that_is_open(
    tabs: Tabs, desk: Desk, receiver: CallbackSink
) -> None:
    await subscribe(desk, receiver.url)
    tab = await tabs(base(desk))
    page = tab.page

    await page.get_by_role("button", name="Pause").click()
    await page.get_by_text("paused by you").wait_for()
    await page.get_by_role("button", name="Resume").click()
    await page.get_by_text("active", exact=True).wait_for()
    receiver.answers = always(503)
    await page.get_by_role("button", name="Send ping").click()
    await page.get_by_text("orders responded 503").wait_for()
    await desk.send_text("Good morning")
    await page.get_by_text("Callbacks have been failing since").wait_for()

    assert await page.locator(".sparks svg").count() == 1


async def test_rotation_shows_both_keys_and_both_sign(tabs: Tabs, desk: Desk, receiver: CallbackSink) -> None:
    known = await subscribe(desk, receiver.url)
    tab = await tabs(f"{base(desk)}/subscriptions/{known}")
    page = tab.page
    assert "whsec_" not in await page.content()
    await page.get_by_role("button", name="Show key").click()
    old = await page.locator(".key pre").text_content()

    page.on("dialog", lambda dialog: dialog.accept())
    await page.locator("summary", has_text="Rotate key").click()
    await page.get_by_role("button", name="Create new key").click()
    await page.locator(".key pre").nth(1).wait_for()
    keys = await page.locator(".key pre").all_text_contents()

    assert keys[1] == old != keys[0]
    [got, *_] = await deliver(desk, receiver)
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    for key in keys:
        Webhook(key).verify(got.body, {name: got.headers[name] for name in names})
    await tab.go(f"{base(desk)}/subscriptions/{known}")
    assert "whsec_" not in await page.content()


async def test_answer_times_are_drawn_against_the_limit(tabs: Tabs, desk: Desk, receiver: CallbackSink) -> None:
    await subscribe(desk, receiver.url)
    await subscribe(desk, "http://127.0.0.1:9/", "quiet", modes="DELETED")
    await deliver(desk, receiver, 2)

    tab = await tabs(f"{base(desk)}/response-times?range=hour")

    picture = tab.page.locator(".chart-distribution")
    assert await picture.get_attribute("role") == "img"
    assert "Response times of orders" in (await picture.locator("> title").text_content() or "")
    assert "limit" in (await picture.text_content() or "")
    assert await tab.page.locator(".chart-lines").count() == 1
    assert await tab.page.get_by_text("0 % of 6").count() == 2
    await tab.page.get_by_text("View as table").first.click()
    assert await tab.page.locator(".chart-table[open] tbody tr").count() >= 1


async def test_filter_is_counted_before_it_is_sent_again(desk: Desk, receiver: CallbackSink) -> None:
    known = await subscribe(desk, receiver.url)
    await deliver(desk, receiver, 2)
    asked = f"{base(desk)}/replay?subscription={known}&which=delivered&event=sent&recipient=%2B{desk.phone}"

    page = await desk.get(asked)

    assert "2 callbacks match" in page
    assert len(told(receiver)) == 6
    to_ms = page.partition('name="to_ms" value="')[2].partition('"')[0]
    form = {
        "subscription": str(known), "which": "delivered", "event": "sent", "recipient": desk.phone,
        "from": "", "to_ms": to_ms,
    }  # fmt: skip
    await desk.post(f"{base(desk)}/replay", form)
    await receiver.wait_until(lambda: len(told(receiver)) == 8)
    assert {one.value["payload"]["type"] for one in told(receiver)[6:]} == {"sent"}
    assert "Nothing is sent yet" in await desk.get(f"{base(desk)}/replay?which=given_up")


async def test_list_is_filtered_by_what_the_address_says(desk: Desk, receiver: CallbackSink) -> None:
    known = await subscribe(desk, receiver.url)
    [got, *_] = await deliver(desk, receiver, 2)
    message_id = got.value["payload"]["id"]
    path = f"{base(desk)}/deliveries"

    async def rows(query: str) -> int:
        return (await desk.get(path + query)).count('<li id="delivery-')

    assert await rows("") == 6
    assert await rows("?event=sent") == 2
    assert await rows(f"?q={message_id}") == 3
    assert await rows(f"?q=%2B{desk.phone}&subscription={known}&state=delivered") == 6
    assert await rows("?q=15550009999") == 0
    assert await rows("?state=waiting") == 0
    assert await rows("?to=2026-01-01T00:00") == 0
    assert await rows("?from=2026-01-01T00:00:00") == 6
    assert "Message trace" in await desk.get(f"{path}?q={got.callback_id}")
    await desk.get(f"{path}?state=lost", status=400)
    await desk.get(f"{path}?from=yesterday", status=400)
    await desk.get(f"{path}?before=nonsense", status=400)


async def test_older_callbacks_are_on_the_next_page_each_once(desk: Desk, receiver: CallbackSink) -> None:
    await subscribe(desk, receiver.url)
    await deliver(desk, receiver, 18)
    path, seen = f"{base(desk)}/deliveries", list[str]()

    for count in (50, 4):
        page = await desk.get(path)
        rows = re.findall(r'<li id="delivery-([^"]+)"', page)
        assert len(rows) == count
        seen += rows
        found = re.search(r'href="([^"]+)" rel="next"', page)
        path = unescape(found[1]) if found else ""

    assert path == ""
    assert sorted(seen) == sorted(one.callback_id for one in told(receiver))


async def test_refused_form_comes_back_with_what_was_typed_and_what_is_wrong(
    desk: Desk, receiver: CallbackSink
) -> None:
    receiver.answers = always(404)
    form = {
        "tag": "orders", "url": receiver.url, "version": "2", "modes": "SENT", "check": "on",
        "headers": "X-Own: kept",
    }  # fmt: skip

    for changes, wrong in (
        ({}, "it answered 404"),
        ({"url": "ftp://somewhere"}, "absolute http or https address"),
        ({"modes": ""}, "is not present"),
        ({"headers": "no header"}, "is not a header"),
        ({"headers": "Host: elsewhere"}, "are ours to set"),
        ({"version": "2", "modes": "ALL"}, "beside ALL in version 2"),
        ({"tag": ""}, "tag"),
    ):
        body = {"csrf": await desk.csrf(), **form, **changes}
        async with desk.http.post(desk.base_url + f"{base(desk)}/new", data=body) as answer:
            page = await answer.text()
            assert answer.status == 400, changes
            assert wrong in page
            assert "is-wrong" in page
            assert f'value="{body["url"]}"' in page
    assert (await desk.admin.json("GET", "/admin/subscriptions"))["subscriptions"] == []


async def test_change_keeps_headers_that_it_does_not_name(desk: Desk, receiver: CallbackSink) -> None:
    meta = json.dumps({"note": "ours", "headers": {"X-One": "1", "X-Two": "2", "X-Three": "3"}})
    known = await subscribe(desk, receiver.url, meta=meta)
    page = await desk.get(f"{base(desk)}/subscriptions/{known}")
    assert "X-Two" in page
    form = {
        "tag": "renamed", "url": receiver.url, "version": "2", "modes": "SENT",
        "remove": "X-One", "headers": "x-two: 22\nX-Four: 4",
    }  # fmt: skip

    await desk.post(f"{base(desk)}/subscriptions/{known}", form)

    path = f"/partner/app/{desk.app_id}/subscription/{known}"
    held = (await desk.api.json("GET", path))["subscription"]
    assert (held["tag"], held["modes"]) == ("renamed", ["SENT"])
    assert json.loads(held["meta"]) == {"note": "ours", "headers": {"X-Three": "3", "x-two": "22", "X-Four": "4"}}
    await desk.post(f"{base(desk)}/subscriptions/{known}", {**form, "remove": "", "headers": "", "tag": "again"})
    assert json.loads((await desk.api.json("GET", path))["subscription"]["meta"])["note"] == "ours"


async def test_deleted_subscription_is_gone_and_what_it_was_told_is_still_shown(
    desk: Desk, receiver: CallbackSink
) -> None:
    known = await subscribe(desk, receiver.url)
    [got, *_] = await deliver(desk, receiver)

    await desk.post(f"{base(desk)}/subscriptions/{known}/delete")

    assert "No subscriptions yet" in await desk.get(base(desk))
    await desk.get(f"{base(desk)}/subscriptions/{known}", status=404)
    assert "deleted" in await desk.get(f"{base(desk)}/deliveries/{got.callback_id}")
    await desk.post(f"{base(desk)}/deliveries/{got.callback_id}/replay")
    assert len(told(receiver)) == 3


async def test_what_belongs_to_another_partner_is_nowhere(desk: Desk, receiver: CallbackSink) -> None:
    other_app, door = await _another_partner(desk)
    form = {"modes": MODES, "tag": "theirs", "url": receiver.url, "doCheck": "false"}
    made = await door.form("POST", f"/partner/app/{other_app}/subscription", form)
    theirs = int(made["subscription"]["id"])
    mine = await subscribe(desk, receiver.url)
    own = base(desk)
    of_one = f"{own}/subscriptions/{theirs}"

    for path in (f"/apps/{other_app}/callbacks", f"{of_one}", f"{of_one}/live", f"{own}/deliveries/0"):
        await desk.get(path, status=404)  # fmt: skip
    for act in ("", "/check", "/pause", "/resume", "/key", "/rotate", "/delete"):
        await desk.post(of_one + act, {"keep_old_for_s": "0"}, status=404)
    await desk.post(f"{own}/replay", {"subscription": str(theirs), "which": "both"}, status=403)
    assert (await desk.get(f"{own}/deliveries?subscription={theirs}")).count("<li id=") == 0

    assert receiver.tries == []
    assert (await standing(desk, theirs))["key_serial"] == 1
    assert (await standing(desk, mine))["active"] is True


async def _another_partner(desk: Desk) -> tuple[str, ApiClient]:
    partner = await desk.admin.json("POST", "/admin/partners", {"email": "bob@other.test", "name": "Other"})
    account = {"id": "98765", "operator_account_id": "demo", "namespace": "other"}
    await desk.admin.json("POST", "/admin/business-accounts", {**account, "partner_id": partner["id"]})
    made = await desk.admin.json(
        "POST",
        "/admin/apps",
        {
            "partner_id": partner["id"], "name": "OtherShop", "phone_number": "15559990000",
            "phone_number_id": "99", "business_account_id": "98765",
        },
    )  # fmt: skip
    return made["id"], ApiClient(HttpTransport(desk.base_url), {"Authorization": made["app_token"]})


async def test_callback_behind_an_open_circuit_says_since_when_and_until_when_and_replays_are_named(
    desk: Desk, receiver: CallbackSink
) -> None:
    receiver.answers = always(500)
    known = await subscribe(desk, receiver.url)
    message_id = await desk.send_text("Good morning")
    await patiently(lambda: standing(desk, known), lambda one: one["next_attempt_ms"] is not None)
    first = told(receiver)[0]
    delivery = f"{base(desk)}/deliveries/{first.callback_id}"
    trace = f"/apps/{desk.app_id}/messages/{message_id}"

    failing = "callbacks to orders have been failing since"
    assert failing in await desk.get(delivery)
    assert "<dt>Failing since</dt>" in await desk.get(trace)
    assert "orders" in await desk.get(base(desk))

    receiver.answers = always(200)
    await desk.control.json("POST", "/control/clock/advance", {"ms": 60_000})
    await patiently(lambda: standing(desk, known), lambda one: one["failing_since_ms"] is None)
    await patiently(lambda: desk.admin.json("GET", "/admin/queues"), lambda queues: not queues["callbacks"])
    assert failing not in await desk.get(delivery)
    count = len(told(receiver))
    await desk.admin.json("POST", "/admin/callbacks/replay", {"callback_id": first.callback_id})
    await receiver.wait_until(lambda: len(told(receiver)) == count + 1)
    page = await patiently(lambda: desk.get(delivery), lambda text: '<span class="try-kind">replay</span>' in text)

    assert '<span class="try-kind">initial</span>' in page
    assert "replayed 1 time since" in page
    assert "replayed" in await desk.get(f"{base(desk)}/deliveries")
    assert ", replayed later" in await desk.get(trace)
