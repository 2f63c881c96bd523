"""Setting a number up: registration, codes, PINs, and an address of its own for its webhooks."""

from typing import Any

import pytest
from aiohttp import web

from tests.simulator.conftest import APP, BUSINESS, NUMBER_ID, SECRET, TOKEN, WABA, Bench, Receiver
from waypost.base.clock import ManualClock
from waypost.simulator import AccountSeed, NumberSeed

DAY_MS = 24 * 3_600_000
OTHER_ID = "2000000000000022"
OTHER = "15550002222"


async def register(bench: Bench, pin: str) -> Any:
    body = {"messaging_product": "whatsapp", "pin": pin}
    return await bench.graph("POST", f"{NUMBER_ID}/register", json=body)


async def test_number_that_is_deregistered_sends_nothing_until_it_is_registered(slow: Bench) -> None:
    gone = await slow.graph("POST", f"{NUMBER_ID}/deregister")
    refused = await slow.send({"text": {"body": "Hello"}})
    shown = await slow.graph("GET", f"{NUMBER_ID}?fields=status")
    back = await register(slow, "123456")
    taken = await slow.send({"text": {"body": "Hello"}})

    assert (gone.body, back.body) == ({"success": True}, {"success": True})
    assert (refused.error["code"], shown.body["status"]) == (133010, "DISCONNECTED")
    assert taken.status == 200


async def test_pin_must_be_the_one_of_before(slow: Bench) -> None:
    # Source: facts 5.2, the registration errors.
    await register(slow, "123456")

    wrong = await register(slow, "654321")
    none = await register(slow, "12")
    changed = await slow.graph("POST", NUMBER_ID, json={"pin": "654321"})
    right = await register(slow, "654321")

    assert (wrong.error["code"], none.error["code"]) == (133005, 100)
    assert (changed.status, right.status) == (200, 200)
    shown = await slow.graph("GET", f"{NUMBER_ID}?fields=is_pin_enabled")
    assert shown.body["is_pin_enabled"] is True


async def test_too_many_pins_are_not_tried(slow: Bench) -> None:
    await register(slow, "123456")

    codes = [(await register(slow, "000000")).error["code"] for _ in range(11)]

    assert codes == [133005] * 10 + [133008]


async def test_number_is_registered_ten_times_in_three_days(slow: Bench, manual: ManualClock) -> None:
    taken = [(await register(slow, "123456")).status for _ in range(10)]
    refused = await register(slow, "123456")
    await slow.restart()
    still = await register(slow, "123456")
    manual.advance(ms=3 * DAY_MS)
    later = await register(slow, "123456")

    assert (taken, refused.error["code"], still.error["code"]) == ([200] * 10, 133016, 133016)
    assert later.status == 200


async def test_code_that_was_asked_for_must_come_back(slow: Bench) -> None:
    asked = await slow.graph("POST", f"{NUMBER_ID}/request_code", json={"code_method": "SMS", "language": "en"})
    early = await register(slow, "123456")
    shown = await slow.control("GET", f"numbers/{NUMBER_ID}/registration")
    wrong = await slow.graph("POST", f"{NUMBER_ID}/verify_code", json={"code": "x"})
    right = await slow.graph("POST", f"{NUMBER_ID}/verify_code", json={"code": shown.body["code"]})
    late = await register(slow, "123456")

    assert (asked.status, early.error["code"], wrong.error["code"]) == (200, 133006, 100)
    assert (right.status, late.status) == (200, 200)


@pytest.mark.parametrize("body", [{}, {"code_method": "PIGEON", "language": "en"}, {"code_method": "SMS"}])
async def test_code_needs_a_way_and_a_language(slow: Bench, body: dict[str, str]) -> None:
    refused = await slow.graph("POST", f"{NUMBER_ID}/request_code", json=body)

    assert refused.error["code"] == 100


async def test_deleted_number_cannot_be_registered(slow: Bench) -> None:
    await slow.control("PUT", f"numbers/{NUMBER_ID}/hindrance", {"name": "DELETED"})

    assert (await register(slow, "123456")).error["code"] == 133015


async def own_address(receiver: Receiver) -> web.AppRunner:
    application = web.Application()
    application.router.add_route("*", "/own", receiver.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    receiver.uri = f"http://{host}:{port}/own"
    return runner


async def test_number_may_have_a_webhook_address_of_its_own(bench: Bench) -> None:
    # Source: facts 7.1: "override per WABA or per phone".
    common = bench.receiver
    account = AccountSeed(WABA, "One", "", TOKEN, APP, SECRET, common.verify_token, common.uri)
    await bench.simulator.seed(account, [NumberSeed(OTHER_ID, WABA, OTHER, "Two")])
    own = Receiver()
    runner = await own_address(own)
    wish = {"override_callback_uri": own.uri, "verify_token": own.verify_token}

    answer = await bench.graph("POST", OTHER_ID, json={"webhook_configuration": wish})
    await bench.restart()
    await bench.simulator.send_phone_text(phone="15551230001", to=OTHER, text="own")
    await bench.simulator.send_phone_text(phone="15551230001", to=BUSINESS, text="common")

    [at_own] = await own.until(own.messages)
    [at_common] = await bench.receiver.until(bench.receiver.messages)
    shown = await bench.graph("GET", f"{OTHER_ID}?fields=webhook_configuration")
    await runner.cleanup()
    assert answer.body == {"success": True}
    assert (at_own["text"]["body"], at_common["text"]["body"]) == ("own", "common")
    assert shown.body["webhook_configuration"]["phone_number"] == own.uri
    assert bench.receiver.uri == shown.body["webhook_configuration"]["application"]


async def test_address_of_a_number_is_taken_after_its_handshake_and_can_be_taken_away(bench: Bench) -> None:
    wish = {"override_callback_uri": bench.receiver.uri, "verify_token": "other"}

    refused = await bench.graph("POST", NUMBER_ID, json={"webhook_configuration": wish})
    wish["verify_token"] = bench.receiver.verify_token
    taken = await bench.graph("POST", NUMBER_ID, json={"webhook_configuration": wish})
    nothing = await bench.graph("POST", NUMBER_ID, json={})
    away = await bench.graph("POST", NUMBER_ID, json={"webhook_configuration": {"override_callback_uri": ""}})

    shown = await bench.graph("GET", f"{NUMBER_ID}?fields=webhook_configuration")
    assert (refused.error["code"], taken.status) == (2200, 200)
    assert (nothing.error["code"], away.status) == (100, 200)
    assert "phone_number" not in shown.body["webhook_configuration"]
