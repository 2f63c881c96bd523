"""Webhooks: signed, batched, in order, tried again, and surviving a stop."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import aiohttp.web

from tests.simulator.conftest import ANN, SECRET, WABA, Bench, Receiver, make_bench
from tests.support.waiting import HANGS_AFTER_S
from waypost.base.clock import ManualClock
from waypost.simulator import AccountSeed, NumberSeed

HELLO = [{"type": "BODY", "text": "Hello there"}]
APP = "3000000000000003"


async def test_signature_is_over_bytes_with_everything_escaped(bench: Bench) -> None:
    await bench.let_write("Grüße \U0001f600")

    await bench.receiver.until(bench.receiver.messages)
    [post] = bench.receiver.posts
    assert post.body.isascii()
    assert b"Gr\\u00fc\\u00dfe \\ud83d\\ude00" in post.body
    assert b'": ' not in post.body
    assert bench.receiver.is_signed(post)
    assert bench.receiver.messages()[0]["text"]["body"] == "Grüße \U0001f600"


async def test_envelope_has_the_documented_shape(bench: Bench) -> None:
    wamid = await bench.let_write("Hi")

    await bench.receiver.until(bench.receiver.messages)
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


async def test_due_updates_travel_in_batches_in_order(slow: Bench, manual: ManualClock) -> None:
    await slow.control("PUT", "settings", {"batch_at_most": 4, "limits": False})
    await slow.let_write()
    await slow.receiver.until(slow.receiver.messages)
    wamids = [await slow.send_text(str(number)) for number in range(6)]
    await slow.receiver.until(lambda: len(slow.receiver.statuses()) == 6)
    slow.receiver.posts.clear()

    manual.advance(ms=1000)

    await slow.receiver.until(lambda: len(slow.receiver.statuses()) == 6)
    assert [one["id"] for one in slow.receiver.statuses()] == wamids
    assert [len(value["statuses"]) for value in slow.receiver.changes()] == [4, 2]


async def test_batches_of_one_carry_one_update(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"batch_at_most": 1})
    await bench.let_write()
    await bench.send_text()

    await bench.receiver.until(lambda: len(bench.receiver.posts) == 3)
    assert len(bench.receiver.statuses()) == 2


async def test_refused_batch_is_tried_again_until_it_is_taken(bench: Bench) -> None:
    bench.receiver.answers = [500, 503]
    await bench.let_write()

    await bench.receiver.until(lambda: len(bench.receiver.posts) == 3)
    bodies = {post.body for post in bench.receiver.posts}
    assert len(bodies) == 1
    await _until_empty(bench)


async def test_waits_grow_and_outlive_a_restart(slow: Bench, manual: ManualClock) -> None:
    slow.receiver.answers = [500] * 4
    await slow.let_write()
    await _until(slow, lambda account: account["failed_attempts"] == 2)
    manual.advance(ms=500)
    await slow.receiver.until(lambda: len(slow.receiver.posts) == 3)
    await _until(slow, lambda account: account["failed_attempts"] == 3)

    await slow.restart()
    state = await slow.control("GET", "state")
    manual.advance(ms=1000)
    await slow.receiver.until(lambda: len(slow.receiver.posts) == 4)
    await _until(slow, lambda account: account["failed_attempts"] == 4)
    manual.advance(ms=2000)
    await slow.receiver.until(lambda: len(slow.receiver.posts) == 5)

    [account] = state.body["accounts"]
    assert account["failed_attempts"] == 3
    assert account["next_attempt_ms"] == manual.now_ms() - 2000
    assert account["last_failure"] == "status 500"
    await _until_empty(slow)


async def test_updates_older_than_seven_days_are_dropped(slow: Bench, manual: ManualClock) -> None:
    slow.receiver.answers = [500, 500]
    await slow.let_write()
    await slow.receiver.until(lambda: len(slow.receiver.posts) == 2)
    await _until(slow, lambda account: account["failed_attempts"] == 2)

    manual.advance(ms=7 * 24 * 3600 * 1000 + 1)

    await _until(slow, lambda account: account["updates_waiting"] == 0)
    assert len(slow.receiver.posts) == 2


async def test_nothing_that_was_answered_is_lost_by_a_restart(slow: Bench, manual: ManualClock) -> None:
    slow.receiver.answers = [500, 500]
    await slow.control("PUT", f"phones/{ANN}", {"read_after_ms": 3000, "name": "Ann"})
    await slow.control("PUT", "settings", {"batch_at_most": 7})
    await slow.let_write()
    created = await slow.create(HELLO)
    wamid = await slow.send_text(biz_opaque_callback_data="kept")
    await _until(slow, lambda account: account["failed_attempts"] == 2)

    await slow.restart()
    for _ in range(4):
        manual.advance(ms=1000)
        await asyncio.sleep(0.02)
    await slow.receiver.until(lambda: len(slow.receiver.statuses(wamid)) >= 3)
    manual.advance(ms=60_000)
    await slow.receiver.until(slow.receiver.templates)
    inside = await slow.send_text("the window is still open")
    manual.advance(ms=1000)
    await slow.receiver.until(lambda: slow.receiver.statuses(inside))

    kinds = {one["status"] for one in slow.receiver.statuses(wamid)}
    assert kinds == {"sent", "delivered", "read"}
    assert slow.receiver.templates()[0]["message_template_id"] == int(created.body["id"])
    assert slow.receiver.statuses(inside)[0]["status"] == "sent"
    state = await slow.control("GET", "state")
    assert state.body["settings"]["batch_at_most"] == 7
    inbox = await slow.control("GET", f"phones/{ANN}")
    assert inbox.body["name"] == "Ann"
    assert [one["state"] for one in inbox.body["messages"]][1:] == ["read", "delivered"]


async def test_waiting_updates_can_be_sent_for_now(slow: Bench) -> None:
    slow.receiver.answers = [500, 500]
    await slow.let_write()
    await _until(slow, lambda account: account["failed_attempts"] == 2)

    answer = await slow.control("POST", f"accounts/{WABA}/retry")
    unknown = await slow.control("POST", "accounts/9/retry")

    await slow.receiver.until(lambda: len(slow.receiver.posts) == 3)
    assert (answer.status, unknown.status) == (200, 404)


async def test_slow_account_holds_up_only_itself(bench: Bench, tmp_path: Path, http: aiohttp.ClientSession) -> None:
    bench.receiver.answers = [500] * 100
    other = Receiver()
    runner = aiohttp.web.AppRunner(_application(other))
    await runner.setup()
    await aiohttp.web.TCPSite(runner, "127.0.0.1", 0).start()
    uri = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    second = AccountSeed("1000000000000011", "Two", "", "t2", "3000000000000033", "s2", "v", uri)
    numbers = [NumberSeed("2000000000000022", second.waba_id, "15550002222", "Shop Two")]
    await bench.simulator.seed(second, numbers)
    await bench.let_write()

    await bench.simulator.send_phone_text(phone=ANN, to="15550002222", text="to two")

    await other.until(other.messages)
    assert other.is_signed(other.posts[0], "s2")
    assert other.changes()[0]["metadata"]["phone_number_id"] == "2000000000000022"
    await runner.cleanup()


async def test_address_is_taken_after_its_handshake(bench: Bench) -> None:
    shape = {"callback_uri": bench.receiver.uri, "verify_token": bench.receiver.verify_token}

    good = await bench.control("PUT", f"apps/{APP}/webhook", shape)
    wrong = await bench.control("PUT", f"apps/{APP}/webhook", {**shape, "verify_token": "x"})
    nowhere = {**shape, "callback_uri": "http://127.0.0.1:9/hook"}
    closed = await bench.control("PUT", f"apps/{APP}/webhook", nowhere)

    assert good.status == 200
    assert wrong.status == closed.status == 422
    assert "403" in wrong.body["rule"]
    assert "could not be asked" in closed.body["rule"]


async def test_account_may_have_an_address_of_its_own(bench: Bench, receiver: Receiver) -> None:
    shape = {"override_callback_uri": receiver.uri, "verify_token": receiver.verify_token}

    answer = await bench.graph("POST", f"{WABA}/subscribed_apps", json=shape)
    listed = await bench.graph("GET", f"{WABA}/subscribed_apps")
    bad = await bench.graph("POST", f"{WABA}/subscribed_apps", json={**shape, "verify_token": "x"})

    assert answer.body == {"success": True}
    [app] = listed.body["data"]
    assert app["whatsapp_business_api_data"]["id"] == APP
    assert app["override_callback_uri"] == receiver.uri
    assert (bad.status, bad.error["code"]) == (400, 2200)


async def test_nobody_hears_of_an_account_without_subscription(bench: Bench) -> None:
    await bench.graph("DELETE", f"{WABA}/subscribed_apps")
    await bench.let_write("unheard")
    empty = await bench.graph("GET", f"{WABA}/subscribed_apps")
    await bench.graph("POST", f"{WABA}/subscribed_apps")
    await bench.let_write("heard")

    await bench.receiver.until(bench.receiver.messages)
    assert empty.body == {"data": []}
    assert [one["text"]["body"] for one in bench.receiver.messages()] == ["heard"]


async def test_secret_of_the_app_signs(bench: Bench) -> None:
    shape = {"name": "One", "token": "token-of-one", "app_id": APP, "app_secret": "changed"}
    await bench.control("PUT", f"accounts/{WABA}", shape)

    await bench.let_write()

    await bench.receiver.until(bench.receiver.messages)
    assert bench.receiver.is_signed(bench.receiver.posts[0], "changed")
    assert not bench.receiver.is_signed(bench.receiver.posts[0], SECRET)


async def test_updates_gather_between_posts(
    tmp_path: Path, receiver: Receiver, http: aiohttp.ClientSession, manual: ManualClock
) -> None:
    bench = make_bench(tmp_path, manual, receiver, http, gather_ms=150, limits=False)
    await bench.start()
    await bench.let_write()
    await receiver.until(receiver.messages)
    for number in range(5):
        await bench.send_text(str(number))

    await receiver.until(lambda: len(receiver.statuses()) == 10)
    await bench.stop()

    assert len(receiver.posts) == 2


def _application(receiver: Receiver) -> aiohttp.web.Application:
    application = aiohttp.web.Application()
    application.router.add_route("*", "/hook", receiver.handle)
    return application


async def _until_empty(bench: Bench) -> None:
    await _until(bench, lambda account: account["updates_waiting"] == 0)
    state = await bench.control("GET", "state")
    assert state.body["counts"]["outbox"] == 0


async def _until(bench: Bench, is_so: Callable[[dict[str, Any]], bool]) -> None:
    async with asyncio.timeout(HANGS_AFTER_S):
        while True:
            state = await bench.control("GET", "state")
            if is_so(state.body["accounts"][0]):
                return
            await asyncio.sleep(0.01)
