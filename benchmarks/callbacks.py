"""T4: callbacks alone to a fast receiver, relative to bare POSTs of a general client to the same receiver."""

import argparse
import asyncio
import time
from typing import Any

from sqlalchemy import insert

from benchmarks.measurements import Measurement
from benchmarks.processes import Child
from benchmarks.seeding import connect_store
from benchmarks.stores import Store, Stores
from waypost.store.tables import callbacks, sequences, subscriptions

TARGETS = {"sqlite": 0.65, "postgresql": 0.6}  # by engine. Source: decision 0087, T4
CONCURRENCY = 64
RECIPIENTS = 2_000
WITHIN_S = 60
BODY = (
    b'{"app":"BenchApp","timestamp":1800000000000,"version":2,"phone":"1555","type":"message-event","payload":{"id":"wamid.HBgLMTU1",'
    b'"gsId":"%s","type":"read","destination":"%d","payload":{"ts":1800000000}}}'
)


async def measure(stores: Stores, options: argparse.Namespace) -> tuple[list[Measurement], dict[str, Any]]:
    """Run rounds of both in turn; use the best of each, because a pause of the machine belongs to neither."""
    count = options.callbacks
    bare, ours, raw = [], [], []
    for _ in range(min(options.rounds, 3)):
        bare.append(await _bare(count))
        round_values = await _ours(stores.new(), count)
        raw.append(round_values)
        ours.append(round_values["per_s"])
    ratio = max(ours) / max(bare)
    measurements = [
        Measurement(
            "T4", stores.engine, "callbacks delivered / bare posts", ratio, "x", TARGETS[stores.engine], is_ratio=True,
            note=f"{max(ours):,.0f}/s of {max(bare):,.0f}/s; service {raw[-1]['cpu_us']:.0f} us each",
        ),
        Measurement(
            "T4", stores.engine, "callbacks lost, duplicated or out of sequence", sum(round_values["wrong"] for round_values in raw), "", 0,
            lower_is_better=True,
        ),
    ]  # fmt: skip
    return measurements, {"bare_per_s": bare, "ours": raw}


async def _bare(count: int) -> float:
    """Return the rate of aiohttp, 64 POSTs at a time, on a shared core like the service's."""
    receiver = Child("benchmarks.receiver")
    poster = Child("benchmarks.bare_posts", "--to", str(receiver.port), "--count", str(count))
    try:
        receiver.wait_ready()
        await asyncio.to_thread(poster.wait_ended, within_s=WITHIN_S)
        summary = await asyncio.to_thread(receiver.get, "/summary")
    finally:
        receiver.end()
        poster.end()
    return summary["callbacks"] / (summary["last_s"] - summary["first_s"])


async def _ours(store: Store, count: int) -> dict[str, Any]:
    receiver = Child("benchmarks.receiver")
    seeding = Child("benchmarks.service", *store.options, "--receiver", f"http://127.0.0.1:{receiver.port}/callbacks")
    await asyncio.to_thread(seeding.wait_responding)
    await asyncio.to_thread(seeding.end)
    await asyncio.to_thread(_queue, store, count)
    service = Child("benchmarks.service", *store.options, "--seeded", "--stages")
    try:
        deadline_s = time.monotonic() + WITHIN_S
        while (await asyncio.to_thread(receiver.get, "/counts"))["reads"] < count:
            if time.monotonic() > deadline_s:
                break
            await asyncio.sleep(0.05)
        cpu_s = service.cpu_s()
        summary = await asyncio.to_thread(receiver.get, "/summary")
    finally:
        service.end()
        receiver.end()
    count_received = summary["callbacks"]
    out_of_sequence = summary["wrong"].get("out of sequence", 0)
    return {
        "per_s": count_received / (summary["last_s"] - summary["first_s"]),
        "cpu_us": 1e6 * cpu_s / count,  # including the start
        "wrong": abs(count - count_received) + summary["wrong"].get("duplicated", 0) + out_of_sequence,
    }


def _queue(store: Store, count: int) -> None:
    """Insert queued callbacks of many recipients, as the stages enqueue them."""
    now_ms = int(time.time() * 1000)
    with connect_store(store) as connection:
        subscription = connection.execute(subscriptions.select().limit(1)).one()
        rows = []
        for n in range(count):
            recipient = n % RECIPIENTS
            callback_id = f"01990000-0000-7000-8000-{n:012x}"
            rows.append({
                "id": callback_id, "partner_id": subscription.partner_id, "app_id": subscription.app_id,
                "subscription_id": subscription.id, "subject": str(recipient), "sequence": 1 + n // RECIPIENTS,
                "message_id": callback_id, "event": "read", "body": BODY % (callback_id.encode(), recipient),
                "created_on_ms": now_ms, "position": 1 + n, "due_ms": now_ms,
            })  # fmt: skip
        for low in range(0, count, 1000):
            connection.execute(insert(callbacks), rows[low : low + 1000])
        connection.execute(
            insert(sequences),
            [
                {"subscription_id": subscription.id, "subject": str(recipient), "last": 1 + count // RECIPIENTS}
                for recipient in range(RECIPIENTS)
            ],
        )
        connection.commit()
