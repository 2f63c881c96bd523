"""T1 and T2: durable acknowledgements of the API stage alone, on each engine, relative to the bare server."""

import argparse
import asyncio
import itertools
import os
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from benchmarks.load import prepare_requests, send_closed_loop, session_text, template_message
from benchmarks.measurements import Measurement
from benchmarks.processes import Child
from benchmarks.profiling import Sampler, format_table
from benchmarks.stores import Store, Stores

SERVER_CORE, LOAD_CORE = 0, 1
UNLOGGED = " without the request log"
"""Ends the name of a server that is the same but for that; it is measured in one case."""
UNLOGGED_CASE = ("session text", 64)
WARM_S = 0.3
# fmt: off
TARGETS = {  # Source: decision 0087, T1: by engine and connections, the required ratio and the aim
    ("sqlite",     16): (0.40, None),
    ("sqlite",     64): (0.55, 0.60),
    ("postgresql", 16): (0.40, None),
    ("postgresql", 64): (0.65, 0.75),
}
P99_OF_P50 = 5      # Source: decision 0087, T1; at every number of connections
LOGGED = 0.98       # Source: decision 0108: at most 2 percent
CPU_AIM_US = 75     # Source: decision 0087, T2; on PostgreSQL 55 in the service and 20 in the database
REQUEST_KINDS = {"session text": session_text, "template": template_message}
# fmt: on


@dataclass(frozen=True, slots=True)
class Server:
    """A measured process, and its store if it has one."""

    child: Child
    store: Store | None = None

    def cpu_s(self) -> tuple[float, float]:
        """Return the processor time of the process, and of its database's processes."""
        return self.child.cpu_s(), self.store.server_cpu_s() if self.store else 0.0


async def measure(
    stores: Mapping[str, Stores], options: argparse.Namespace
) -> tuple[list[Measurement], dict[str, Any]]:
    """Measure T1 and T2 on each engine; return the measurements and the raw values."""
    with PinnedToCore(LOAD_CORE), ExitStack() as stack:
        servers = {"bare": Server(Child("benchmarks.bare", "--core", str(SERVER_CORE)))}
        stack.callback(servers["bare"].child.end)
        for engine, engine_stores in stores.items():
            servers[engine] = start_server(engine_stores.new(), "--core", str(SERVER_CORE))
            stack.callback(servers[engine].child.end)
            unlogged = f"{engine}{UNLOGGED}"
            servers[unlogged] = start_server(engine_stores.new(), "--core", str(SERVER_CORE), "--no-request-log")
            stack.callback(servers[unlogged].child.end)
        for server in servers.values():
            server.child.wait_ready()
        rows = await _rounds(servers, options)
        if options.profile:
            for engine in stores:
                await _profile(servers[engine], engine)
    return list(_measurements(rows, list(stores))), {"rows": rows}


def start_server(store: Store, *options: str) -> Server:
    """Start the service on a store, with the API stage only."""
    return Server(Child("benchmarks.service", *store.options, *options), store)


class PinnedToCore:
    """Pins this process to one core, so that the load never uses the server's; restores the affinity at the end."""

    def __init__(self, core: int) -> None:
        self._core = core

    def __enter__(self) -> None:
        self._before = os.sched_getaffinity(0)
        if len(self._before) > 1:
            os.sched_setaffinity(0, {self._core})

    def __exit__(self, *_: object) -> None:
        os.sched_setaffinity(0, self._before)


async def _rounds(servers: Mapping[str, Server], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run interleaved rounds, so that noise of the machine affects all servers; return the medians."""
    cases = [("session text", count) for count in options.connections]
    cases += [("template", 64)] if 64 in options.connections else []
    rounds_of: dict[tuple[str, int, str], list[dict[str, float]]] = {}
    for _ in range(options.rounds):
        for kind, connections in cases:
            for name, server in servers.items():
                if name.endswith(UNLOGGED) and (kind, connections) != UNLOGGED_CASE:
                    continue
                round_values = await run_round([server], kind, connections, options.seconds)
                rounds_of.setdefault((kind, connections, name), []).append(round_values)
    rows: list[dict[str, Any]] = []
    for kind, connections in cases:
        row: dict[str, Any] = {"kind": kind, "connections": connections}
        bare = rounds_of[kind, connections, "bare"]
        for name in servers:
            rounds = rounds_of.get((kind, connections, name))
            if rounds is None:
                continue
            row[name] = {what: statistics.median(values[what] for values in rounds) for what in rounds[0]}
            ratios = [values["per_s"] / bare_values["per_s"] for values, bare_values in zip(rounds, bare, strict=True)]
            row[name]["ratio"] = statistics.median(ratios)
            row[name]["ratio_spread"] = max(ratios) - min(ratios)
        rows.append(row)
    return rows


async def run_round(servers: Sequence[Server], kind: str, connections: int, seconds: float) -> dict[str, float]:
    """Run one round: the connections divided among the servers, all at the same time."""
    requests = prepare_requests(REQUEST_KINDS[kind], phones=2000, sources=8)
    deadline_s = time.monotonic() + WARM_S + seconds
    share = connections // len(servers)
    loads = [
        asyncio.create_task(
            send_closed_loop(server.child.port, _requests_until(requests, deadline_s), connections=share)
        )
        for server in servers
    ]
    await asyncio.sleep(WARM_S)
    from_s, before = time.monotonic(), [server.cpu_s() for server in servers]
    await asyncio.sleep(seconds)
    to_s, after = time.monotonic(), [server.cpu_s() for server in servers]
    exchanges = [exchange for responses in await asyncio.gather(*loads) for exchange in responses]
    counted = [exchange for exchange in exchanges if from_s <= exchange.ended_s < to_s]
    took_ms = sorted(1000 * (exchange.ended_s - exchange.began_s) for exchange in counted)
    own_s = sum(later[0] - earlier[0] for earlier, later in zip(before, after, strict=True))
    database_s = after[0][1] - before[0][1]  # the servers share one
    return {
        "per_s": len(counted) / (to_s - from_s),
        "p50_ms": took_ms[len(took_ms) // 2],
        "p99_ms": took_ms[len(took_ms) * 99 // 100],
        "cpu_us": 1e6 * own_s / len(counted),
        "database_us": 1e6 * database_s / len(counted),
    }


def _requests_until(requests: Sequence[bytes], deadline_s: float) -> Iterator[bytes]:
    return itertools.takewhile(lambda _: time.monotonic() < deadline_s, itertools.cycle(requests))


async def _profile(server: Server, engine: str) -> None:
    sampler = Sampler(f"API stage alone on {engine}, 64 connections", server.child.pid, seconds=4)
    await asyncio.sleep(0.5)
    values = await run_round([server], "session text", 64, 4)
    stacks = await asyncio.to_thread(sampler.samples)
    print(format_table(sampler.title, stacks, values["cpu_us"], top=20), end="\n\n")


def _measurements(rows: Sequence[dict[str, Any]], engines: Sequence[str]) -> Iterator[Measurement]:
    for row in rows:
        bare = row["bare"]
        what = f"{row['kind']}, {row['connections']} at once"
        for engine in engines:
            values = row[engine]
            has_target = row["kind"] == "session text"
            least, aim = TARGETS.get((engine, row["connections"]), (None, None))
            yield Measurement(
                "T1", engine, f"acknowledged / bare; {what}", values["ratio"], "x",
                least if has_target else None, aim if has_target else None, is_ratio=True,
                note=f"{values['per_s']:,.0f}/s of {bare['per_s']:,.0f}/s, p50 {values['p50_ms']:.1f} p99 {values['p99_ms']:.1f} ms",
            )  # fmt: skip
    for row in rows:
        if row["kind"] != "session text":
            continue
        for engine in engines:
            values = row[engine]
            yield Measurement(
                "T1", engine, f"p99 / p50; {row['connections']} at once", values["p99_ms"] / values["p50_ms"], "x",
                P99_OF_P50, lower_is_better=True, is_ratio=True,
                note=f"bare {row['bare']['p99_ms'] / row['bare']['p50_ms']:.1f}",
            )  # fmt: skip
    for row in rows:
        if (row["kind"], row["connections"]) != UNLOGGED_CASE:
            continue
        for engine in engines:
            values, unlogged = row[engine], row[f"{engine}{UNLOGGED}"]
            yield Measurement(
                "T1", engine, "acknowledged with the request log / without it, 64 at once",
                values["per_s"] / unlogged["per_s"], "x", LOGGED, is_ratio=True,
                note=f"processor time an acknowledgement {values['cpu_us']:.1f} and {unlogged['cpu_us']:.1f} us",
            )  # fmt: skip
            yield Measurement(
                "T2", engine, "processor time an acknowledgement, 64 at once",
                values["cpu_us"] + values["database_us"], "us", aim=CPU_AIM_US, lower_is_better=True,
                note=f"service {values['cpu_us']:.0f}, database {values['database_us']:.0f}; bare {row['bare']['cpu_us']:.0f}",
            )  # fmt: skip
            yield Measurement(
                "T2", engine, "the same / bare", (values["cpu_us"] + values["database_us"]) / row["bare"]["cpu_us"], "x",
                lower_is_better=True, is_ratio=True,
            )  # fmt: skip
