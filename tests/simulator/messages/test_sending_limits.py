"""What stops a business number from sending: its standing, its limits, its recipients, its flows."""

import asyncio
import json
from typing import Any

import pytest

from tests.simulator.conftest import ANN, NUMBER_ID, WABA, Bench
from waypost.base.clock import ManualClock
from waypost.simulator.errors import TITLES
from waypost.simulator.messages.sending_limits import SENDING_RESTRICTIONS

HOUR_MS = 3_600_000
HELLO: list[dict[str, Any]] = [{"type": "BODY", "text": "Hello there"}]
NUMBER = f"numbers/{NUMBER_ID}"
AT_ONCE = [name for name, row in SENDING_RESTRICTIONS.items() if not (row.fails_later or row.only_marketing)]
LATER = [name for name, row in SENDING_RESTRICTIONS.items() if row.fails_later]


async def set_up(bench: Bench, what: str, wish: dict[str, Any]) -> None:
    answer = await bench.control("PUT", f"{NUMBER}/{what}", wish)
    assert answer.status == 200, answer.body


@pytest.mark.parametrize("name", AT_ONCE)
async def test_hindrance_refuses_messages_at_once(slow: Bench, name: str) -> None:
    row = SENDING_RESTRICTIONS[name]
    await set_up(slow, "hindrance", {"name": name})

    refused = await slow.send({"text": {"body": "Hello"}})
    shown = await slow.graph("GET", f"{NUMBER_ID}?fields=status")
    await set_up(slow, "hindrance", {"name": None})
    taken = await slow.send({"text": {"body": "Hello"}})

    assert (refused.status, refused.error["code"]) == (TITLES[row.code][0], row.code)
    assert refused.error["error_data"]["details"] == row.details
    assert shown.body["status"] == row.status
    assert taken.status == 200


@pytest.mark.parametrize("name", LATER)
async def test_hindrance_lets_messages_fail_later(bench: Bench, name: str) -> None:
    await set_up(bench, "hindrance", {"name": name})
    await bench.let_write()

    wamid = await bench.send_text()

    [status] = await bench.receiver.until(lambda: bench.receiver.statuses(wamid))
    assert status["status"] == "failed"
    assert status["errors"][0]["code"] == SENDING_RESTRICTIONS[name].code
    assert status["errors"][0]["title"] == TITLES[SENDING_RESTRICTIONS[name].code][1]


async def test_only_marketing_may_be_stopped(bench: Bench) -> None:
    await bench.seed_template(HELLO, category="MARKETING")
    await bench.seed_template(HELLO, name="plain", template_id="1400000000000005")
    await set_up(bench, "hindrance", {"name": "MARKETING_DISABLED"})

    marketing = await bench.send_template()
    utility = await bench.send_template(name="plain")

    assert marketing.error["code"] == 131063
    assert utility.status == 200


async def test_hindrance_ends_by_the_clock_and_outlives_a_restart(slow: Bench, manual: ManualClock) -> None:
    await set_up(slow, "hindrance", {"name": "LOCKED", "for_ms": HOUR_MS})
    await slow.restart()

    before = await slow.send({"text": {"body": "Hello"}})
    manual.advance(ms=HOUR_MS)
    after = await slow.send({"text": {"body": "Hello"}})

    assert (before.error["code"], after.status) == (131031, 200)


async def test_upgrade_is_a_minute_of_maintenance_and_then_told(slow: Bench, manual: ManualClock) -> None:
    await slow.control("POST", f"{NUMBER}/upgrade")

    during = await slow.send({"text": {"body": "Hello"}})
    manual.advance(ms=60_000)
    [told] = await slow.receiver.until(lambda: slow.receiver.changes("phone_number_quality_update"))
    after = await slow.send({"text": {"body": "Hello"}})
    shown = await slow.graph("GET", f"{NUMBER_ID}?fields=throughput")

    assert (during.error["code"], after.status) == (131057, 200)
    assert told["event"] == "THROUGHPUT_UPGRADE"
    assert shown.body["throughput"] == {"level": "HIGH"}


async def test_test_number_messages_only_its_list(bench: Bench) -> None:
    await set_up(bench, "recipients", {"phones": [f"+{ANN}"]})

    on_list = await bench.send({"text": {"body": "Hello"}})
    other = await bench.send({"to": "15557654321", "text": {"body": "Hello"}})
    too_many = await bench.control("PUT", f"{NUMBER}/recipients", {"phones": [f"1555765432{n}" for n in range(6)]})

    assert (on_list.status, other.error["code"]) == (200, 131030)
    assert too_many.status == 400


async def test_identity_key_must_be_the_known_one(bench: Bench) -> None:
    await bench.control("PUT", f"phones/{ANN}/identity", {"hash": "key-1"})

    right = await bench.send({"recipient_identity_key_hash": "key-1", "text": {"body": "a"}})
    wrong = await bench.send({"recipient_identity_key_hash": "key-2", "text": {"body": "a"}})
    without = await bench.send({"text": {"body": "a"}})

    assert (right.status, wrong.error["code"], without.status) == (200, 137000, 200)


async def test_closed_window_is_refused_at_once_where_that_is_wished(slow: Bench) -> None:
    await slow.control("PUT", "settings", {"window_at_once": True})

    refused = await slow.send({"text": {"body": "Hello"}})
    await slow.let_write()
    taken = await slow.send({"text": {"body": "Hello"}})

    assert (refused.status, refused.error["code"], taken.status) == (400, 131047, 200)


@pytest.mark.parametrize("code", [130429, 131048])
async def test_messaging_limit_counts_users_outside_their_window_for_a_day(
    slow: Bench, manual: ManualClock, code: int
) -> None:
    # Source: facts 8, "Messaging limit"; which code answers is not documented.
    await slow.seed_template(HELLO)
    await slow.control("PUT", "settings", {"messaging_limit_code": code})
    await slow.control("PUT", f"numbers/{NUMBER_ID}", {
        "waba_id": WABA, "phone_number": "15550001111", "name": "Shop", "throughput": 1000,
    })  # fmt: skip
    await slow.control("PUT", f"{NUMBER}/standing", {"messaging_limit": "TIER_250"})
    users = [f"1555700{n:04d}" for n in range(250)]

    taken = await asyncio.gather(*(slow.send_template(to=user) for user in users))
    again = await slow.send_template(to=users[0])
    await slow.restart()
    one_more = await slow.send_template(to="15557009999")
    await slow.let_write(phone="15557008888")
    in_window = await slow.send_template(to="15557008888")
    manual.advance(ms=24 * HOUR_MS)
    next_day = await slow.send_template(to="15557009999")

    assert {answer.status for answer in (*taken, again, in_window, next_day)} == {200}
    assert one_more.error["code"] == code


async def published_flow(bench: Bench) -> str:
    asset = json.dumps({"version": "7.0", "screens": [{"id": "FIRST"}]})
    fields = {"name": "f", "categories": ["OTHER"], "flow_json": asset, "publish": True}
    flow = await bench.graph("POST", f"{WABA}/flows", json=fields)
    return flow.body["id"]


def opening(flow_id: str) -> dict[str, Any]:
    parameters = {
        "flow_message_version": "3", "flow_id": flow_id, "flow_cta": "Go", "flow_token": "t",
    }  # fmt: skip
    action = {"name": "flow", "parameters": parameters}
    return {"type": "interactive", "interactive": {"type": "flow", "body": {"text": "Book"}, "action": action}}


async def test_blocked_flow_is_refused_and_its_change_told(bench: Bench) -> None:
    flow_id = await published_flow(bench)

    before = await bench.send(opening(flow_id))
    await bench.control("PUT", f"flows/{flow_id}/status", {"status": "BLOCKED"})
    after = await bench.send(opening(flow_id))

    assert (before.status, after.error["code"]) == (200, 132068)
    [told] = await bench.receiver.until(lambda: bench.receiver.changes("flows"))
    assert (told["old_status"], told["new_status"]) == ("PUBLISHED", "BLOCKED")


async def test_flow_is_shown_with_its_screens_as_a_phone_opens_it(bench: Bench) -> None:
    flow_id = await published_flow(bench)

    shown = await bench.control("GET", f"flows/{flow_id}")
    missing = await bench.control("GET", "flows/0")

    assert (shown.body["waba_id"], shown.body["status"]) == (WABA, "PUBLISHED")
    assert shown.body["content"]["screens"] == [{"id": "FIRST"}]
    assert missing.status == 404


async def test_throttled_flow_is_sent_ten_times_an_hour(slow: Bench, manual: ManualClock) -> None:
    flow_id = await published_flow(slow)
    await slow.seed_template(
        [
            {"type": "BODY", "text": "Book now"},
            {"type": "BUTTONS", "buttons": [{"type": "FLOW", "text": "Go", "flow_id": flow_id}]},
        ],
        category="MARKETING",
    )
    await slow.control("PUT", f"flows/{flow_id}/status", {"status": "THROTTLED"})

    first = [await slow.send(opening(flow_id)) for _ in range(5)]
    second = [await slow.send_template() for _ in range(5)]
    await slow.restart()
    eleventh = await slow.send_template()
    manual.advance(ms=HOUR_MS)
    later = await slow.send_template()

    assert {answer.status for answer in (*first, *second, later)} == {200}
    assert eleventh.error["code"] == 132069


async def test_unknown_hindrance_is_refused_with_the_known_ones(bench: Bench) -> None:
    refused = await bench.control("PUT", f"{NUMBER}/hindrance", {"name": "TIRED"})

    assert refused.status == 400
    assert all(name in refused.body["accepted"] for name in SENDING_RESTRICTIONS)


async def test_door_shows_what_stops_a_number_and_how_much_its_account_has_called(bench: Bench) -> None:
    await set_up(bench, "hindrance", {"name": "LOCKED"})
    await bench.graph("GET", WABA)

    state = await bench.control("GET", "state")

    [account] = state.body["accounts"]
    assert account["calls_this_hour"] == 1
    assert account["numbers"][0]["hindrance"] == "LOCKED"
    assert account["numbers"][0]["callback_uri"] is None
