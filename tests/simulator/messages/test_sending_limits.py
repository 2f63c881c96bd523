"""Sending restrictions of a number: status, messaging limit, recipient list, flows."""

import asyncio
import json
from typing import Any

import pytest

from tests.simulator.conftest import ANN, NUMBER_ID, WABA, Bench
from tests.support.flow_json import one_screen_flow
from tests.support.manual_clock import ManualClock
from waypost.simulator.apis.errors import TITLES
from waypost.simulator.numbers.model import SENDING_RESTRICTIONS

HOUR_MS = 3_600_000
HELLO: list[dict[str, Any]] = [{"type": "BODY", "text": "Hello there"}]
NUMBER = f"numbers/{NUMBER_ID}"
IMMEDIATE = [name for name, row in SENDING_RESTRICTIONS.items() if not (row.fails_later or row.only_marketing)]
DELAYED = [name for name, row in SENDING_RESTRICTIONS.items() if row.fails_later]


async def configure_number(bench: Bench, setting: str, body: dict[str, Any]) -> None:
    response = await bench.control("PUT", f"{NUMBER}/{setting}", body)
    assert response.status == 200, response.body


@pytest.mark.parametrize("name", IMMEDIATE)
async def test_restriction_rejects_messages_at_once(slow: Bench, name: str) -> None:
    row = SENDING_RESTRICTIONS[name]
    await configure_number(slow, "sending-restriction", {"name": name})

    rejected = await slow.send({"text": {"body": "Hello"}})
    shown = await slow.graph("GET", f"{NUMBER_ID}?fields=status")
    await configure_number(slow, "sending-restriction", {"name": None})
    accepted = await slow.send({"text": {"body": "Hello"}})

    assert (rejected.status, rejected.error["code"]) == (TITLES[row.code][0], row.code)
    assert rejected.error["error_data"]["details"] == row.details
    assert shown.body["status"] == row.status
    assert accepted.status == 200


@pytest.mark.parametrize("name", DELAYED)
async def test_restriction_fails_messages_in_a_status(bench: Bench, name: str) -> None:
    await configure_number(bench, "sending-restriction", {"name": name})
    await bench.send_from_phone()

    wamid = await bench.send_text()

    [status] = await bench.receiver.wait_until(lambda: bench.receiver.statuses(wamid))
    assert status["status"] == "failed"
    assert status["errors"][0]["code"] == SENDING_RESTRICTIONS[name].code
    assert status["errors"][0]["title"] == TITLES[SENDING_RESTRICTIONS[name].code][1]


async def test_restriction_may_apply_to_marketing_only(bench: Bench) -> None:
    await bench.seed_template(HELLO, category="MARKETING")
    await bench.seed_template(HELLO, name="plain", template_id="1400000000000005")
    await configure_number(bench, "sending-restriction", {"name": "MARKETING_DISABLED"})

    marketing = await bench.send_template()
    utility = await bench.send_template(name="plain")

    assert marketing.error["code"] == 131063
    assert utility.status == 200


async def test_restriction_survives_a_restart_and_ends_when_due(slow: Bench, clock: ManualClock) -> None:
    await configure_number(slow, "sending-restriction", {"name": "LOCKED", "for_ms": HOUR_MS})
    await slow.restart()

    before = await slow.send({"text": {"body": "Hello"}})
    clock.advance(ms=HOUR_MS)
    after = await slow.send({"text": {"body": "Hello"}})

    assert (before.error["code"], after.status) == (131031, 200)


async def test_upgrade_takes_a_minute_of_maintenance_and_then_sends_a_webhook(slow: Bench, clock: ManualClock) -> None:
    await slow.control("POST", f"{NUMBER}/upgrade")

    during = await slow.send({"text": {"body": "Hello"}})
    clock.advance(ms=60_000)
    [update] = await slow.receiver.wait_until(lambda: slow.receiver.changes("phone_number_quality_update"))
    after = await slow.send({"text": {"body": "Hello"}})
    shown = await slow.graph("GET", f"{NUMBER_ID}?fields=throughput")

    assert (during.error["code"], after.status) == (131057, 200)
    assert update["event"] == "THROUGHPUT_UPGRADE"
    assert shown.body["throughput"] == {"level": "HIGH"}


async def test_test_number_sends_only_to_its_recipient_list(bench: Bench) -> None:
    await configure_number(bench, "recipients", {"phones": [f"+{ANN}"]})

    on_list = await bench.send({"text": {"body": "Hello"}})
    other = await bench.send({"to": "15557654321", "text": {"body": "Hello"}})
    too_many = await bench.control("PUT", f"{NUMBER}/recipients", {"phones": [f"1555765432{n}" for n in range(6)]})

    assert (on_list.status, other.error["code"]) == (200, 131030)
    assert too_many.status == 400


async def test_identity_key_must_match(bench: Bench) -> None:
    await bench.control("PUT", f"phones/{ANN}/identity", {"hash": "key-1"})

    right = await bench.send({"recipient_identity_key_hash": "key-1", "text": {"body": "a"}})
    wrong = await bench.send({"recipient_identity_key_hash": "key-2", "text": {"body": "a"}})
    without = await bench.send({"text": {"body": "a"}})

    assert (right.status, wrong.error["code"], without.status) == (200, 137000, 200)


async def test_closed_window_is_rejected_at_once_if_configured(slow: Bench) -> None:
    await slow.control("PUT", "settings", {"window_at_once": True})

    rejected = await slow.send({"text": {"body": "Hello"}})
    await slow.send_from_phone()
    accepted = await slow.send({"text": {"body": "Hello"}})

    assert (rejected.status, rejected.error["code"], accepted.status) == (400, 131047, 200)


@pytest.mark.parametrize("code", [130429, 131048])
async def test_messaging_limit_counts_users_outside_their_window_for_a_day(
    slow: Bench, clock: ManualClock, code: int
) -> None:
    # Source: facts 8, "Messaging limit"; which code is returned is not documented.
    await slow.seed_template(HELLO)
    await slow.control("PUT", "settings", {"messaging_limit_code": code})
    await slow.control("PUT", f"numbers/{NUMBER_ID}", {
        "waba_id": WABA, "phone_number": "15550001111", "name": "Shop", "throughput": 1000,
    })  # fmt: skip
    await slow.control("PUT", f"{NUMBER}/status", {"messaging_limit": "TIER_250"})
    users = [f"1555700{n:04d}" for n in range(250)]

    accepted = await asyncio.gather(*(slow.send_template(to=user) for user in users))
    again = await slow.send_template(to=users[0])
    await slow.restart()
    one_more = await slow.send_template(to="15557009999")
    await slow.send_from_phone(phone="15557008888")
    in_window = await slow.send_template(to="15557008888")
    clock.advance(ms=24 * HOUR_MS)
    next_day = await slow.send_template(to="15557009999")

    assert {response.status for response in (*accepted, again, in_window, next_day)} == {200}
    assert one_more.error["code"] == code


async def create_published_flow(bench: Bench) -> str:
    asset = json.dumps(one_screen_flow(screen_id="FIRST"))
    fields = {"name": "f", "categories": ["OTHER"], "flow_json": asset, "publish": True}
    flow = await bench.graph("POST", f"{WABA}/flows", json=fields)
    return flow.body["id"]


def flow_message(flow_id: str) -> dict[str, Any]:
    parameters = {
        "flow_message_version": "3", "flow_id": flow_id, "flow_cta": "Go", "flow_token": "t",
    }  # fmt: skip
    action = {"name": "flow", "parameters": parameters}
    return {"type": "interactive", "interactive": {"type": "flow", "body": {"text": "Book"}, "action": action}}


async def test_blocked_flow_is_rejected_and_sends_a_webhook(bench: Bench) -> None:
    flow_id = await create_published_flow(bench)

    before = await bench.send(flow_message(flow_id))
    await bench.control("PUT", f"flows/{flow_id}/status", {"status": "BLOCKED"})
    after = await bench.send(flow_message(flow_id))

    assert (before.status, after.error["code"]) == (200, 132068)
    changes = await bench.receiver.wait_until(
        lambda: changes if len(changes := bench.receiver.changes("flows")) > 2 else None
    )
    assert (changes[-1]["old_status"], changes[-1]["new_status"]) == ("PUBLISHED", "BLOCKED")


async def test_control_api_shows_a_flow_with_its_screens(bench: Bench) -> None:
    flow_id = await create_published_flow(bench)

    shown = await bench.control("GET", f"flows/{flow_id}")
    missing = await bench.control("GET", "flows/0")

    assert (shown.body["waba_id"], shown.body["status"]) == (WABA, "PUBLISHED")
    assert [screen["id"] for screen in shown.body["content"]["screens"]] == ["FIRST"]
    assert missing.status == 404


async def test_throttled_flow_is_limited_to_ten_sends_an_hour(slow: Bench, clock: ManualClock) -> None:
    flow_id = await create_published_flow(slow)
    await slow.seed_template(
        [
            {"type": "BODY", "text": "Book now"},
            {"type": "BUTTONS", "buttons": [{"type": "FLOW", "text": "Go", "flow_id": flow_id}]},
        ],
        category="MARKETING",
    )
    await slow.control("PUT", f"flows/{flow_id}/status", {"status": "THROTTLED"})

    first = [await slow.send(flow_message(flow_id)) for _ in range(5)]
    second = [await slow.send_template() for _ in range(5)]
    await slow.restart()
    eleventh = await slow.send_template()
    clock.advance(ms=HOUR_MS)
    later = await slow.send_template()

    assert {response.status for response in (*first, *second, later)} == {200}
    assert eleventh.error["code"] == 132069


async def test_unknown_restriction_is_rejected_and_the_known_ones_are_listed(bench: Bench) -> None:
    rejected = await bench.control("PUT", f"{NUMBER}/sending-restriction", {"name": "TIRED"})

    assert rejected.status == 400
    assert all(name in rejected.body["accepted"] for name in SENDING_RESTRICTIONS)


async def test_state_shows_restrictions_of_numbers_and_calls_of_accounts(bench: Bench) -> None:
    await configure_number(bench, "sending-restriction", {"name": "LOCKED"})
    await bench.graph("GET", WABA)

    state = await bench.control("GET", "state")

    [account] = state.body["accounts"]
    assert account["calls_this_hour"] == 1
    assert account["numbers"][0]["sending_restriction"] == "LOCKED"
    assert account["numbers"][0]["callback_uri"] is None
