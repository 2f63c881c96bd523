"""Fleets: many phones stored as one row, with shared settings and counts."""

import asyncio
from typing import Any

import pytest

from tests.simulator.conftest import ANN, BUSINESS, Bench
from tests.support.manual_clock import ManualClock
from tests.support.polling import HANGS_AFTER_S

FIRST = 15_551_000_000
TAPPED = [
    {"type": "BODY", "text": "Shall we come?"},
    {"type": "BUTTONS", "buttons": [{"type": "QUICK_REPLY", "text": "Yes"}]},
]
SCRIPT = [
    {"on": "button", "do": "read", "after_ms": [0, 20]},
    {"on": "button", "do": "tap", "index": 0, "after_ms": [0, 20], "probability": 0.5},
]
JsonObject = dict[str, Any]


async def create_fleet(bench: Bench, **more: Any) -> JsonObject:
    fleet: JsonObject = {"name": "crowd", "first": str(FIRST), "count": 10_000, "seed": 7, **more}
    response = await bench.control("POST", "fleets", fleet)
    assert response.status == 200, response.body
    return response.body


async def wait_for_counts(bench: Bench, **counts: int) -> JsonObject:
    """Return the fleet once it has these counts."""
    async with asyncio.timeout(HANGS_AFTER_S):
        while True:
            shown = (await bench.control("GET", "fleets/crowd")).body
            if counts.items() <= shown["counts"].items():
                return shown


async def send_to(bench: Bench, count: int) -> None:
    """Send one template message to each of the first phones of the fleet."""
    for start in range(0, count, 50):
        numbers = range(start, min(count, start + 50))
        sent = [bench.send_template(to=str(FIRST + nth)) for nth in numbers]
        assert {response.status for response in await asyncio.gather(*sent)} == {200}


async def wait_for_taps(bench: Bench) -> set[str]:
    """Return the phones that tapped, from the messages the business received."""
    shown = await wait_for_counts(bench, received=200, read=200)
    await wait_for_counts(bench, taps=shown["steps"][1]["planned"])
    await bench.wait_until_drained()
    return {message["from"] for message in bench.receiver.messages()}


async def test_fleet_reads_and_taps_and_is_counted(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"limits": False})
    await bench.seed_template(TAPPED)
    created = await create_fleet(bench, script=SCRIPT)

    await send_to(bench, 200)

    tapped = await wait_for_taps(bench)
    shown = (await bench.control("GET", "fleets/crowd")).body
    assert created["counts"]["received"] == 0
    assert (created["first"], created["last"]) == (str(FIRST), str(FIRST + 9_999))
    assert 60 < len(tapped) < 140
    assert shown["counts"] == {
        "received": 200, "delivered": 200, "read": 200, "failed": 0, "taps": len(tapped),
        "replies": 0, "reactions": 0, "forms": 0, "waiting": 0,
    }  # fmt: skip
    assert shown["steps"] == [
        {"step": 0, "on": "button", "do": "read", "planned": 200},
        {"step": 1, "on": "button", "do": "tap", "planned": len(tapped), "done": len(tapped)},
    ]


async def test_run_with_the_same_seed_repeats_exactly(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"limits": False})
    await bench.seed_template(TAPPED)
    runs: list[set[str]] = []

    for seed in (7, 7, 8):
        await create_fleet(bench, script=SCRIPT, seed=seed)
        await send_to(bench, 200)
        runs.append(await wait_for_taps(bench))
        await bench.control("POST", "reset")
        await bench.seed_template(TAPPED)
        bench.receiver.posts.clear()

    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


async def test_fleet_of_a_hundred_thousand_phones_is_stored_as_one_row(bench: Bench) -> None:
    created = await create_fleet(bench, count=100_000, open_window_to=BUSINESS)

    texts = [
        await bench.send({"type": "text", "text": {"body": "Hello"}, "to": str(phone)})
        for phone in (FIRST, FIRST + 99_999, FIRST + 100_000)
    ]

    state = (await bench.control("GET", "state")).body
    inside, last, outside = (response.body["messages"][0]["id"] for response in texts)
    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses()) == 5)
    ends = {wamid: bench.receiver.statuses(wamid)[-1]["status"] for wamid in (inside, last, outside)}
    assert created["last"] == str(FIRST + 99_999)
    assert state["counts"]["phones"] == 1  # the phone outside the fleet
    assert ends == {inside: "delivered", last: "delivered", outside: "failed"}


async def test_window_opened_by_a_fleet_closes_after_a_day(slow: Bench, clock: ManualClock) -> None:
    await create_fleet(slow, open_window_to=BUSINESS)
    clock.advance(ms=24 * 3600 * 1000)
    wamid = await slow.send_text(to=str(FIRST))

    clock.advance(ms=1000)

    [status] = await slow.receiver.wait_until(lambda: slow.receiver.statuses(wamid))
    assert status["errors"][0]["code"] == 131047


async def test_phones_of_a_fleet_have_its_settings_until_changed(bench: Bench) -> None:
    await create_fleet(bench, condition="old_client", read_after_ms=None, sends_read_receipts=False)
    phone = str(FIRST + 12)

    before = (await bench.control("GET", f"phones/{phone}")).body
    await bench.control("PUT", f"phones/{phone}", {"condition": ""})
    await bench.restart()

    after = (await bench.control("GET", f"phones/{phone}")).body
    neighbour = (await bench.control("GET", f"phones/{FIRST + 13}")).body
    assert (before["name"], before["fleet"], before["condition"]) == ("crowd 12", "crowd", "old_client")
    assert (before["read_after_ms"], before["sends_read_receipts"]) == (None, False)
    assert (after["condition"], after["sends_read_receipts"]) == ("", False)
    assert neighbour["condition"] == "old_client"


async def test_fleet_and_its_planned_actions_survive_a_restart(slow: Bench, clock: ManualClock) -> None:
    await slow.seed_template(TAPPED)
    await create_fleet(slow, script=[{"on": "button", "do": "tap", "after_ms": 60_000}])
    await slow.send_template(to=str(FIRST))

    await slow.restart()
    clock.advance(ms=61_000)

    await slow.receiver.wait_until(slow.receiver.messages)
    shown = (await slow.control("GET", "fleets/crowd")).body
    assert (shown["counts"]["taps"], shown["steps"][0]["done"]) == (1, 1)


async def test_deleted_fleet_leaves_ordinary_phones(slow: Bench, clock: ManualClock) -> None:
    await slow.seed_template(TAPPED)
    await create_fleet(slow, script=[{"on": "button", "do": "tap", "after_ms": 60_000}])
    await slow.send_template(to=str(FIRST))
    await slow.control("PUT", f"phones/{FIRST}", {"name": "Somebody"})

    dropped = await slow.control("DELETE", "fleets/crowd")
    clock.advance(ms=61_000)

    phone = (await slow.control("GET", f"phones/{FIRST}")).body
    assert dropped.body == {"name": "crowd", "dropped": True}
    assert (phone["name"], phone["fleet"], len(phone["messages"])) == ("Phone 0000", None, 1)
    assert (await slow.control("GET", "fleets/crowd")).status == 404
    assert (await slow.control("GET", "fleets")).body == {"fleets": []}


async def test_failures_of_a_fleet_are_counted_by_code(bench: Bench) -> None:
    await create_fleet(bench, condition="not_on_whatsapp")

    await bench.send_text(to=str(FIRST))
    await bench.send_text(to=str(FIRST + 1))

    shown = await wait_for_counts(bench, failed=2)
    assert shown["failures"] == {"131026": 2}


# fmt: off
INVALID: list[tuple[JsonObject, int, str]] = [
    ({"name": "Crowd"},                           400, "name"),
    ({"first": "1555"},                           400, "first"),
    ({"first": "0155510000"},                     400, "first"),
    ({"first": "99999999", "count": 2},           400, "first"),
    ({"count": 0},                                400, "count"),
    ({"count": 1_000_001},                        400, "count"),
    ({"script": [{"on": "x", "do": "read"}]},     400, "script[0].on"),
    ({"script": [{}] * 33},                       400, "script"),
    ({"open_window_to": "15550009999"},           404, "to"),
    ({"condition": "gone"},                       400, "condition"),
    ({"first": BUSINESS},                         409, "first"),
    ({"is_offline": True},                        400, "is_offline"),
]
# fmt: on


@pytest.mark.parametrize(("changes", "status", "field"), INVALID, ids=range(len(INVALID)))
async def test_invalid_fleet_is_rejected_and_names_the_field(
    bench: Bench, changes: JsonObject, status: int, field: str
) -> None:
    fleet = {"name": "crowd", "first": str(FIRST), "count": 10, **changes}

    response = await bench.control("POST", "fleets", fleet)

    assert (response.status, response.body["field"]) == (status, field)
    assert response.body["accepted"]


async def test_fleets_have_unique_names_and_do_not_overlap(bench: Bench) -> None:
    await create_fleet(bench)

    duplicate = {"name": "crowd", "first": "15661000000", "count": 1}
    overlapping = {"name": "other", "first": str(FIRST + 9_999), "count": 5}
    rejected = [await bench.control("POST", "fleets", fleet) for fleet in (duplicate, overlapping)]

    assert [(response.status, response.body["field"]) for response in rejected] == [(409, "name"), (409, "first")]


async def test_rejected_calls_are_counted_by_code(bench: Bench) -> None:
    await bench.send({"type": "text", "text": {"body": "Hello"}, "to": "1"})
    await bench.send({"type": "fax", "to": ANN})

    state = await bench.control("GET", "state")

    assert state.body["errors"] == {"131009": 1, "131051": 1}
