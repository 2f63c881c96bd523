"""A fleet of ten thousand phones: the limits are kept, and nobody is forgotten."""

import asyncio
from collections import Counter
from typing import Any

from tests.conftest import MakeStreet
from tests.support.builders import APP
from tests.support.patience import patiently
from tests.support.street import Street
from waypost.base.clock import VirtualClock

FIRST = 15_551_000_000
PHONES = 10_000
SCRIPT = [
    {"on": "button", "do": "read", "after_ms": [0, 300]},
    {"on": "button", "do": "tap", "index": 1, "after_ms": [0, 300], "probability": 0.2},
]
Part = dict[str, Any]


async def at_throughput(street: Street, per_second: int) -> None:
    """The number's own limit at the operator; ours is a setting."""
    number = {"waba_id": APP.business_account_id, "phone_number": APP.phone_number, "name": APP.name}
    path = f"numbers/{APP.phone_number_id}"
    await street.control("PUT", path, {**number, "throughput": per_second})


async def make_fleet(street: Street, **more: Any) -> None:
    wish = {"name": "crowd", "first": str(FIRST), "count": PHONES, "script": SCRIPT, "seed": 1}
    await street.control("POST", "fleets", {**wish, **more})


async def send_to(street: Street, template_id: str, count: int) -> list[str]:
    """One message to each of so many phones, spread over the fleet, as fast as they are taken."""
    phones = iter(range(FIRST, FIRST + PHONES, PHONES // count))
    sent: list[str] = []

    async def keep_sending() -> None:
        for phone in phones:
            sent.append(  # noqa: PERF401  others send beside
                await street.send(template_id, to=str(phone), postback_texts={1: "later"})
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


async def hear(street: Street, modes: str) -> None:
    """Subscribe the receiver to these modes and nothing else."""
    path = f"/partner/app/{APP.id}/subscription"
    await street.ask("DELETE", path, headers={"Authorization": street.app_token})
    await street.subscribe(modes=modes)


async def fleet_of(street: Street) -> Part:
    return await street.control("GET", "fleets/crowd")


async def judge(street: Street, sent: list[str], kinds: tuple[str, ...], per_second: int) -> None:
    """Everything was taken once, delivered, read and called back; and no limit was met."""
    fleet = await fleet_of(street)
    taken = (await street.control("GET", "deliveries?limit=20000"))["deliveries"]
    refused = (await street.control("GET", "state"))["refused"]
    told: Counter[tuple[str, str]] = Counter()
    taps: list[str] = []
    for callback in street.callbacks:
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


async def test_thousand_a_second_is_kept_and_everything_comes_back(make_street: MakeStreet) -> None:
    """At a quarter of real time, so that a machine that is slower than the limit meets it, too."""
    clock = VirtualClock()
    street = await make_street(
        clock=clock, changes={"per_second": 1000}, simulator_changes={"gather_ms": 20, "deliver_after_ms": 50}
    )
    await at_throughput(street, 1000)
    await make_fleet(street)
    template_id = await street.approved_template()
    await hear(street, "DELIVERED,FAILED,MESSAGE")
    clock.run(factor=0)
    sent = await send_to(street, template_id, 1100)

    clock.run(factor=0.25)
    shown = await patiently(lambda: fleet_of(street), lambda one: one["counts"]["read"] == len(sent))

    heard = len(sent) + shown["steps"][1]["planned"]
    await street.sink.wait_until(lambda: len(street.sink.tries) > heard)
    await judge(street, sent, ("delivered",), per_second=1000)


async def test_eighty_a_second_is_kept_and_everything_comes_back(make_street: MakeStreet) -> None:
    """In virtual time, from due time to due time."""
    clock = VirtualClock()
    street = await make_street(clock=clock, simulator_changes={"deliver_after_ms": 50})
    await make_fleet(street)
    template_id = await street.approved_template()
    clock.run(factor=0)
    sent = await send_to(street, template_id, 170)
    began_ms = clock.now_ms()

    await street.travel(ms=10_000)

    await judge(street, sent, ("enqueued", "sent", "delivered", "read"), per_second=80)
    taken = (await street.control("GET", "deliveries?limit=20000"))["deliveries"]
    assert max(one["at_ms"] for one in taken) - began_ms < 1000 * (170 / 80 + 1)
