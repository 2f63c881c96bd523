"""T6: a second process on PostgreSQL: what it adds, and what an acknowledgement costs then."""

import argparse
import os
import statistics
from contextlib import ExitStack
from typing import Any

from benchmarks.accept import once, started
from benchmarks.figures import Figure
from benchmarks.seeding import seed
from benchmarks.stores import Stores

COST = 1.15  # Source: decision 0087, T6: of processor time an acknowledgement, on 2 cores
GAIN = 1.7  # of throughput, on 6 or more
MANY_CORES = 6


async def measure(stores: Stores, options: argparse.Namespace) -> tuple[list[Figure], dict[str, Any]]:
    """One process and two on one database, rounds in turn, 64 connections shared out."""
    store = stores.new()
    seed(store)
    with ExitStack() as ends:
        servers = [started(store, "--seeded") for _ in range(2)]
        for server in servers:
            ends.callback(server.child.end)
            server.child.wait_answering()
        one: list[dict[str, float]] = []
        two: list[dict[str, float]] = []
        for _ in range(options.rounds):
            one.append(await once(servers[:1], "session text", 64, options.seconds))
            two.append(await once(servers, "session text", 64, options.seconds))
    cost = [_cost(b) / _cost(a) for a, b in zip(one, two, strict=True)]
    gain = [b["per_s"] / a["per_s"] for a, b in zip(one, two, strict=True)]
    has_many = (os.cpu_count() or 1) >= MANY_CORES
    return [
        Figure(
            "T6", stores.engine, "processor time an acknowledgement, two processes / one", statistics.median(cost),
            "x", None if has_many else COST, lower_is_better=True, is_ratio=True,
            note=f"{statistics.median(map(_cost, two)):.0f} us of {statistics.median(map(_cost, one)):.0f} us",
        ),
        Figure(
            "T6", stores.engine, "acknowledged, two processes / one", statistics.median(gain), "x",
            GAIN if has_many else None, is_ratio=True,
            note="" if has_many else f"judged on {MANY_CORES} cores and more",
        ),
    ], {"one": one, "two": two}  # fmt: skip


def _cost(one: dict[str, float]) -> float:
    return one["cpu_us"] + one["database_us"]
