"""Fleets: many phones by one row, counted as one."""

import asyncio
from typing import Any

import pytest

from tests.simulator.conftest import ANN, BUSINESS, Bench
from tests.support.waiting import HANGS_AFTER_S
from waypost.base.clock import ManualClock

FIRST = 15_551_000_000
TAPPED = [
    {"type": "BODY", "text": "Shall we come?"},
    {"type": "BUTTONS", "buttons": [{"type": "QUICK_REPLY", "text": "Yes"}]},
]
SCRIPT = [
    {"on": "button", "do": "read", "after_ms": [0, 20]},
    {"on": "button", "do": "tap", "index": 0, "after_ms": [0, 20], "probability": 0.5},
]
Part = dict[str, Any]


async def make(bench: Bench, **more: Any) -> Part:
    wish: Part = {"name": "crowd", "first": str(FIRST), "count": 10_000, "seed": 7, **more}
    answer = await bench.control("POST", "fleets", wish)
    assert answer.status == 200, answer.body
    return answer.body


async def until_counted(bench: Bench, **counts: int) -> Part:
    """The fleet as soon as it counts so many."""
    async with asyncio.timeout(HANGS_AFTER_S):
        while True:
            shown = (await bench.control("GET", "fleets/crowd")).body
            if counts.items() <= shown["counts"].items():
                return shown


async def send_to(bench: Bench, count: int) -> None:
    """Send the first phones of the fleet one template message each."""
    for start in range(0, count, 50):
        wanted = range(start, min(count, start + 50))
        sent = [bench.send_template(to=str(FIRST + nth)) for nth in wanted]
        assert {answer.status for answer in await asyncio.gather(*sent)} == {200}


async def taps(bench: Bench) -> set[str]:
    """Which phones tapped, by what the business heard."""
    shown = await until_counted(bench, received=200, read=200)
    await until_counted(bench, taps=shown["steps"][1]["planned"])
    await bench.drained()
    return {one["from"] for one in bench.receiver.messages()}


async def test_fleet_reads_and_taps_and_is_counted(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"limits": False})
    await bench.seed_template(TAPPED)
    made = await make(bench, script=SCRIPT)

    await send_to(bench, 200)

    tapped = await taps(bench)
    shown = (await bench.control("GET", "fleets/crowd")).body
    assert made["counts"]["received"] == 0
    assert (made["first"], made["last"]) == (str(FIRST), str(FIRST + 9_999))
    assert 60 < len(tapped) < 140
    assert shown["counts"] == {
        "received": 200, "delivered": 200, "read": 200, "failed": 0, "taps": len(tapped),
        "answers": 0, "reactions": 0, "forms": 0, "waiting": 0,
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
        await make(bench, script=SCRIPT, seed=seed)
        await send_to(bench, 200)
        runs.append(await taps(bench))
        await bench.control("POST", "reset")
        await bench.seed_template(TAPPED)
        bench.receiver.posts.clear()

    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


async def test_fleet_of_a_hundred_thousand_is_one_row(bench: Bench) -> None:
    made = await make(bench, count=100_000, open_window_to=BUSINESS)

    texts = [
        await bench.send({"type": "text", "text": {"body": "Hello"}, "to": str(phone)})
        for phone in (FIRST, FIRST + 99_999, FIRST + 100_000)
    ]

    state = (await bench.control("GET", "state")).body
    inside, last, outside = (one.body["messages"][0]["id"] for one in texts)
    await bench.receiver.until(lambda: len(bench.receiver.statuses()) == 5)
    ends = {wamid: bench.receiver.statuses(wamid)[-1]["status"] for wamid in (inside, last, outside)}
    assert made["last"] == str(FIRST + 99_999)
    assert state["counts"]["phones"] == 1  # the one outside
    assert ends == {inside: "delivered", last: "delivered", outside: "failed"}


async def test_window_that_a_fleet_opened_closes_after_a_day(slow: Bench, manual: ManualClock) -> None:
    await make(slow, open_window_to=BUSINESS)
    manual.advance(ms=24 * 3600 * 1000)
    wamid = await slow.send_text(to=str(FIRST))

    manual.advance(ms=1000)

    [status] = await slow.receiver.until(lambda: slow.receiver.statuses(wamid))
    assert status["errors"][0]["code"] == 131047


async def test_phones_of_a_fleet_have_its_habits_until_they_are_changed(bench: Bench) -> None:
    await make(bench, condition="old_client", read_after_ms=None, sends_read_receipts=False)
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


async def test_fleet_and_what_it_plans_survive_a_restart(slow: Bench, manual: ManualClock) -> None:
    await slow.seed_template(TAPPED)
    await make(slow, script=[{"on": "button", "do": "tap", "after_ms": 60_000}])
    await slow.send_template(to=str(FIRST))

    await slow.restart()
    manual.advance(ms=61_000)

    await slow.receiver.until(slow.receiver.messages)
    shown = (await slow.control("GET", "fleets/crowd")).body
    assert (shown["counts"]["taps"], shown["steps"][0]["done"]) == (1, 1)


async def test_dropped_fleet_leaves_ordinary_phones(slow: Bench, manual: ManualClock) -> None:
    await slow.seed_template(TAPPED)
    await make(slow, script=[{"on": "button", "do": "tap", "after_ms": 60_000}])
    await slow.send_template(to=str(FIRST))
    await slow.control("PUT", f"phones/{FIRST}", {"name": "Somebody"})

    dropped = await slow.control("DELETE", "fleets/crowd")
    manual.advance(ms=61_000)

    phone = (await slow.control("GET", f"phones/{FIRST}")).body
    assert dropped.body == {"name": "crowd", "dropped": True}
    assert (phone["name"], phone["fleet"], len(phone["messages"])) == ("Phone 0000", None, 1)
    assert (await slow.control("GET", "fleets/crowd")).status == 404
    assert (await slow.control("GET", "fleets")).body == {"fleets": []}


async def test_failures_of_a_fleet_are_counted_by_code(bench: Bench) -> None:
    await make(bench, condition="not_on_whatsapp")

    await bench.send_text(to=str(FIRST))
    await bench.send_text(to=str(FIRST + 1))

    shown = await until_counted(bench, failed=2)
    assert shown["failures"] == {"131026": 2}


# fmt: off
WRONG: list[tuple[Part, int, str]] = [
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
    ({"is_offline": True},                        400, "body"),
]
# fmt: on


@pytest.mark.parametrize(("wish", "status", "field"), WRONG, ids=range(len(WRONG)))
async def test_fleet_that_cannot_be_is_refused_by_field(bench: Bench, wish: Part, status: int, field: str) -> None:
    whole = {"name": "crowd", "first": str(FIRST), "count": 10, **wish}

    answer = await bench.control("POST", "fleets", whole)

    assert (answer.status, answer.body["field"]) == (status, field)
    assert answer.body["accepted"]


async def test_fleets_do_not_overlap_and_have_names_of_their_own(bench: Bench) -> None:
    await make(bench)

    same = {"name": "crowd", "first": "15661000000", "count": 1}
    beside = {"name": "other", "first": str(FIRST + 9_999), "count": 5}
    refused = [await bench.control("POST", "fleets", wish) for wish in (same, beside)]

    assert [(one.status, one.body["field"]) for one in refused] == [(409, "name"), (409, "first")]


async def test_refused_calls_are_tallied_by_code(bench: Bench) -> None:
    await bench.send({"type": "text", "text": {"body": "Hello"}, "to": "1"})
    await bench.send({"type": "fax", "to": ANN})

    state = await bench.control("GET", "state")

    assert state.body["refused"] == {"131009": 1, "131051": 1}
