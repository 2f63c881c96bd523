"""A fleet of ten thousand phones: rate limits are respected, and no message is lost."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.conftest import MakePipeline
from tests.support.builders import APP
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from waypost.base.clock import VirtualClock

pytestmark = pytest.mark.content_only

FIRST = 15_551_000_000
PHONES = 10_000
SCRIPT = [
    {"on": "button", "do": "read", "after_ms": [0, 300]},
    {"on": "button", "do": "tap", "index": 1, "after_ms": [0, 300], "probability": 0.2},
]
JsonObject = dict[str, Any]


async def set_throughput(pipeline: PipelineHarness, per_second: int) -> None:
    """Set the number's limit at the operator; ours is a setting."""
    number = {"waba_id": APP.business_account_id, "phone_number": APP.phone_number, "name": APP.name}
    path = f"numbers/{APP.phone_number_id}"
    await pipeline.control("PUT", path, {**number, "throughput": per_second})


async def make_fleet(pipeline: PipelineHarness, **more: Any) -> None:
    fleet = {"name": "crowd", "first": str(FIRST), "count": PHONES, "script": SCRIPT, "seed": 1}
    await pipeline.control("POST", "fleets", {**fleet, **more})


async def send_to(pipeline: PipelineHarness, template_id: str, count: int) -> list[str]:
    """Send one message to each of so many phones of the fleet, as fast as they are accepted."""
    phones = iter(range(FIRST, FIRST + PHONES, PHONES // count))
    sent: list[str] = []

    async def keep_sending() -> None:
        for phone in phones:
            sent.append(  # noqa: PERF401  other tasks append too
                await pipeline.send(template_id, to=str(phone), postback_texts={1: "later"})
            )

    await asyncio.gather(*(keep_sending() for _ in range(32)))
    return sent


def count_most_in_a_second(deliveries: list[JsonObject]) -> int:
    """Return the most messages that the operator accepted within any 1,000 ms."""
    at_ms = sorted(delivery["at_ms"] for delivery in deliveries)
    first = maximum = 0
    for last, now_ms in enumerate(at_ms):
        while at_ms[first] <= now_ms - 1000:
            first += 1
        maximum = max(maximum, last - first + 1)
    return maximum


async def subscribe_only(pipeline: PipelineHarness, modes: str) -> None:
    """Subscribe the receiver to these modes and nothing else."""
    path = f"/partner/app/{APP.id}/subscription"
    await pipeline.send_request("DELETE", path, headers={"Authorization": pipeline.app_token})
    await pipeline.subscribe(modes=modes)


async def read_fleet(pipeline: PipelineHarness) -> JsonObject:
    return await pipeline.control("GET", "fleets/crowd")


async def check_messages(pipeline: PipelineHarness, sent: list[str], kinds: tuple[str, ...], per_second: int) -> None:
    """Check that every message was accepted once, delivered, read and called back, and no limit was exceeded."""
    fleet = await read_fleet(pipeline)
    deliveries = (await pipeline.control("GET", "deliveries?limit=20000"))["deliveries"]
    errors = (await pipeline.control("GET", "state"))["errors"]
    event_counts: Counter[tuple[str, str]] = Counter()
    taps: list[str] = []
    for callback in pipeline.callbacks:
        payload = callback["payload"]
        if callback["type"] == "message-event":
            event_counts[payload.get("gsId") or payload["id"], payload["type"]] += 1
        elif callback["type"] == "message":
            taps.append(payload["payload"]["postbackText"])

    assert errors.keys().isdisjoint({"130429", "131056"}), errors
    assert count_most_in_a_second(deliveries) <= per_second
    assert Counter(delivery["callback_data"] for delivery in deliveries) == Counter(sent)
    assert event_counts == Counter((message_id, kind) for message_id in sent for kind in kinds)
    assert fleet["counts"]["delivered"] == fleet["counts"]["read"] == len(sent)
    assert taps == ["later"] * fleet["steps"][1]["planned"]


@pytest.mark.both_engines
async def test_limit_of_1000_a_second_is_respected_and_everything_is_called_back(make_pipeline: MakePipeline) -> None:
    """The clock runs at a quarter of real time, so that a slow machine reaches the limit, too."""
    clock = VirtualClock()
    pipeline = await make_pipeline(
        clock=clock, changes={"per_second": 1000}, simulator_changes={"gather_ms": 20, "deliver_after_ms": 50}
    )
    await set_throughput(pipeline, 1000)
    await make_fleet(pipeline)
    template_id = await pipeline.approved_template()
    await subscribe_only(pipeline, "DELIVERED,FAILED,MESSAGE")
    clock.run(factor=0)
    sent = await send_to(pipeline, template_id, 1100)

    clock.run(factor=0.25)
    fleet = await poll_until(lambda: read_fleet(pipeline), lambda fleet: fleet["counts"]["read"] == len(sent))

    callback_count = len(sent) + fleet["steps"][1]["planned"]
    await pipeline.sink.wait_until(lambda: len(pipeline.sink.requests) > callback_count)
    await check_messages(pipeline, sent, ("delivered",), per_second=1000)


async def test_limit_of_80_a_second_is_respected_and_everything_is_called_back(make_pipeline: MakePipeline) -> None:
    """The clock is virtual and goes from due time to due time."""
    clock = VirtualClock()
    pipeline = await make_pipeline(clock=clock, simulator_changes={"deliver_after_ms": 50})
    await make_fleet(pipeline)
    template_id = await pipeline.approved_template()
    clock.run(factor=0)
    sent = await send_to(pipeline, template_id, 170)
    started_ms = clock.now_ms()

    await pipeline.travel(ms=10_000)

    await check_messages(pipeline, sent, ("enqueued", "sent", "delivered", "read"), per_second=80)
    deliveries = (await pipeline.control("GET", "deliveries?limit=20000"))["deliveries"]
    assert max(delivery["at_ms"] for delivery in deliveries) - started_ms < 1000 * (170 / 80 + 1)
