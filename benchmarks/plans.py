"""The plans of every statement that the busy path runs, on a store with many messages: none may read a table that grows."""

import asyncio
import pickle
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.pipeline import run, start
from benchmarks.processes import Child, free_port
from benchmarks.seeding import connected
from benchmarks.statements import Statement, plan_of, scans
from benchmarks.stores import Store, Stores

MESSAGES = 300
# fmt: off
GROWS = (  # what has a row for each message, callback or recipient; all else has one for each app or account
    "messages", "message_events", "inbound_webhooks", "webhook_items", "callbacks", "attempts", "recipients", "sequences",
    "inbound_messages", "queue_jobs", "media", "media_copies", "inbound_media", "idempotency_keys",
)
# fmt: on


async def measure(stores: Stores, stocked: Store) -> list[Figure]:
    """Collect on a small store while the pipeline runs, explain on a large one, print, judge."""
    collected = await _collected(stores)
    found: list[str] = []
    print(f"Plans on {stores.engine} ({stores.version}): {len(collected)} statements of the busy path")
    with connected(stocked) as connection:
        for one in collected:
            plan = plan_of(connection, one)
            print(f"\n{one.times:6} x {' '.join(one.text.split())[:300]}")
            print("\n".join(f"         {line}" for line in plan))
            bad = [step.text for step in scans(plan) if grows(step.table)]
            found += [f"{' '.join(one.text.split())[:80]}: {text}" for text in bad]
    print()
    return [
        Figure(
            "T5", stores.engine, f"of {len(collected)} hot statements, reading a table that grows", len(found), "", 0,
            lower_is_better=True, note="; ".join(found)[:300],
        )
    ]  # fmt: skip


def grows(table: str) -> bool:
    """Whether a table, or the one that it is a partition of, grows with the traffic."""
    return any(table == name or table.startswith((f"{name}_2", f"{name}_default")) for name in GROWS)


async def _collected(stores: Stores) -> list[Statement]:
    store = stores.new()
    file = Path(store.folder) / "statements"
    children: dict[str, Child] = start(store, "--collect", str(file), graph=free_port())
    try:
        for child in children.values():
            child.wait_ready()
        await run(children, store, messages=MESSAGES)
    finally:
        for child in reversed(children.values()):
            await asyncio.to_thread(child.end)
    return pickle.loads(file.read_bytes())
