"""T4: callbacks alone to a fast receiver, against bare POSTs of a general client to the same receiver."""

import argparse
import asyncio
import time
from typing import Any

from sqlalchemy import insert

from benchmarks.figures import Figure
from benchmarks.processes import Child
from benchmarks.seeding import connected
from benchmarks.stores import Store, Stores
from waypost.store.queue.jobs import QueueName
from waypost.store.tables import callbacks, queue_jobs, sequences, subscriptions

LEAST = 0.5  # Source: decision 0087, T4
AT_ONCE = 64
RECIPIENTS = 2_000
WITHIN_S = 60
BODY = (
    b'{"app":"BenchApp","timestamp":1800000000000,"version":2,"phone":"1555","type":"message-event","payload":{"id":"wamid.HBgLMTU1",'
    b'"gsId":"%s","type":"read","destination":"%d","payload":{"ts":1800000000}}}'
)


async def measure(stores: Stores, options: argparse.Namespace) -> tuple[list[Figure], dict[str, Any]]:
    """Rounds of both, taken in turn; the best of each, for a pause of the machine is nobody's."""
    count = options.callbacks
    bare, ours, raw = [], [], []
    for _ in range(min(options.rounds, 3)):
        bare.append(await _bare(count))
        one = await _ours(stores.new(), count)
        raw.append(one)
        ours.append(one["per_s"])
    ratio = max(ours) / max(bare)
    figures = [
        Figure(
            "T4", stores.engine, "callbacks delivered / bare posts", ratio, "x", LEAST, is_ratio=True,
            note=f"{max(ours):,.0f}/s of {max(bare):,.0f}/s; service {raw[-1]['cpu_us']:.0f} us each",
        ),
        Figure(
            "T4", stores.engine, "callbacks lost, doubled or out of sequence", sum(one["wrong"] for one in raw), "", 0,
            lower_is_better=True,
        ),
    ]  # fmt: skip
    return figures, {"bare_per_s": bare, "ours": raw}


async def _bare(count: int) -> float:
    """What aiohttp posts, `NO_DELAYS` at a time, on a core that it shares as the service does."""
    receiver = Child("benchmarks.receiver")
    poster = Child("benchmarks.bare_posts", "--to", str(receiver.port), "--count", str(count))
    try:
        receiver.wait_ready()
        await asyncio.to_thread(poster.wait_ended, within_s=WITHIN_S)
        judged = await asyncio.to_thread(receiver.get, "/judged")
    finally:
        receiver.end()
        poster.end()
    return judged["callbacks"] / (judged["last_s"] - judged["first_s"])


async def _ours(store: Store, count: int) -> dict[str, Any]:
    receiver = Child("benchmarks.receiver")
    seeding = Child("benchmarks.service", *store.options, "--receiver", f"http://127.0.0.1:{receiver.port}/callbacks")
    await asyncio.to_thread(seeding.wait_answering)
    await asyncio.to_thread(seeding.end)
    await asyncio.to_thread(_queue, store, count)
    service = Child("benchmarks.service", *store.options, "--seeded", "--stages")
    try:
        until_s = time.monotonic() + WITHIN_S
        while (await asyncio.to_thread(receiver.get, "/reads"))["reads"] < count:
            if time.monotonic() > until_s:
                break
            await asyncio.sleep(0.05)
        cpu_s = service.cpu_s()
        judged = await asyncio.to_thread(receiver.get, "/judged")
    finally:
        service.end()
        receiver.end()
    seen = judged["callbacks"]
    out_of_sequence = judged["wrong"].get("out of sequence", 0)
    return {
        "per_s": seen / (judged["last_s"] - judged["first_s"]),
        "cpu_us": 1e6 * cpu_s / count,  # starting included
        "wrong": abs(count - seen) + judged["wrong"].get("told twice", 0) + out_of_sequence,
    }


def _queue(store: Store, count: int) -> None:
    """Callbacks that wait, spread over recipients, each with its entry, as `queue.recorder` leaves them."""
    now_ms = int(time.time() * 1000)
    with connected(store) as connection:
        subscription = connection.execute(subscriptions.select().limit(1)).one()
        rows, jobs = [], []
        for n in range(count):
            who = n % RECIPIENTS
            callback_id = f"01990000-0000-7000-8000-{n:012x}"
            rows.append({
                "id": callback_id, "partner_id": subscription.partner_id, "app_id": subscription.app_id,
                "subscription_id": subscription.id, "about": str(who), "sequence": 1 + n // RECIPIENTS,
                "message_id": callback_id, "news": "read", "body": BODY % (callback_id.encode(), who),
                "created_on_ms": now_ms,
            })  # fmt: skip
            jobs.append({
                "queue": int(QueueName.CALLBACKS), "concurrency_group": f"subscription {subscription.id}",
                "ordering_key": f"{subscription.id} {who}", "ref": callback_id, "due_ms": now_ms,
            })  # fmt: skip
        for low in range(0, count, 1000):
            connection.execute(insert(callbacks), rows[low : low + 1000])
            connection.execute(insert(queue_jobs), jobs[low : low + 1000])
        connection.execute(
            insert(sequences),
            [
                {"subscription_id": subscription.id, "about": str(who), "last": 1 + count // RECIPIENTS}
                for who in range(RECIPIENTS)
            ],
        )
        connection.commit()
