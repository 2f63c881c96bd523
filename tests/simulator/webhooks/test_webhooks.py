"""Webhooks: signatures, batches, order, retries, and restarts."""

import asyncio
from pathlib import Path

import aiohttp
import aiohttp.web

from tests.simulator.conftest import ANN, SECRET, WABA, Bench, Receiver, make_bench
from tests.support.manual_clock import ManualClock
from waypost.simulator import AccountSeed, NumberSeed

HELLO = [{"type": "BODY", "text": "Hello there"}]
APP = "3000000000000003"


async def test_signature_covers_the_body_with_escaped_characters(bench: Bench) -> None:
    await bench.send_from_phone("Grüße \U0001f600")

    await bench.receiver.wait_until(bench.receiver.messages)
    [post] = bench.receiver.posts
    assert post.body.isascii()
    assert b"Gr\\u00fc\\u00dfe \\ud83d\\ude00" in post.body
    assert b'": ' not in post.body
    assert bench.receiver.is_signed(post)
    assert bench.receiver.messages()[0]["text"]["body"] == "Grüße \U0001f600"


async def test_envelope_has_the_documented_shape(bench: Bench) -> None:
    wamid = await bench.send_from_phone("Hi")

    await bench.receiver.wait_until(bench.receiver.messages)
    value = bench.receiver.posts[0].value
    assert value["object"] == "whatsapp_business_account"
    [entry] = value["entry"]
    assert entry["id"] == WABA
    assert "time" not in entry
    [change] = entry["changes"]
    assert change["field"] == "messages"
    assert change["value"]["messaging_product"] == "whatsapp"
    assert change["value"]["contacts"][0]["wa_id"] == ANN
    assert change["value"]["messages"][0]["id"] == wamid


async def test_due_updates_are_sent_in_ordered_batches(slow: Bench, clock: ManualClock) -> None:
    await slow.control("PUT", "settings", {"batch_at_most": 4, "limits": False})
    await slow.send_from_phone()
    await slow.receiver.wait_until(slow.receiver.messages)
    wamids = [await slow.send_text(str(number)) for number in range(6)]
    await slow.receiver.wait_until(lambda: len(slow.receiver.statuses()) == 6)
    slow.receiver.posts.clear()

    clock.advance(ms=1000)

    await slow.receiver.wait_until(lambda: len(slow.receiver.statuses()) == 6)
    assert [status["id"] for status in slow.receiver.statuses()] == wamids
    assert [len(value["statuses"]) for value in slow.receiver.changes()] == [4, 2]


async def test_batch_size_of_one_sends_one_update_per_post(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"batch_at_most": 1})
    await bench.send_from_phone()
    await bench.send_text()

    await bench.receiver.wait_until(lambda: len(bench.receiver.posts) == 3)
    assert len(bench.receiver.statuses()) == 2


async def test_rejected_batch_is_retried_until_accepted(bench: Bench) -> None:
    bench.receiver.response_statuses = [500, 503]
    await bench.send_from_phone()

    await bench.receiver.wait_until(lambda: len(bench.receiver.posts) == 3)
    bodies = {post.body for post in bench.receiver.posts}
    assert len(bodies) == 1
    await wait_until_all_sent(bench)


async def test_retry_delays_grow_and_survive_a_restart(slow: Bench, clock: ManualClock) -> None:
    slow.receiver.response_statuses = [500] * 4
    await slow.send_from_phone()
    await slow.wait_for_account(lambda account: account["failed_attempts"] == 2)
    clock.advance(ms=500)
    await slow.receiver.wait_until(lambda: len(slow.receiver.posts) == 3)
    await slow.wait_for_account(lambda account: account["failed_attempts"] == 3)

    await slow.restart()
    state = await slow.control("GET", "state")
    clock.advance(ms=1000)
    await slow.receiver.wait_until(lambda: len(slow.receiver.posts) == 4)
    await slow.wait_for_account(lambda account: account["failed_attempts"] == 4)
    clock.advance(ms=2000)
    await slow.receiver.wait_until(lambda: len(slow.receiver.posts) == 5)

    [account] = state.body["accounts"]
    assert account["failed_attempts"] == 3
    assert account["next_attempt_ms"] == clock.now_ms() - 2000
    assert account["last_failure"] == "status 500"
    await wait_until_all_sent(slow)


async def test_updates_older_than_seven_days_are_dropped(slow: Bench, clock: ManualClock) -> None:
    slow.receiver.response_statuses = [500, 500]
    await slow.send_from_phone()
    await slow.receiver.wait_until(lambda: len(slow.receiver.posts) == 2)
    await slow.wait_for_account(lambda account: account["failed_attempts"] == 2)

    clock.advance(ms=7 * 24 * 3600 * 1000 + 1)

    await slow.wait_for_account(lambda account: account["updates_waiting"] == 0)
    assert len(slow.receiver.posts) == 2


async def test_nothing_accepted_is_lost_by_a_restart(slow: Bench, clock: ManualClock) -> None:
    slow.receiver.response_statuses = [500, 500]
    await slow.control("PUT", f"phones/{ANN}", {"read_after_ms": 3000, "name": "Ann"})
    await slow.control("PUT", "settings", {"batch_at_most": 7})
    await slow.send_from_phone()
    created = await slow.create_template(HELLO)
    wamid = await slow.send_text(biz_opaque_callback_data="kept")
    await slow.wait_for_account(lambda account: account["failed_attempts"] == 2)

    await slow.restart()
    for _ in range(4):
        clock.advance(ms=1000)
        await asyncio.sleep(0.02)
    await slow.receiver.wait_until(lambda: len(slow.receiver.statuses(wamid)) >= 3)
    clock.advance(ms=60_000)
    await slow.receiver.wait_until(slow.receiver.template_events)
    inside = await slow.send_text("the window is still open")
    clock.advance(ms=1000)
    await slow.receiver.wait_until(lambda: slow.receiver.statuses(inside))

    statuses = {status["status"] for status in slow.receiver.statuses(wamid)}
    assert statuses == {"sent", "delivered", "read"}
    assert slow.receiver.template_events()[0]["message_template_id"] == int(created.body["id"])
    assert slow.receiver.statuses(inside)[0]["status"] == "sent"
    state = await slow.control("GET", "state")
    assert state.body["settings"]["batch_at_most"] == 7
    inbox = await slow.control("GET", f"phones/{ANN}")
    assert inbox.body["name"] == "Ann"
    assert [message["state"] for message in inbox.body["messages"]][1:] == ["read", "delivered"]


async def test_waiting_updates_can_be_retried_at_once(slow: Bench) -> None:
    slow.receiver.response_statuses = [500, 500]
    await slow.send_from_phone()
    await slow.wait_for_account(lambda account: account["failed_attempts"] == 2)

    response = await slow.control("POST", f"accounts/{WABA}/retry")
    unknown = await slow.control("POST", "accounts/9/retry")

    await slow.receiver.wait_until(lambda: len(slow.receiver.posts) == 3)
    assert (response.status, unknown.status) == (200, 404)


async def test_failing_account_does_not_delay_others(bench: Bench, tmp_path: Path, http: aiohttp.ClientSession) -> None:
    bench.receiver.response_statuses = [500] * 100
    other = Receiver()
    runner = aiohttp.web.AppRunner(_application(other))
    await runner.setup()
    await aiohttp.web.TCPSite(runner, "127.0.0.1", 0).start()
    uri = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    second = AccountSeed("1000000000000011", "Two", "", "t2", "3000000000000033", "s2", "v", uri)
    numbers = [NumberSeed("2000000000000022", second.waba_id, "15550002222", "Shop Two")]
    await bench.simulator.seed(second, numbers)
    await bench.send_from_phone()

    await bench.simulator.send_phone_text(phone=ANN, to="15550002222", text="to two")

    await other.wait_until(other.messages)
    assert other.is_signed(other.posts[0], "s2")
    assert other.changes()[0]["metadata"]["phone_number_id"] == "2000000000000022"
    await runner.cleanup()


async def test_webhook_url_is_accepted_after_verification(bench: Bench) -> None:
    webhook = {"callback_uri": bench.receiver.uri, "verify_token": bench.receiver.verify_token}

    good = await bench.control("PUT", f"apps/{APP}/webhook", webhook)
    wrong = await bench.control("PUT", f"apps/{APP}/webhook", {**webhook, "verify_token": "x"})
    unreachable = {**webhook, "callback_uri": "http://127.0.0.1:9/hook"}
    closed = await bench.control("PUT", f"apps/{APP}/webhook", unreachable)

    assert good.status == 200
    assert wrong.status == closed.status == 422
    assert "403" in wrong.body["rule"]
    assert "could not be reached" in closed.body["rule"]


async def test_account_may_override_the_webhook_url(bench: Bench, receiver: Receiver) -> None:
    webhook = {"override_callback_uri": receiver.uri, "verify_token": receiver.verify_token}

    response = await bench.graph("POST", f"{WABA}/subscribed_apps", json=webhook)
    listed = await bench.graph("GET", f"{WABA}/subscribed_apps")
    bad = await bench.graph("POST", f"{WABA}/subscribed_apps", json={**webhook, "verify_token": "x"})

    assert response.body == {"success": True}
    [app] = listed.body["data"]
    assert app["whatsapp_business_api_data"]["id"] == APP
    assert app["override_callback_uri"] == receiver.uri
    assert (bad.status, bad.error["code"]) == (400, 2200)


async def test_account_without_subscription_sends_no_webhooks(bench: Bench) -> None:
    await bench.graph("DELETE", f"{WABA}/subscribed_apps")
    await bench.send_from_phone("unsubscribed")
    empty = await bench.graph("GET", f"{WABA}/subscribed_apps")
    await bench.graph("POST", f"{WABA}/subscribed_apps")
    await bench.send_from_phone("subscribed")

    await bench.receiver.wait_until(bench.receiver.messages)
    assert empty.body == {"data": []}
    assert [message["text"]["body"] for message in bench.receiver.messages()] == ["subscribed"]


async def test_webhooks_are_signed_with_the_current_app_secret(bench: Bench) -> None:
    account = {"name": "One", "token": "token-of-one", "app_id": APP, "app_secret": "changed"}
    await bench.control("PUT", f"accounts/{WABA}", account)

    await bench.send_from_phone()

    await bench.receiver.wait_until(bench.receiver.messages)
    assert bench.receiver.is_signed(bench.receiver.posts[0], "changed")
    assert not bench.receiver.is_signed(bench.receiver.posts[0], SECRET)


async def test_updates_are_gathered_between_posts(
    tmp_path: Path, receiver: Receiver, http: aiohttp.ClientSession, clock: ManualClock
) -> None:
    bench = make_bench(tmp_path, clock, receiver, http, gather_ms=150, limits=False)
    await bench.start()
    await bench.send_from_phone()
    await receiver.wait_until(receiver.messages)
    for number in range(5):
        await bench.send_text(str(number))

    await receiver.wait_until(lambda: len(receiver.statuses()) == 10)
    await bench.stop()

    assert len(receiver.posts) == 2


def _application(receiver: Receiver) -> aiohttp.web.Application:
    application = aiohttp.web.Application()
    application.router.add_route("*", "/hook", receiver.handle)
    return application


async def wait_until_all_sent(bench: Bench) -> None:
    await bench.wait_for_account(lambda account: account["updates_waiting"] == 0)
    state = await bench.control("GET", "state")
    assert state.body["counts"]["outbox"] == 0
