"""A fleet of ten thousand phones: the limits are kept, and nobody is forgotten."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.conftest import MakePipeline
from tests.support.builders import APP
from tests.support.pipeline import PipelineHarness
from tests.support.waiting import patiently
from waypost.base.clock import VirtualClock

pytestmark = pytest.mark.content_only

FIRST = 15_551_000_000
PHONES = 10_000
SCRIPT = [
    {"on": "button", "do": "read", "after_ms": [0, 300]},
    {"on": "button", "do": "tap", "index": 1, "after_ms": [0, 300], "probability": 0.2},
]
Part = dict[str, Any]


async def at_throughput(pipeline: PipelineHarness, per_second: int) -> None:
    """The number's own limit at the operator; ours is a setting."""
    number = {"waba_id": APP.business_account_id, "phone_number": APP.phone_number, "name": APP.name}
    path = f"numbers/{APP.phone_number_id}"
    await pipeline.control("PUT", path, {**number, "throughput": per_second})


async def make_fleet(pipeline: PipelineHarness, **more: Any) -> None:
    wish = {"name": "crowd", "first": str(FIRST), "count": PHONES, "script": SCRIPT, "seed": 1}
    await pipeline.control("POST", "fleets", {**wish, **more})


async def send_to(pipeline: PipelineHarness, template_id: str, count: int) -> list[str]:
    """One message to each of so many phones, spread over the fleet, as fast as they are taken."""
    phones = iter(range(FIRST, FIRST + PHONES, PHONES // count))
    sent: list[str] = []

    async def keep_sending() -> None:
        for phone in phones:
            sent.append(  # noqa: PERF401  others send beside
                await pipeline.send(template_id, to=str(phone), postback_texts={1: "later"})
            )

    await asyncio.gather(*(keep_sending() for _ in range(32)))
    return sent


def most_in_a_second(deliveries: list[Part]) -> int:
    """The operator's own count: the most messages that it took within any 1,000 ms."""
    at_ms = sorted(one["at_ms"] for one in deliveries)
    first = most = 0
    for last, now_ms in enumerate(at_ms):
        while at_ms[first] <= now_ms - 1000:
            first += 1
        most = max(most, last - first + 1)
    return most


async def hear(pipeline: PipelineHarness, modes: str) -> None:
    """Subscribe the receiver to these modes and nothing else."""
    path = f"/partner/app/{APP.id}/subscription"
    await pipeline.ask("DELETE", path, headers={"Authorization": pipeline.app_token})
    await pipeline.subscribe(modes=modes)


async def fleet_of(pipeline: PipelineHarness) -> Part:
    return await pipeline.control("GET", "fleets/crowd")


async def judge(pipeline: PipelineHarness, sent: list[str], kinds: tuple[str, ...], per_second: int) -> None:
    """Everything was taken once, delivered, read and called back; and no limit was met."""
    fleet = await fleet_of(pipeline)
    taken = (await pipeline.control("GET", "deliveries?limit=20000"))["deliveries"]
    refused = (await pipeline.control("GET", "state"))["refused"]
    told: Counter[tuple[str, str]] = Counter()
    taps: list[str] = []
    for callback in pipeline.callbacks:
        payload = callback["payload"]
        if callback["type"] == "message-event":
            told[payload.get("gsId") or payload["id"], payload["type"]] += 1
        elif callback["type"] == "message":
            taps.append(payload["payload"]["postbackText"])

    assert refused.keys().isdisjoint({"130429", "131056"}), refused
    assert most_in_a_second(taken) <= per_second
    assert Counter(one["callback_data"] for one in taken) == Counter(sent)
    assert told == Counter((one, kind) for one in sent for kind in kinds)
    assert fleet["counts"]["delivered"] == fleet["counts"]["read"] == len(sent)
    assert taps == ["later"] * fleet["steps"][1]["planned"]


@pytest.mark.both_engines
async def test_thousand_a_second_is_kept_and_everything_comes_back(make_pipeline: MakePipeline) -> None:
    """At a quarter of real time, so that a machine that is slower than the limit meets it, too."""
    clock = VirtualClock()
    pipeline = await make_pipeline(
        clock=clock, changes={"per_second": 1000}, simulator_changes={"gather_ms": 20, "deliver_after_ms": 50}
    )
    await at_throughput(pipeline, 1000)
    await make_fleet(pipeline)
    template_id = await pipeline.approved_template()
    await hear(pipeline, "DELIVERED,FAILED,MESSAGE")
    clock.run(factor=0)
    sent = await send_to(pipeline, template_id, 1100)

    clock.run(factor=0.25)
    shown = await patiently(lambda: fleet_of(pipeline), lambda one: one["counts"]["read"] == len(sent))

    heard = len(sent) + shown["steps"][1]["planned"]
    await pipeline.sink.wait_until(lambda: len(pipeline.sink.tries) > heard)
    await judge(pipeline, sent, ("delivered",), per_second=1000)


async def test_eighty_a_second_is_kept_and_everything_comes_back(make_pipeline: MakePipeline) -> None:
    """In virtual time, from due time to due time."""
    clock = VirtualClock()
    pipeline = await make_pipeline(clock=clock, simulator_changes={"deliver_after_ms": 50})
    await make_fleet(pipeline)
    template_id = await pipeline.approved_template()
    clock.run(factor=0)
    sent = await send_to(pipeline, template_id, 170)
    began_ms = clock.now_ms()

    await pipeline.travel(ms=10_000)

    await judge(pipeline, sent, ("enqueued", "sent", "delivered", "read"), per_second=80)
    taken = (await pipeline.control("GET", "deliveries?limit=20000"))["deliveries"]
    assert max(one["at_ms"] for one in taken) - began_ms < 1000 * (170 / 80 + 1)
