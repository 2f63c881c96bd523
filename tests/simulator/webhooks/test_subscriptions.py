"""Which apps hear of an account, and at which addresses: each app with its secret, none held up by another."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import aiohttp.web
import pytest

from tests.simulator.conftest import ANN, APP, BUSINESS, NUMBER_ID, SECRET, TOKEN, WABA, Bench, Receiver
from waypost.base.clock import ManualClock
from waypost.base.ids import SeededIds
from waypost.simulator import IncompatibleFile, NumberSeed, Simulator, SimulatorSettings

OTHER_APP = "3000000000000033"
OTHER_TOKEN = "token-of-the-other-app"
OTHER_SECRET = "secret-of-the-other-app"
SECOND = NumberSeed("2000000000000022", WABA, "15550002222", "Shop Two")
HELLO: list[dict[str, Any]] = [{"type": "BODY", "text": "Hello there"}]


@pytest.fixture
async def other() -> AsyncIterator[Receiver]:
    other = Receiver()
    application = aiohttp.web.Application()
    application.router.add_route("*", "/hook", other.handle)
    runner = aiohttp.web.AppRunner(application)
    await runner.setup()
    await aiohttp.web.TCPSite(runner, "127.0.0.1", 0).start()
    other.uri = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    yield other
    await runner.cleanup()


async def make_other_app(bench: Bench, other: Receiver) -> None:
    hook = {"callback_uri": other.uri, "verify_token": other.verify_token}
    token = {"waba_ids": [WABA], "token": OTHER_TOKEN, "app_id": OTHER_APP}
    for method, path, body in (
        ("PUT", f"apps/{OTHER_APP}", {"app_secret": OTHER_SECRET}),
        ("PUT", f"apps/{OTHER_APP}/webhook", hook),
        ("POST", "tokens", token),
    ):
        answer = await bench.control(method, path, body)
        assert answer.status == 200, answer.body


async def subscribers(bench: Bench, token: str = TOKEN) -> list[str]:
    listed = await bench.graph("GET", f"{WABA}/subscribed_apps", token=token)
    return [one["whatsapp_business_api_data"]["id"] for one in listed.body["data"]]


async def override(bench: Bench, number_id: str, uri: str, token: str = TOKEN) -> None:
    wish = {"override_callback_uri": uri, "verify_token": "verify-me"}
    answer = await bench.graph("POST", number_id, token, json={"webhook_configuration": wish})
    assert answer.body == {"success": True}


async def test_every_app_hears_of_an_account_and_is_signed_with_its_own_secret(bench: Bench, other: Receiver) -> None:
    # Source: facts 1, "Webhook subscription".
    await make_other_app(bench, other)
    assert await subscribers(bench) == [APP]

    subscribed = await bench.graph("POST", f"{WABA}/subscribed_apps", token=OTHER_TOKEN)
    await bench.let_write("to both")
    wamid = await bench.send_text()
    await bench.create(HELLO)

    assert subscribed.body == {"success": True}
    assert await subscribers(bench) == await subscribers(bench, OTHER_TOKEN) == [APP, OTHER_APP]
    for receiver, secret in ((bench.receiver, SECRET), (other, OTHER_SECRET)):
        await receiver.until(lambda to=receiver: len(to.statuses(wamid)) == 2 and to.templates())
        assert [one["text"]["body"] for one in receiver.messages()] == ["to both"]
        assert all(receiver.is_signed(post, secret) for post in receiver.posts)


async def test_app_ends_its_own_subscription_only(bench: Bench, other: Receiver) -> None:
    await make_other_app(bench, other)
    await bench.graph("POST", f"{WABA}/subscribed_apps", token=OTHER_TOKEN)

    await bench.graph("DELETE", f"{WABA}/subscribed_apps")
    await bench.let_write("to the other")

    await other.until(other.messages)
    assert await subscribers(bench) == [OTHER_APP]
    assert bench.receiver.posts == []
    await bench.drained()


async def test_overrides_are_an_apps_own(bench: Bench, other: Receiver) -> None:
    await make_other_app(bench, other)
    shape = {"override_callback_uri": other.uri, "verify_token": other.verify_token}
    await bench.graph("POST", f"{WABA}/subscribed_apps", token=OTHER_TOKEN, json=shape)
    await override(bench, NUMBER_ID, other.uri, OTHER_TOKEN)

    fields = f"{NUMBER_ID}?fields=webhook_configuration"
    own = await bench.graph("GET", fields)
    others = await bench.graph("GET", fields, token=OTHER_TOKEN)

    assert own.body["webhook_configuration"] == {"application": bench.receiver.uri}
    assert others.body["webhook_configuration"] == dict.fromkeys(
        ("phone_number", "whatsapp_business_account", "application"), other.uri
    )


async def test_second_app_uploads_and_sets_itself_up(bench: Bench, other: Receiver) -> None:
    await make_other_app(bench, other)
    query = {"file_length": "7", "file_type": "image/png", "file_name": "a"}
    key = f"{OTHER_APP}|{OTHER_SECRET}"

    upload = await bench.graph("POST", f"{OTHER_APP}/uploads", token=OTHER_TOKEN, params=query)
    listed = await bench.graph("GET", f"{OTHER_APP}/subscriptions", token=key)
    foreign = await bench.graph("GET", f"{APP}/subscriptions", token=key)

    assert upload.body["id"].startswith("upload:")
    assert listed.body["data"][0]["callback_url"] == other.uri
    assert foreign.error["error_subcode"] == 33


async def test_failing_address_of_a_number_holds_up_nothing_else(
    slow: Bench, manual: ManualClock, other: Receiver
) -> None:
    other.answers = [500] * 3
    account_seed = {"name": "One", "token": TOKEN, "app_id": APP, "app_secret": SECRET}
    await slow.control("PUT", f"accounts/{WABA}", account_seed)
    number = {"waba_id": WABA, "phone_number": SECOND.phone_number, "name": "Two", "throughput": 80}
    await slow.control("PUT", f"numbers/{SECOND.phone_number_id}", number)
    await override(slow, SECOND.phone_number_id, other.uri)

    await slow.simulator.send_phone_text(phone=ANN, to=SECOND.phone_number, text="to the second")
    await other.until(lambda: len(other.posts) == 2)
    await slow.simulator.send_phone_text(phone=ANN, to=BUSINESS, text="to the first")
    await slow.receiver.until(slow.receiver.messages)
    await slow.restart()
    state = (await slow.control("GET", "state")).body["accounts"][0]
    manual.advance(ms=3_600_000)

    await other.until(lambda: len(other.posts) == 3)
    outlets = {one["phone_number_id"]: one["failed_attempts"] for one in state["webhooks"]}
    assert outlets == {None: 0, SECOND.phone_number_id: 2}
    assert (state["failed_attempts"], state["last_failure"]) == (2, "status 500")
    assert [one["text"]["body"] for one in slow.receiver.messages()] == ["to the first"]


async def test_what_waits_goes_to_the_account_when_a_number_loses_its_address(slow: Bench, other: Receiver) -> None:
    other.answers = [500] * 9
    await override(slow, NUMBER_ID, other.uri)
    await slow.let_write("left behind")
    await other.until(lambda: len(other.posts) == 2)

    await override(slow, NUMBER_ID, "")

    await slow.receiver.until(slow.receiver.messages)
    assert slow.receiver.messages()[0]["text"]["body"] == "left behind"
    await slow.drained()


async def test_subscriptions_outlive_a_restart_that_seeds_again(bench: Bench, other: Receiver) -> None:
    await make_other_app(bench, other)
    await bench.graph("POST", f"{WABA}/subscribed_apps", token=OTHER_TOKEN)
    await bench.graph("DELETE", f"{WABA}/subscribed_apps")

    await bench.restart()
    await bench.let_write("after it")

    await other.until(other.messages)
    assert await subscribers(bench, OTHER_TOKEN) == [OTHER_APP]
    assert bench.receiver.posts == []


async def test_fault_may_be_armed_for_one_of_two_apps(bench: Bench, other: Receiver) -> None:
    await make_other_app(bench, other)
    await bench.graph("POST", f"{WABA}/subscribed_apps", token=OTHER_TOKEN)
    fault = {"on": "webhook", "app": OTHER_APP, "what": {"drop": True}}
    armed = await bench.control("POST", "faults", fault)

    await bench.let_write("for one only")

    await bench.receiver.until(bench.receiver.messages)
    await bench.drained()
    assert armed.status == 200, armed.body
    assert other.posts == []


async def test_file_of_an_earlier_version_is_refused_with_what_to_do(tmp_path: Path, manual: ManualClock) -> None:
    settings = SimulatorSettings(tmp_path / "simulator.sqlite3")
    connection = sqlite3.connect(settings.path)
    connection.execute("CREATE TABLE outbox (waba_id TEXT)")
    connection.close()
    simulator = Simulator(settings, manual, SeededIds(manual, "tests"))

    with pytest.raises(IncompatibleFile, match="start with an empty folder"):
        await simulator.open()

    await simulator.close()
