"""T6: a second process on PostgreSQL: the throughput it adds, and the cost of an acknowledgement."""

import argparse
import os
import statistics
from contextlib import ExitStack
from typing import Any

from benchmarks.accept import run_round, start_server
from benchmarks.measurements import Measurement
from benchmarks.seeding import seed_store
from benchmarks.stores import Stores

COST = 1.15  # Source: decision 0087, T6: of processor time an acknowledgement, on 2 cores
GAIN = 1.7  # of throughput, on 6 or more
MANY_CORES = 6


async def measure(stores: Stores, options: argparse.Namespace) -> tuple[list[Measurement], dict[str, Any]]:
    """Measure one process and two on one database, rounds in turn, 64 connections divided among them."""
    store = stores.new()
    seed_store(store)
    with ExitStack() as stack:
        servers = [start_server(store, "--seeded") for _ in range(2)]
        for server in servers:
            stack.callback(server.child.end)
            server.child.wait_responding()
        one_process: list[dict[str, float]] = []
        two_processes: list[dict[str, float]] = []
        for _ in range(options.rounds):
            one_process.append(await run_round(servers[:1], "session text", 64, options.seconds))
            two_processes.append(await run_round(servers, "session text", 64, options.seconds))
    cost = [_cost(b) / _cost(a) for a, b in zip(one_process, two_processes, strict=True)]
    gain = [b["per_s"] / a["per_s"] for a, b in zip(one_process, two_processes, strict=True)]
    has_many = (os.cpu_count() or 1) >= MANY_CORES
    return [
        Measurement(
            "T6", stores.engine, "processor time an acknowledgement, two processes / one", statistics.median(cost),
            "x", None if has_many else COST, lower_is_better=True, is_ratio=True,
            note=f"{statistics.median(map(_cost, two_processes)):.0f} us of {statistics.median(map(_cost, one_process)):.0f} us",
        ),
        Measurement(
            "T6", stores.engine, "acknowledged, two processes / one", statistics.median(gain), "x",
            GAIN if has_many else None, is_ratio=True,
            note="" if has_many else f"required on {MANY_CORES} cores or more",
        ),
    ], {"one": one_process, "two": two_processes}  # fmt: skip


def _cost(values: dict[str, float]) -> float:
    return values["cpu_us"] + values["database_us"]
