"""Setup of a number: registration, codes, PINs, and a webhook URL override."""

from typing import Any

import pytest
from aiohttp import web

from tests.simulator.conftest import APP, BUSINESS, NUMBER_ID, SECRET, TOKEN, WABA, Bench, Receiver
from tests.support.manual_clock import ManualClock
from waypost.simulator import AccountSeed, NumberSeed

DAY_MS = 24 * 3_600_000
OTHER_ID = "2000000000000022"
OTHER = "15550002222"


async def register(bench: Bench, pin: str) -> Any:
    body = {"messaging_product": "whatsapp", "pin": pin}
    return await bench.graph("POST", f"{NUMBER_ID}/register", json=body)


async def test_deregistered_number_sends_nothing_until_it_is_registered(slow: Bench) -> None:
    deregistered = await slow.graph("POST", f"{NUMBER_ID}/deregister")
    rejected = await slow.send({"text": {"body": "Hello"}})
    shown = await slow.graph("GET", f"{NUMBER_ID}?fields=status")
    registered = await register(slow, "123456")
    accepted = await slow.send({"text": {"body": "Hello"}})

    assert (deregistered.body, registered.body) == ({"success": True}, {"success": True})
    assert (rejected.error["code"], shown.body["status"]) == (133010, "DISCONNECTED")
    assert accepted.status == 200


async def test_pin_must_match_the_stored_pin(slow: Bench) -> None:
    # Source: facts 5.2, the registration errors.
    await register(slow, "123456")

    wrong = await register(slow, "654321")
    invalid = await register(slow, "12")
    changed = await slow.graph("POST", NUMBER_ID, json={"pin": "654321"})
    right = await register(slow, "654321")

    assert (wrong.error["code"], invalid.error["code"]) == (133005, 100)
    assert (changed.status, right.status) == (200, 200)
    shown = await slow.graph("GET", f"{NUMBER_ID}?fields=is_pin_enabled")
    assert shown.body["is_pin_enabled"] is True


async def test_too_many_wrong_pins_block_registration(slow: Bench) -> None:
    await register(slow, "123456")

    codes = [(await register(slow, "000000")).error["code"] for _ in range(11)]

    assert codes == [133005] * 10 + [133008]


async def test_number_can_be_registered_ten_times_in_three_days(slow: Bench, clock: ManualClock) -> None:
    accepted = [(await register(slow, "123456")).status for _ in range(10)]
    rejected = await register(slow, "123456")
    await slow.restart()
    still = await register(slow, "123456")
    clock.advance(ms=3 * DAY_MS)
    later = await register(slow, "123456")

    assert (accepted, rejected.error["code"], still.error["code"]) == ([200] * 10, 133016, 133016)
    assert later.status == 200


async def test_requested_code_must_be_verified_before_registration(slow: Bench) -> None:
    requested = await slow.graph("POST", f"{NUMBER_ID}/request_code", json={"code_method": "SMS", "language": "en"})
    early = await register(slow, "123456")
    shown = await slow.control("GET", f"numbers/{NUMBER_ID}/registration")
    wrong = await slow.graph("POST", f"{NUMBER_ID}/verify_code", json={"code": "x"})
    right = await slow.graph("POST", f"{NUMBER_ID}/verify_code", json={"code": shown.body["code"]})
    late = await register(slow, "123456")

    assert (requested.status, early.error["code"], wrong.error["code"]) == (200, 133006, 100)
    assert (right.status, late.status) == (200, 200)


@pytest.mark.parametrize("body", [{}, {"code_method": "PIGEON", "language": "en"}, {"code_method": "SMS"}])
async def test_code_request_requires_a_method_and_a_language(slow: Bench, body: dict[str, str]) -> None:
    rejected = await slow.graph("POST", f"{NUMBER_ID}/request_code", json=body)

    assert rejected.error["code"] == 100


async def test_deleted_number_cannot_be_registered(slow: Bench) -> None:
    await slow.control("PUT", f"numbers/{NUMBER_ID}/sending-restriction", {"name": "DELETED"})

    assert (await register(slow, "123456")).error["code"] == 133015


async def serve_own_webhook(receiver: Receiver) -> web.AppRunner:
    application = web.Application()
    application.router.add_route("*", "/own", receiver.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    receiver.uri = f"http://{host}:{port}/own"
    return runner


async def test_number_may_have_its_own_webhook_url(bench: Bench) -> None:
    # Source: facts 7.1: "override per WABA or per phone".
    common = bench.receiver
    account = AccountSeed(WABA, "One", "", TOKEN, APP, SECRET, common.verify_token, common.uri)
    await bench.simulator.seed(account, [NumberSeed(OTHER_ID, WABA, OTHER, "Two")])
    own = Receiver()
    runner = await serve_own_webhook(own)
    override = {"override_callback_uri": own.uri, "verify_token": own.verify_token}

    response = await bench.graph("POST", OTHER_ID, json={"webhook_configuration": override})
    await bench.restart()
    await bench.simulator.send_phone_text(phone="15551230001", to=OTHER, text="own")
    await bench.simulator.send_phone_text(phone="15551230001", to=BUSINESS, text="common")

    [at_own] = await own.wait_until(own.messages)
    [at_common] = await bench.receiver.wait_until(bench.receiver.messages)
    shown = await bench.graph("GET", f"{OTHER_ID}?fields=webhook_configuration")
    await runner.cleanup()
    assert response.body == {"success": True}
    assert (at_own["text"]["body"], at_common["text"]["body"]) == ("own", "common")
    assert shown.body["webhook_configuration"]["phone_number"] == own.uri
    assert bench.receiver.uri == shown.body["webhook_configuration"]["application"]


async def test_webhook_url_of_a_number_is_verified_and_can_be_removed(bench: Bench) -> None:
    override = {"override_callback_uri": bench.receiver.uri, "verify_token": "other"}

    rejected = await bench.graph("POST", NUMBER_ID, json={"webhook_configuration": override})
    override["verify_token"] = bench.receiver.verify_token
    accepted = await bench.graph("POST", NUMBER_ID, json={"webhook_configuration": override})
    empty = await bench.graph("POST", NUMBER_ID, json={})
    removed = await bench.graph("POST", NUMBER_ID, json={"webhook_configuration": {"override_callback_uri": ""}})

    shown = await bench.graph("GET", f"{NUMBER_ID}?fields=webhook_configuration")
    assert (rejected.error["code"], accepted.status) == (2200, 200)
    assert (empty.error["code"], removed.status) == (100, 200)
    assert "phone_number" not in shown.body["webhook_configuration"]


@pytest.mark.parametrize("sync_type", ["history", "smb_app_state_sync"])
async def test_only_a_number_on_the_business_app_has_data_to_synchronize(bench: Bench, sync_type: str) -> None:
    # Source: ledger 1.3, `coex/sync`.
    request = {"messaging_product": "whatsapp", "sync_type": sync_type}
    number = {"waba_id": WABA, "phone_number": BUSINESS, "name": "Shop One"}

    rejected = await bench.graph("POST", f"{NUMBER_ID}/smb_app_data", json=request)
    await bench.control("PUT", f"numbers/{NUMBER_ID}", {**number, "is_on_business_app": True})
    accepted = await bench.graph("POST", f"{NUMBER_ID}/smb_app_data", json=request)
    shown = await bench.graph("GET", f"{NUMBER_ID}?fields=is_on_biz_app")

    assert (rejected.status, rejected.error["code"]) == (400, 100)
    assert "not on the WhatsApp Business app" in rejected.error["message"]
    assert accepted.status == 200
    assert shown.body["is_on_biz_app"] is True


async def test_number_on_the_business_app_is_not_deregistered(bench: Bench) -> None:
    number = {"waba_id": WABA, "phone_number": BUSINESS, "name": "Shop One", "is_on_business_app": True}
    await bench.control("PUT", f"numbers/{NUMBER_ID}", number)

    rejected = await bench.graph("POST", f"{NUMBER_ID}/deregister")
    shown = await bench.graph("GET", f"{NUMBER_ID}?fields=status")

    assert (rejected.status, rejected.error["code"]) == (400, 100)
    assert "disconnect it there" in rejected.error["message"]
    assert shown.body["status"] == "CONNECTED"
