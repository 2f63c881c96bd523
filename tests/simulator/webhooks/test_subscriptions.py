"""Webhook subscriptions: several apps of an account, URL overrides, secrets, and independent delivery."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import aiohttp.web
import pytest

from tests.simulator.conftest import ANN, APP, BUSINESS, NUMBER_ID, SECRET, TOKEN, WABA, Bench, Receiver
from tests.support.manual_clock import ManualClock
from waypost.base.ids import SeededIds
from waypost.simulator import IncompatibleFile, NumberSeed, Simulator, SimulatorSettings

OTHER_APP = "3000000000000033"
OTHER_TOKEN = "token-of-the-other-app"
OTHER_SECRET = "secret-of-the-other-app"
SECOND = NumberSeed("2000000000000022", WABA, "15550002222", "Shop Two")
HELLO: list[dict[str, Any]] = [{"type": "BODY", "text": "Hello there"}]


@pytest.fixture
async def other_receiver() -> AsyncIterator[Receiver]:
    other_receiver = Receiver()
    application = aiohttp.web.Application()
    application.router.add_route("*", "/hook", other_receiver.handle)
    runner = aiohttp.web.AppRunner(application)
    await runner.setup()
    await aiohttp.web.TCPSite(runner, "127.0.0.1", 0).start()
    other_receiver.uri = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    yield other_receiver
    await runner.cleanup()


async def create_other_app(bench: Bench, other_receiver: Receiver) -> None:
    webhook = {"callback_uri": other_receiver.uri, "verify_token": other_receiver.verify_token}
    token = {"waba_ids": [WABA], "token": OTHER_TOKEN, "app_id": OTHER_APP}
    for method, path, body in (
        ("PUT", f"apps/{OTHER_APP}", {"app_secret": OTHER_SECRET}),
        ("PUT", f"apps/{OTHER_APP}/webhook", webhook),
        ("POST", "tokens", token),
    ):
        response = await bench.control(method, path, body)
        assert response.status == 200, response.body


async def list_subscribers(bench: Bench, token: str = TOKEN) -> list[str]:
    listed = await bench.graph("GET", f"{WABA}/subscribed_apps", token=token)
    return [app["whatsapp_business_api_data"]["id"] for app in listed.body["data"]]


async def override_webhook_url(bench: Bench, number_id: str, uri: str, token: str = TOKEN) -> None:
    configuration = {"override_callback_uri": uri, "verify_token": "verify-me"}
    response = await bench.graph("POST", number_id, token, json={"webhook_configuration": configuration})
    assert response.body == {"success": True}


async def test_every_subscribed_app_gets_webhooks_signed_with_its_own_secret(
    bench: Bench, other_receiver: Receiver
) -> None:
    # Source: facts 1, "Webhook subscription".
    await create_other_app(bench, other_receiver)
    assert await list_subscribers(bench) == [APP]

    subscribed = await bench.graph("POST", f"{WABA}/subscribed_apps", token=OTHER_TOKEN)
    await bench.send_from_phone("to both")
    wamid = await bench.send_text()
    await bench.create_template(HELLO)

    assert subscribed.body == {"success": True}
    assert await list_subscribers(bench) == await list_subscribers(bench, OTHER_TOKEN) == [APP, OTHER_APP]
    for receiver, secret in ((bench.receiver, SECRET), (other_receiver, OTHER_SECRET)):
        await receiver.wait_until(lambda to=receiver: len(to.statuses(wamid)) == 2 and to.template_events())
        assert [message["text"]["body"] for message in receiver.messages()] == ["to both"]
        assert all(receiver.is_signed(post, secret) for post in receiver.posts)


async def test_app_ends_its_own_subscription_only(bench: Bench, other_receiver: Receiver) -> None:
    await create_other_app(bench, other_receiver)
    await bench.graph("POST", f"{WABA}/subscribed_apps", token=OTHER_TOKEN)

    await bench.graph("DELETE", f"{WABA}/subscribed_apps")
    await bench.send_from_phone("to the other")

    await other_receiver.wait_until(other_receiver.messages)
    assert await list_subscribers(bench) == [OTHER_APP]
    assert bench.receiver.posts == []
    await bench.wait_until_drained()


async def test_webhook_overrides_are_separate_for_each_app(bench: Bench, other_receiver: Receiver) -> None:
    await create_other_app(bench, other_receiver)
    await bench.graph("POST", f"{WABA}/subscribed_apps", token=OTHER_TOKEN)
    override = {"override_callback_uri": other_receiver.uri, "verify_token": other_receiver.verify_token}
    await bench.graph("POST", f"{WABA}/subscribed_apps", token=OTHER_TOKEN, json=override)
    await override_webhook_url(bench, NUMBER_ID, other_receiver.uri, OTHER_TOKEN)

    fields = f"{NUMBER_ID}?fields=webhook_configuration"
    own = await bench.graph("GET", fields)
    others = await bench.graph("GET", fields, token=OTHER_TOKEN)

    assert own.body["webhook_configuration"] == {"application": bench.receiver.uri}
    assert others.body["webhook_configuration"] == dict.fromkeys(
        ("phone_number", "whatsapp_business_account", "application"), other_receiver.uri
    )


async def test_second_app_can_upload_and_manage_its_subscriptions(bench: Bench, other_receiver: Receiver) -> None:
    await create_other_app(bench, other_receiver)
    query = {"file_length": "7", "file_type": "image/png", "file_name": "a"}
    key = f"{OTHER_APP}|{OTHER_SECRET}"

    upload = await bench.graph("POST", f"{OTHER_APP}/uploads", token=OTHER_TOKEN, params=query)
    listed = await bench.graph("GET", f"{OTHER_APP}/subscriptions", token=key)
    foreign = await bench.graph("GET", f"{APP}/subscriptions", token=key)

    assert upload.body["id"].startswith("upload:")
    assert listed.body["data"][0]["callback_url"] == other_receiver.uri
    assert foreign.error["error_subcode"] == 33


async def test_failing_webhook_url_of_a_number_delays_nothing_else(
    slow: Bench, clock: ManualClock, other_receiver: Receiver
) -> None:
    other_receiver.response_statuses = [500] * 3
    account_seed = {"name": "One", "token": TOKEN, "app_id": APP, "app_secret": SECRET}
    await slow.control("PUT", f"accounts/{WABA}", account_seed)
    number = {"waba_id": WABA, "phone_number": SECOND.phone_number, "name": "Two", "throughput": 80}
    await slow.control("PUT", f"numbers/{SECOND.phone_number_id}", number)
    await override_webhook_url(slow, SECOND.phone_number_id, other_receiver.uri)

    await slow.simulator.send_phone_text(phone=ANN, to=SECOND.phone_number, text="to the second")
    await other_receiver.wait_until(lambda: len(other_receiver.posts) == 2)
    await slow.simulator.send_phone_text(phone=ANN, to=BUSINESS, text="to the first")
    await slow.receiver.wait_until(slow.receiver.messages)
    await slow.restart()
    state = (await slow.control("GET", "state")).body["accounts"][0]
    clock.advance(ms=3_600_000)

    await other_receiver.wait_until(lambda: len(other_receiver.posts) == 3)
    outlets = {webhook["phone_number_id"]: webhook["failed_attempts"] for webhook in state["webhooks"]}
    assert outlets == {None: 0, SECOND.phone_number_id: 2}
    assert (state["failed_attempts"], state["last_failure"]) == (2, "status 500")
    assert [message["text"]["body"] for message in slow.receiver.messages()] == ["to the first"]


async def test_retry_of_a_subscription_ends_with_it(slow: Bench, other_receiver: Receiver) -> None:
    await create_other_app(slow, other_receiver)
    await slow.graph("POST", f"{WABA}/subscribed_apps", token=OTHER_TOKEN)
    other_receiver.response_statuses = [500] * 3
    await slow.send_from_phone("to a failing one")
    await other_receiver.wait_until(lambda: len(other_receiver.posts) == 2)

    await slow.graph("DELETE", f"{WABA}/subscribed_apps", token=OTHER_TOKEN)
    shown = (await slow.control("GET", "state")).body["accounts"][0]

    assert shown["failed_attempts"] == 0


async def test_post_that_fails_after_its_subscription_ended_counts_for_nothing(
    slow: Bench, other_receiver: Receiver
) -> None:
    await create_other_app(slow, other_receiver)
    await slow.graph("POST", f"{WABA}/subscribed_apps", token=OTHER_TOKEN)
    other_receiver.response_statuses = [500]
    other_receiver.may_respond.clear()
    await slow.send_from_phone("to a slow one")
    await other_receiver.wait_until(lambda: other_receiver.posts)

    await slow.graph("DELETE", f"{WABA}/subscribed_apps", token=OTHER_TOKEN)
    other_receiver.may_respond.set()
    await slow.wait_until_idle()
    shown = (await slow.control("GET", "state")).body["accounts"][0]

    assert (shown["failed_attempts"], shown["last_failure"]) == (0, None)


async def test_post_that_fails_after_its_number_lost_its_webhook_url_counts_for_nothing(
    slow: Bench, other_receiver: Receiver
) -> None:
    await override_webhook_url(slow, NUMBER_ID, other_receiver.uri)
    other_receiver.response_statuses = [500]
    other_receiver.may_respond.clear()
    await slow.send_from_phone("to a slow one")
    await other_receiver.wait_until(lambda: other_receiver.posts)

    await override_webhook_url(slow, NUMBER_ID, "")
    other_receiver.may_respond.set()
    await slow.receiver.wait_until(slow.receiver.messages)
    await slow.wait_until_idle()
    shown = (await slow.control("GET", "state")).body["accounts"][0]

    assert (shown["failed_attempts"], shown["last_failure"]) == (0, None)


async def test_post_that_fails_at_a_former_webhook_url_does_not_delay_the_new_one(
    slow: Bench, clock: ManualClock, other_receiver: Receiver
) -> None:
    slow.receiver.response_statuses = [500] * 3
    await slow.send_from_phone("urgent")
    await slow.wait_for_account(lambda account: account["failed_attempts"] == 2)
    slow.receiver.may_respond.clear()
    clock.advance(ms=500)
    await slow.receiver.wait_until(lambda: len(slow.receiver.posts) == 3)

    webhook = {"callback_uri": other_receiver.uri, "verify_token": other_receiver.verify_token}
    changed = await slow.control("PUT", f"apps/{APP}/webhook", webhook)
    slow.receiver.may_respond.set()

    assert changed.status == 200, changed.body
    await other_receiver.wait_until(other_receiver.messages)


async def test_waiting_updates_go_to_the_account_when_a_number_loses_its_webhook_url(
    slow: Bench, other_receiver: Receiver
) -> None:
    other_receiver.response_statuses = [500] * 9
    await override_webhook_url(slow, NUMBER_ID, other_receiver.uri)
    await slow.send_from_phone("left behind")
    await other_receiver.wait_until(lambda: len(other_receiver.posts) == 2)

    await override_webhook_url(slow, NUMBER_ID, "")

    await slow.receiver.wait_until(slow.receiver.messages)
    assert slow.receiver.messages()[0]["text"]["body"] == "left behind"
    await slow.wait_until_drained()


async def test_subscriptions_survive_a_restart_that_seeds_again(bench: Bench, other_receiver: Receiver) -> None:
    await create_other_app(bench, other_receiver)
    await bench.graph("POST", f"{WABA}/subscribed_apps", token=OTHER_TOKEN)
    await bench.graph("DELETE", f"{WABA}/subscribed_apps")

    await bench.restart()
    await bench.send_from_phone("after it")

    await other_receiver.wait_until(other_receiver.messages)
    assert await list_subscribers(bench, OTHER_TOKEN) == [OTHER_APP]
    assert bench.receiver.posts == []


async def test_fault_may_be_armed_for_one_of_two_apps(bench: Bench, other_receiver: Receiver) -> None:
    await create_other_app(bench, other_receiver)
    await bench.graph("POST", f"{WABA}/subscribed_apps", token=OTHER_TOKEN)
    fault = {"on": "webhook", "app": OTHER_APP, "what": {"drop": True}}
    armed = await bench.control("POST", "faults", fault)

    await bench.send_from_phone("for one only")

    await bench.receiver.wait_until(bench.receiver.messages)
    await bench.wait_until_drained()
    assert armed.status == 200, armed.body
    assert other_receiver.posts == []


async def test_file_of_an_earlier_version_is_rejected_with_instructions(tmp_path: Path, clock: ManualClock) -> None:
    settings = SimulatorSettings(tmp_path / "simulator.sqlite3")
    connection = sqlite3.connect(settings.path)
    connection.execute("CREATE TABLE outbox (waba_id TEXT)")
    connection.close()
    simulator = Simulator(settings, clock, SeededIds(clock, "tests"))

    with pytest.raises(IncompatibleFile, match="start with an empty folder"):
        await simulator.open()

    await simulator.close()


async def subscribe_fields(bench: Bench, *fields: str) -> None:
    uri = {"callback_url": bench.receiver.uri, "verify_token": bench.receiver.verify_token}
    query = {"object": "whatsapp_business_account", **uri, "fields": fields}
    response = await bench.graph("POST", f"{APP}/subscriptions", f"{APP}|{SECRET}", json=query)
    assert response.body == {"success": True}


async def listed_fields(bench: Bench) -> list[str]:
    listed = await bench.graph("GET", f"{APP}/subscriptions", f"{APP}|{SECRET}")
    return [field["name"] for subscription in listed.body["data"] for field in subscription["fields"]]


async def emit_update(bench: Bench, field: str) -> bool:
    response = await bench.control("POST", f"accounts/{WABA}/webhooks", {"field": field, "value": {"event": "X"}})
    return response.body["queued"]


async def test_only_subscribed_fields_are_sent_and_listed(bench: Bench) -> None:
    # Source: the operator's page "App subscriptions".
    await subscribe_fields(bench, "account_update")

    await bench.send_from_phone("unheard")
    await bench.send_text("no statuses")
    await bench.create_template(HELLO)
    queued = [await emit_update(bench, field) for field in ("account_alerts", "account_update")]
    await bench.wait_until_drained()

    assert await listed_fields(bench) == ["account_update"]
    assert queued == [False, True]
    assert [
        change["field"] for post in bench.receiver.posts for entry in post.value["entry"] for change in entry["changes"]
    ] == ["account_update"]


async def test_later_subscription_to_messages_gets_the_later_ones(bench: Bench) -> None:
    await subscribe_fields(bench, "account_update")
    await bench.send_from_phone("unheard")
    await bench.wait_until_drained()

    await subscribe_fields(bench, "messages", "message_template_status_update")
    await bench.send_from_phone("heard")

    await bench.receiver.wait_until(bench.receiver.messages)
    assert [message["text"]["body"] for message in bench.receiver.messages()] == ["heard"]
    assert await listed_fields(bench) == ["messages", "message_template_status_update"]


async def test_fields_can_be_unsubscribed_one_by_one(bench: Bench) -> None:
    await subscribe_fields(bench, "messages", "account_update")

    await bench.graph("DELETE", f"{APP}/subscriptions", f"{APP}|{SECRET}", params={"fields": "messages"})
    without_messages = await listed_fields(bench)
    await bench.graph("DELETE", f"{APP}/subscriptions", f"{APP}|{SECRET}", params={"fields": '["account_update"]'})

    assert without_messages == ["account_update"]
    assert await listed_fields(bench) == []


@pytest.mark.parametrize("fields", ["", [], "message", ["messages", "statuses"]])
async def test_subscription_names_known_fields(bench: Bench, fields: object) -> None:
    uri = {"callback_url": bench.receiver.uri, "verify_token": bench.receiver.verify_token}
    body = {"object": "whatsapp_business_account", **uri, "fields": fields}

    rejected = await bench.graph("POST", f"{APP}/subscriptions", f"{APP}|{SECRET}", json=body)

    assert (rejected.status, rejected.error["code"]) == (400, 100)
    assert "fields" in rejected.error["message"]


async def test_fields_survive_a_restart_and_a_new_url(bench: Bench) -> None:
    await subscribe_fields(bench, "account_update")

    await bench.restart()
    kept = await listed_fields(bench)
    webhook = {"callback_uri": bench.receiver.uri, "verify_token": bench.receiver.verify_token}
    await bench.control("PUT", f"apps/{APP}/webhook", webhook)
    same = await listed_fields(bench)
    chosen = await bench.control("PUT", f"apps/{APP}/webhook", {**webhook, "fields": ["messages"]})

    assert kept == same == ["account_update"]
    assert chosen.body["fields"] == await listed_fields(bench) == ["messages"]


@pytest.mark.parametrize("is_of_number", [False, True], ids=["account", "number"])
async def test_override_needs_a_subscription_to_messages(bench: Bench, is_of_number: bool) -> None:
    # Source: the operator's page "Override webhooks".
    override = {"override_callback_uri": bench.receiver.uri, "verify_token": bench.receiver.verify_token}
    path, body = (
        (NUMBER_ID, {"webhook_configuration": override}) if is_of_number else (f"{WABA}/subscribed_apps", override)
    )

    await bench.graph("DELETE", f"{APP}/subscriptions", f"{APP}|{SECRET}")
    unsubscribed = await bench.graph("POST", path, json=body)
    await subscribe_fields(bench, "account_update")
    without_messages = await bench.graph("POST", path, json=body)
    await subscribe_fields(bench, "messages")
    await bench.graph("DELETE", f"{WABA}/subscribed_apps")
    without_account = await bench.graph("POST", path, json=body)
    await bench.graph("POST", f"{WABA}/subscribed_apps")
    subscribed = await bench.graph("POST", path, json=body)

    for rejected in (unsubscribed, without_messages, without_account):
        assert (rejected.status, rejected.error["code"]) == (400, 100)
        assert "Before override the current callback uri" in rejected.error["message"]
    assert subscribed.body == {"success": True}


async def test_plain_subscription_of_an_account_needs_no_subscription_of_the_app(bench: Bench) -> None:
    await bench.graph("DELETE", f"{APP}/subscriptions", f"{APP}|{SECRET}")

    response = await bench.graph("POST", f"{WABA}/subscribed_apps")

    assert response.body == {"success": True}
