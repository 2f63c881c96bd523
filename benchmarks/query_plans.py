"""The plans of all hot statements on a store with many messages: none may read the whole of a table that grows."""

import asyncio
import pickle
from pathlib import Path

from benchmarks.measurements import Measurement
from benchmarks.pipeline import run_load, start_children
from benchmarks.processes import Child, free_port
from benchmarks.seeding import connect_store
from benchmarks.statements import Statement, plan_of, scans
from benchmarks.stores import Store, Stores

MESSAGES = 300
# fmt: off
GROWS = (  # tables with a row for each message, callback or recipient; others have one for each app or account
    "messages", "message_events", "inbound_webhooks", "webhook_items", "callbacks", "attempts", "recipients", "sequences",
    "inbound_messages", "queue_jobs", "media", "media_copies", "inbound_media", "idempotency_keys",
)
# fmt: on


async def measure(stores: Stores, filled_store: Store) -> list[Measurement]:
    """Collect statements on a small store while the pipeline runs; explain them on a large one, print and check."""
    collected = await _collect_statements(stores)
    violations: list[str] = []
    print(f"Plans on {stores.engine} ({stores.version}): {len(collected)} hot statements")
    with connect_store(filled_store) as connection:
        for statement in collected:
            plan = plan_of(connection, statement)
            print(f"\n{statement.times:6} x {' '.join(statement.text.split())[:300]}")
            print("\n".join(f"         {line}" for line in plan))
            scanned = [step.text for step in scans(plan) if grows(step.table)]
            violations += [f"{' '.join(statement.text.split())[:80]}: {text}" for text in scanned]
    print()
    return [
        Measurement(
            "T5", stores.engine, f"of {len(collected)} hot statements, reading a table that grows", len(violations), "", 0,
            lower_is_better=True, note="; ".join(violations)[:300],
        )
    ]  # fmt: skip


def grows(table: str) -> bool:
    """True if a table, or the table that it is a partition of, grows with the traffic."""
    return any(table == name or table.startswith((f"{name}_2", f"{name}_default")) for name in GROWS)


async def _collect_statements(stores: Stores) -> list[Statement]:
    store = stores.new()
    file = Path(store.folder) / "statements"
    children: dict[str, Child] = start_children(store, "--collect", str(file), graph=free_port())
    try:
        for child in children.values():
            child.wait_ready()
        await run_load(children, store, messages=MESSAGES)
    finally:
        for child in reversed(children.values()):
            await asyncio.to_thread(child.end)
    return pickle.loads(file.read_bytes())
