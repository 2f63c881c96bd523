"""A number that its WhatsApp Business app and the API share: how it begins, what changes, and how it ends."""

from typing import Any

import pytest

from tests.simulator.conftest import ANN, BUSINESS, NUMBER_ID, WABA, Bench
from tests.support.manual_clock import ManualClock

APP = f"numbers/{NUMBER_ID}/business-app"
DAY_MS = 24 * 3600 * 1000
MINUTE_MS = 60_000


async def connect(bench: Bench, **members: Any) -> dict[str, Any]:
    response = await bench.control("POST", f"{APP}/connect", members)
    assert response.status == 200, response.body
    return response.body


async def account_updates(bench: Bench, count: int) -> list[dict[str, Any]]:
    await bench.receiver.wait_until(lambda: len(bench.receiver.changes("account_update")) >= count)
    return bench.receiver.changes("account_update")


async def test_connected_number_is_shared(bench: Bench) -> None:
    # Source: the operator's page "Onboard WhatsApp Business app users", Check onboarding status.
    app = await connect(bench)

    shown = await bench.graph("GET", f"{NUMBER_ID}?fields=is_on_biz_app,platform_type,status,throughput")
    wamid = await bench.send_text("Hello")

    assert shown.body == {
        "is_on_biz_app": True,
        "platform_type": "CLOUD_API",
        "status": "CONNECTED",
        "throughput": {"level": "STANDARD"},
        "id": NUMBER_ID,
    }
    assert (app["is_connected"], app["throughput"], app["shares_history"]) == (True, 20, True)
    assert wamid.startswith("wamid.")
    listed = await bench.control("GET", "business-apps")
    assert [each["phone_number_id"] for each in listed.body["business_apps"]] == [NUMBER_ID]


async def test_number_that_never_was_on_the_app_has_no_app(bench: Bench) -> None:
    shown = await bench.control("GET", APP)
    assert (shown.status, shown.body["field"]) == (409, "phone_number_id")
    assert "connect first" in shown.body["accepted"]


async def test_shared_number_sends_twenty_messages_a_second(slow: Bench) -> None:
    await connect(slow)

    phones = [f"1555200{index:04d}" for index in range(21)]
    await slow.seed_template([{"type": "BODY", "text": "Hello"}])
    template = {"type": "template", "template": {"name": "seeded", "language": {"code": "en_US"}}}
    sent = [await slow.send({"to": phone, **template}) for phone in phones]
    upgraded = await slow.control("POST", f"numbers/{NUMBER_ID}/upgrade", {"throughput": 1000})

    assert [response.status for response in sent[:20]] == [200] * 20
    assert (sent[20].error["code"], upgraded.status) == (130429, 409)


@pytest.mark.parametrize("call", ["register", "deregister"])
async def test_shared_number_is_neither_registered_nor_deregistered(bench: Bench, call: str) -> None:
    await connect(bench)
    response = await bench.graph("POST", f"{NUMBER_ID}/{call}", json={"messaging_product": "whatsapp", "pin": "123456"})
    assert (response.status, response.error["code"]) == (400, 100)
    assert "WhatsApp Business app" in response.error["message"]


async def test_old_app_cannot_be_connected(bench: Bench) -> None:
    old = await bench.control("POST", f"{APP}/connect", {"app_version": "2.24.16"})
    oldest = await bench.control("POST", f"{APP}/connect", {"app_version": "2.24.17"})
    assert (old.status, old.body["field"], oldest.status) == (409, "app_version", 200)
    assert "4563015" in old.body["rule"]


async def test_number_is_connected_once(bench: Bench) -> None:
    await connect(bench)
    again = await bench.control("POST", f"{APP}/connect")
    assert again.status == 409
    assert "2655093" in again.body["rule"]


# fmt: off
REASONS: list[tuple[str | None, str, bool, bool]] = [
    # reason                 initiated by   leaves the app  offboarded
    (None,                   "USER",        False,          False),
    ("ACCOUNT_DISCONNECTED", "USER",        True,           False),
    ("ACCOUNT_DISCONNECTED", "SYSTEM",      True,           False),
    ("BUSINESS_DOWNGRADE",   "USER",        True,           False),
    ("CHANGE_NUMBER",        "USER",        True,           True),
    ("COMPANION_INACTIVITY", "SYSTEM",      False,          False),
    ("PRIMARY_INACTIVITY",   "SYSTEM",      False,          False),
    ("USER_RE_REGISTERED",   "USER",        False,          True),
]
# fmt: on


@pytest.mark.parametrize(("reason", "by", "leaves", "is_offboarded"), REASONS)
async def test_disconnection_is_reported_with_its_reason(
    bench: Bench, reason: str | None, by: str, leaves: bool, is_offboarded: bool
) -> None:
    # Source: the operator's pages "account_update" and "Onboard WhatsApp Business app users".
    await connect(bench)

    body = {"initiated_by": by} | ({} if reason is None else {"reason": reason})
    app = await bench.control("POST", f"{APP}/disconnect", body)

    removed: dict[str, Any] = {"phone_number": BUSINESS, "event": "PARTNER_REMOVED"}
    if reason is not None:
        removed["disconnection_info"] = {"reason": reason, "initiated_by": by}
    expected = [*([{"event": "ACCOUNT_OFFBOARDED"}] if is_offboarded else []), removed]
    assert await account_updates(bench, len(expected)) == expected
    [first, *_] = bench.receiver.posts
    assert first.value["entry"][0]["id"] == WABA
    shown = await bench.graph("GET", f"{NUMBER_ID}?fields=is_on_biz_app,platform_type,status")
    rejected = await bench.send({"type": "text", "text": {"body": "Hello"}})
    assert app.body["is_connected"] is False
    assert shown.body["is_on_biz_app"] is not leaves
    assert (shown.body["platform_type"], shown.body["status"]) == ("NOT_APPLICABLE", "DISCONNECTED")
    assert rejected.error["code"] == 133010


async def test_reason_has_its_initiators(bench: Bench) -> None:
    await connect(bench)
    rejected = await bench.control(
        "POST", f"{APP}/disconnect", {"reason": "PRIMARY_INACTIVITY", "initiated_by": "USER"}
    )
    unknown = await bench.control("POST", f"{APP}/disconnect", {"reason": "BORED"})
    assert (rejected.status, rejected.body["accepted"]) == (409, "SYSTEM")
    assert (unknown.status, unknown.body["field"]) == (400, "reason")


async def test_disconnected_number_sends_no_webhooks_and_is_back_after_fifteen_minutes(
    slow: Bench, clock: ManualClock
) -> None:
    await connect(slow)
    await slow.control("POST", f"{APP}/disconnect", {"reason": "USER_RE_REGISTERED"})
    await account_updates(slow, 2)
    await slow.send_from_phone("unheard")
    early = await slow.control("POST", f"{APP}/connect")

    clock.advance(ms=15 * MINUTE_MS)
    app = await connect(slow)
    await slow.send_from_phone("heard")

    [message] = await slow.receiver.wait_until(slow.receiver.messages)
    assert early.status == 409
    assert "3441049" in early.body["rule"]
    assert message["text"]["body"] == "heard"
    assert (await account_updates(slow, 3))[2] == {"event": "ACCOUNT_RECONNECTED"}
    assert (app["companions"], app["requested_syncs"]) == ([], {})


async def test_phone_that_is_offline_for_14_days_is_disconnected(slow: Bench, clock: ManualClock) -> None:
    await connect(slow)
    app = await slow.control("PUT", APP, {"is_offline": True})
    clock.advance(ms=14 * DAY_MS - 1)
    before = await slow.control("GET", APP)

    clock.advance(ms=1)

    [removed] = await account_updates(slow, 1)
    assert app.body["disconnects_ms"] == app.body["onboarded_ms"] + 14 * DAY_MS
    assert before.body["is_connected"]
    assert removed["disconnection_info"] == {"reason": "PRIMARY_INACTIVITY", "initiated_by": "SYSTEM"}


async def test_phone_that_is_back_in_time_stays_connected(slow: Bench, clock: ManualClock) -> None:
    await connect(slow)
    await slow.control("PUT", APP, {"is_offline": True})
    clock.advance(ms=13 * DAY_MS)
    await slow.control("PUT", APP, {"is_offline": False})
    clock.advance(ms=13 * DAY_MS)

    app = await slow.control("GET", APP)

    assert (app.body["is_connected"], app.body["disconnects_ms"]) == (True, None)


async def test_linked_device_that_is_offline_for_30_days_disconnects_the_number(
    slow: Bench, clock: ManualClock
) -> None:
    await connect(slow)
    device = (await slow.control("POST", f"{APP}/companions", {"kind": "web"})).body
    await slow.control("PUT", f"{APP}/companions/{device['companion_id']}", {"is_offline": True})

    clock.advance(ms=30 * DAY_MS)

    [removed] = await account_updates(slow, 1)
    assert removed["disconnection_info"]["reason"] == "COMPANION_INACTIVITY"


async def test_four_supported_devices_may_be_linked(bench: Bench) -> None:
    await connect(bench)
    linked = [await bench.control("POST", f"{APP}/companions", {"kind": "web"}) for _ in range(5)]
    windows = await bench.control("POST", f"{APP}/companions", {"kind": "windows"})
    unlinked = await bench.control("DELETE", f"{APP}/companions/{linked[0].body['companion_id']}")
    gone = await bench.control("DELETE", f"{APP}/companions/{linked[0].body['companion_id']}")
    app = await bench.control("GET", APP)
    assert [response.status for response in linked] == [200, 200, 200, 200, 409]
    assert (windows.status, windows.body["field"]) == (400, "kind")
    assert (unlinked.status, gone.status, len(app.body["companions"])) == (200, 404, 3)


async def test_connection_outlives_a_restart(bench: Bench) -> None:
    await connect(bench, shares_history=False)
    await bench.control("PUT", APP, {"sync": {"chunk_messages": 7}})

    await bench.restart()

    app = await bench.control("GET", APP)
    shown = await bench.graph("GET", f"{NUMBER_ID}?fields=is_on_biz_app")
    assert (app.body["is_connected"], app.body["shares_history"], app.body["sync"]["chunk_messages"]) == (
        True,
        False,
        7,
    )
    assert shown.body["is_on_biz_app"] is True


async def test_window_opens_with_a_message_after_onboarding_only(bench: Bench) -> None:
    # Source: the operator's page "Onboard WhatsApp Business app users", Customer service window.
    await connect(bench)
    await bench.control("POST", f"{APP}/messages", {"to": ANN, "text": "from the app"})

    chats = await bench.control("GET", f"phones/{ANN}/chats")
    await bench.send_from_phone("Hi")
    after = await bench.control("GET", f"phones/{ANN}/chats")

    assert chats.body["chats"][0]["window_until_ms"] is None
    assert after.body["chats"][0]["window_until_ms"] is not None
