"""T9: the rows that one message writes in the store, and the bytes that it takes there. Counts, so no time matters.

Three runs of the service on one store, with the same receiver and simulator. The counter is read between
them, when the service has stopped as `serve` stops, so that nothing is pending:

1. It creates the store and what the pipeline needs, and passes one message. Not counted.
2. It starts, passes the messages through the whole pipeline, and stops. Every phone but one is new to the
   store, so each message also pays for the rows of its recipient.
3. It starts, is idle for the same time, and stops. These are the rows of starting, stopping and background
   work (leases, processes, retention); they are subtracted, see `message_rows`.
"""

import argparse
import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.measurements import Measurement
from benchmarks.pipeline import run_load, start_children, start_service
from benchmarks.processes import Child
from benchmarks.row_counts import OPERATIONS, ROW_COUNTERS, RowCounts
from benchmarks.stores import Store, Stores
from waypost.store.tables import metadata

ROWS, ROWS_AIM = 24, 20  # Source: decision 0087, T9
BYTES = 4_000
PARTS_IN_NOTE = 5


async def measure(stores: Stores, options: argparse.Namespace) -> tuple[list[Measurement], dict[str, Any]]:
    """Count on one engine.

    Raises:
        RuntimeError: not every message was read and called back, so the counts would be of something else.
    """
    store = stores.new()
    counter = ROW_COUNTERS[stores.engine](store, metadata.tables)
    children = start_children(store)
    try:
        for child in children.values():
            await asyncio.to_thread(child.wait_ready)
        await _pass_messages(children, store, 1)
        await asyncio.to_thread(children["service"].end)
        counter.start()
        before, sizes_before = counter.read(), counter.read_sizes()
        began_s = time.monotonic()
        async with _running_service(children, store):
            await _pass_messages(children, store, options.counted)
            took_s = time.monotonic() - began_s
        after, sizes_after = counter.read(), counter.read_sizes()
        async with _running_service(children, store):
            await asyncio.sleep(took_s)
        background = _difference(counter.read(), after)
    finally:
        for child in reversed(children.values()):
            child.end()
    written = message_rows(_difference(after, before), background)
    rows = {key: count / options.counted for key, count in written.items()}
    sizes = {name: (size - sizes_before.get(name, 0)) / options.counted for name, size in sizes_after.items()}
    print(format_counts(f"Rows written for one message, whole pipeline on {stores.engine}", rows, sizes), end="\n\n")
    raw = {
        "messages": options.counted,
        "rows": _by_table(rows),
        "bytes": {name: round(size, 1) for name, size in sizes.items()},
        "background rows": _by_table(background),
    }
    return list(_measurements(stores.engine, rows, sizes, background)), raw


async def _pass_messages(children: dict[str, Child], store: Store, count: int) -> None:
    """Pass messages through the whole pipeline, and return when all have been read and called back.

    Raises:
        RuntimeError: not every message took the usual path, so the counts would be of something else.
    """
    await asyncio.to_thread(children["service"].wait_responding)
    raw = await run_load(children, store, messages=count)
    if raw["lost"] or raw["wrong"] or raw["messages"] != count:
        raise RuntimeError(f"{raw['lost']} callbacks lost, wrong: {raw['wrong']}")


@asynccontextmanager
async def _running_service(children: dict[str, Child], store: Store) -> AsyncGenerator[None]:
    """Run the service on its store and at its port once more, and wait until it has stopped."""
    children["service"] = start_service(
        store,
        "--seeded",
        receiver=children["receiver"],
        graph=children["simulator"].port,
        port=children["service"].port,
    )
    await asyncio.to_thread(children["service"].wait_responding)
    yield
    await asyncio.to_thread(children["service"].end)


def message_rows(loaded: RowCounts, idle: RowCounts) -> RowCounts:
    """Return the rows that messages have written: those of a run with load, without those of an idle run.

    What the idle run writes at least half as often belongs to no message and is left out, because a
    renewal more or less in one of the two runs would count as rows of messages.
    """
    return Counter({key: count - idle[key] for key, count in loaded.items() if count > 2 * idle[key]})


def _difference(after: Mapping[tuple[str, str], int], before: Mapping[tuple[str, str], int]) -> RowCounts:
    return Counter({key: count - before.get(key, 0) for key, count in after.items()})


def _by_table(rows: Mapping[tuple[str, str], float]) -> dict[str, dict[str, float]]:
    """Return the rows of each table that was written, by operation."""
    tables = dict.fromkeys(table for (table, _), count in rows.items() if count)
    return {
        table: {operation: round(rows.get((table, operation), 0), 3) for operation in OPERATIONS} for table in tables
    }


def format_counts(title: str, rows: Mapping[tuple[str, str], float], sizes: Mapping[str, float]) -> str:
    """Return a table of the rows and bytes of one message, the largest number of rows first."""
    by_table = _by_table(rows)
    grown = {name: size for name, size in sizes.items() if round(size)}
    totals = {table: sum(by_table.get(table, {}).values()) for table in (*by_table, *grown)}
    lines = [f"{title}: {sum(rows.values()):.2f} rows, {sum(sizes.values()):,.0f} bytes"]
    lines.append(f"  {'rows':>7}{'bytes':>8}  {'table':24}" + "".join(f"{operation:>9}" for operation in OPERATIONS))
    for table, total in sorted(totals.items(), key=lambda item: (-item[1], -grown.get(item[0], 0))):
        counts = by_table.get(table, {})
        lines.append(
            f"  {total:7.2f}{sizes.get(table, 0):8,.0f}  {table or 'no table':24}"
            + "".join(f"{counts.get(operation, 0):9.2f}" for operation in OPERATIONS)
        )
    return "\n".join(lines)


def _measurements(
    engine: str, rows: Mapping[tuple[str, str], float], sizes: Mapping[str, float], background: RowCounts
) -> Iterator[Measurement]:
    largest = Counter({f"{table} {operation}": count for (table, operation), count in rows.items()})
    parts = ", ".join(f"{name} {count:.1f}" for name, count in largest.most_common(PARTS_IN_NOTE))
    yield Measurement(
        "T9", engine, "rows a message", sum(rows.values()), "", ROWS, ROWS_AIM, lower_is_better=True, is_ratio=True,
        note=f"{parts}; {sum(background.values()):,} rows of an idle run left out",
    )  # fmt: skip
    largest = Counter({name or "no table": size for name, size in sizes.items()})
    parts = ", ".join(f"{name} {size:,.0f}" for name, size in largest.most_common(PARTS_IN_NOTE))
    yield Measurement(
        "T9", engine, "bytes a message in the store", sum(sizes.values()), "", BYTES, lower_is_better=True,
        is_ratio=True, note=parts,
    )  # fmt: skip
