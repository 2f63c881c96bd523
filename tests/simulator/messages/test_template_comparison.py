"""Comparison of two templates by the messages that were sent with them."""

import asyncio
from typing import Any

import pytest

from tests.simulator.conftest import Bench, SimulatorResponse
from tests.support.manual_clock import ManualClock
from waypost.base.clock import DAY_MS
from waypost.simulator import AccountSeed, NumberSeed

FIRST, SECOND, FOREIGN = "1400000000000004", "1400000000000005", "1400000000000006"
OTHER_WABA = "1000000000000009"
WEEK_S = 7 * 24 * 3600
BODY = [{"type": "BODY", "text": "Hello there"}]


@pytest.fixture
async def bench(slow: Bench) -> Bench:
    """A simulator with two templates of an account, and one of another."""
    await slow.seed_template(BODY, "first", template_id=FIRST)
    await slow.seed_template(BODY, "second", template_id=SECOND)
    other = AccountSeed(OTHER_WABA, "Two", "", "other-token", "3000000000000003", "secret", "v", "")
    await slow.simulator.seed(other, [NumberSeed("2000000000000099", OTHER_WABA, "15550009900", "Two")])
    await slow.seed_template(BODY, "foreign", template_id=FOREIGN, waba_id=OTHER_WABA)
    return slow


async def send(bench: Bench, name: str, count: int) -> None:
    first = 15551000000
    for start in range(0, count, 50):
        phones = range(first + start, first + min(start + 50, count))
        sent = await asyncio.gather(*(bench.send_template(name=name, to=str(phone)) for phone in phones))
        assert {response.status for response in sent} == {200}


async def compare(bench: Bench, **changes: str | None) -> SimulatorResponse:
    now_s = bench.clock.now_ms() // 1000
    query = {"template_ids": f"[{SECOND}]", "start": str(now_s - WEEK_S), "end": str(now_s), **changes}
    params = {name: value for name, value in query.items() if value is not None}
    return await bench.graph("GET", f"{FIRST}/compare", params=params)


def metrics(sends: dict[str, int]) -> list[dict[str, Any]]:
    return [
        {"metric": "BLOCK_RATE", "type": "RELATIVE", "order_by_relative_metric": [FIRST, SECOND]},
        {
            "metric": "MESSAGE_SENDS",
            "type": "NUMBER_VALUES",
            "number_values": [{"key": key, "value": value} for key, value in sends.items()],
        },
        {
            "metric": "TOP_BLOCK_REASON",
            "type": "STRING_VALUES",
            "string_values": [{"key": key, "value": "UNKNOWN_BLOCK_REASON"} for key in sends],
        },
    ]


async def test_each_template_needs_1000_sends(bench: Bench, clock: ManualClock) -> None:
    await bench.restart(limits=False)
    await send(bench, "first", 1000)
    await send(bench, "second", 999)
    few = await compare(bench)
    await bench.restart(limits=True)

    refused = await compare(bench)
    clock.advance(ms=60_000)
    await send(bench, "second", 1)
    accepted = await compare(bench, template_ids=SECOND)

    assert few.body["data"] == metrics({FIRST: 1000, SECOND: 999})
    assert (refused.status, refused.error["code"]) == (400, 100)
    assert refused.error["error_user_title"] == "Templates not eligible for comparison"
    assert "1,000 times" in refused.error["error_user_msg"]
    assert accepted.body["data"] == metrics({FIRST: 1000, SECOND: 1000})


async def test_only_sends_of_the_window_are_counted(bench: Bench, clock: ManualClock) -> None:
    await bench.restart(limits=False)
    await send(bench, "first", 2)
    clock.advance(ms=8 * DAY_MS)
    await send(bench, "first", 3)
    now_s = bench.clock.now_ms() // 1000

    week = await compare(bench)
    month = await compare(bench, start=str(now_s - 30 * 24 * 3600))

    assert week.body["data"] == metrics({FIRST: 3, SECOND: 0})
    assert month.body["data"] == metrics({FIRST: 5, SECOND: 0})


@pytest.mark.parametrize(
    "changes",
    [
        {"start": None},
        {"end": "x"},
        {"start": "1"},
        {"start": "1", "end": str(1 + WEEK_S)},
        {"end": "1"},
        {"template_ids": None},
        {"template_ids": "999"},
        {"template_ids": FIRST},
        {"template_ids": FOREIGN},
        {"template_ids": f"{SECOND},{SECOND}"},
    ],
    ids=str,
)
async def test_invalid_comparison_is_code_100(bench: Bench, changes: dict[str, str | None]) -> None:
    await bench.restart(limits=False)

    response = await compare(bench, **changes)

    assert (response.status, response.error["code"]) == (400, 100)
    assert response.error.get("error_subcode") != 33


async def test_window_in_the_future_is_code_100(bench: Bench) -> None:
    await bench.restart(limits=False)
    now_s = bench.clock.now_ms() // 1000

    response = await compare(bench, start=str(now_s), end=str(now_s + WEEK_S))

    assert (response.status, response.error["code"]) == (400, 100)
