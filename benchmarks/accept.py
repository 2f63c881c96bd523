"""T1 and T2: durable acknowledgements of the accept stage alone, on each engine, against the bare server."""

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

from benchmarks.figures import Figure
from benchmarks.load import as_fast_as_answered, prepared, session_text, template_message
from benchmarks.parts import Sampler, table
from benchmarks.processes import Child
from benchmarks.stores import Store, Stores

SERVER_CORE, LOAD_CORE = 0, 1
WARM_S = 0.3
# fmt: off
TARGETS = {  # Source: decision 0087, T1: by engine and connections the ratio that must be reached, and the aim
    ("sqlite",     16): (0.35, None),
    ("sqlite",     64): (0.45, 0.60),
    ("postgresql", 16): (0.35, None),
    ("postgresql", 64): (0.60, 0.70),
}
P99_OF_P50 = 5      # Source: decision 0087, T1
CPU_AIM_US = 75     # Source: decision 0087, T2; on PostgreSQL 55 in the service and 20 in the database
KINDS = {"session text": session_text, "template": template_message}
# fmt: on


@dataclass(frozen=True, slots=True)
class Server:
    """A process that is measured, and the store it keeps things in, where it has one."""

    child: Child
    store: Store | None = None

    def cpu_s(self) -> tuple[float, float]:
        """Processor time of its own and of its database's processes."""
        return self.child.cpu_s(), self.store.server_cpu_s() if self.store else 0.0


async def measure(stores: Mapping[str, Stores], options: argparse.Namespace) -> tuple[list[Figure], dict[str, Any]]:
    """T1 and T2 on each engine; the raw figures beside them."""
    with only_on(LOAD_CORE), ExitStack() as ends:
        servers = {"bare": Server(Child("benchmarks.bare", "--core", str(SERVER_CORE)))}
        ends.callback(servers["bare"].child.end)
        for engine, made in stores.items():
            servers[engine] = started(made.new(), "--core", str(SERVER_CORE))
            ends.callback(servers[engine].child.end)
        for server in servers.values():
            server.child.wait_ready()
        rows = await _rounds(servers, options)
        if options.profile:
            for engine in stores:
                await _profile(servers[engine], engine)
    return list(_figures(rows, list(stores))), {"rows": rows}


def started(store: Store, *options: str) -> Server:
    """The service on a store, with no stage but accept."""
    return Server(Child("benchmarks.service", *store.options, *options), store)


class only_on:  # noqa: N801  reads as what it does
    """This process on one core, so that the load never takes the server's; as before at the end."""

    def __init__(self, core: int) -> None:
        self._core = core

    def __enter__(self) -> None:
        self._before = os.sched_getaffinity(0)
        if len(self._before) > 1:
            os.sched_setaffinity(0, {self._core})

    def __exit__(self, *_: object) -> None:
        os.sched_setaffinity(0, self._before)


async def _rounds(servers: Mapping[str, Server], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Rounds are interleaved, so that noise of the machine meets all servers; medians are kept."""
    cases = [("session text", count) for count in options.connections]
    cases += [("template", 64)] if 64 in options.connections else []
    found: dict[tuple[str, int, str], list[dict[str, float]]] = {}
    for _ in range(options.rounds):
        for kind, connections in cases:
            for name, server in servers.items():
                one = await once([server], kind, connections, options.seconds)
                found.setdefault((kind, connections, name), []).append(one)
    rows: list[dict[str, Any]] = []
    for kind, connections in cases:
        row: dict[str, Any] = {"kind": kind, "connections": connections}
        bare = found[kind, connections, "bare"]
        for name in servers:
            rounds = found[kind, connections, name]
            row[name] = {what: statistics.median(one[what] for one in rounds) for what in rounds[0]}
            ratios = [one["per_s"] / other["per_s"] for one, other in zip(rounds, bare, strict=True)]
            row[name]["ratio"] = statistics.median(ratios)
            row[name]["ratio_spread"] = max(ratios) - min(ratios)
        rows.append(row)
    return rows


async def once(servers: Sequence[Server], kind: str, connections: int, seconds: float) -> dict[str, float]:
    """One round: the connections shared out over the servers, all at once."""
    requests = prepared(KINDS[kind], phones=2000, sources=8)
    until_s = time.monotonic() + WARM_S + seconds
    share = connections // len(servers)
    loads = [
        asyncio.create_task(as_fast_as_answered(server.child.port, _until(requests, until_s), connections=share))
        for server in servers
    ]
    await asyncio.sleep(WARM_S)
    from_s, before = time.monotonic(), [server.cpu_s() for server in servers]
    await asyncio.sleep(seconds)
    to_s, after = time.monotonic(), [server.cpu_s() for server in servers]
    answers = [one for answered in await asyncio.gather(*loads) for one in answered]
    counted = [one for one in answers if from_s <= one.ended_s < to_s]
    took_ms = sorted(1000 * (one.ended_s - one.began_s) for one in counted)
    own_s = sum(later[0] - earlier[0] for earlier, later in zip(before, after, strict=True))
    database_s = after[0][1] - before[0][1]  # the servers share one
    return {
        "per_s": len(counted) / (to_s - from_s),
        "p50_ms": took_ms[len(took_ms) // 2],
        "p99_ms": took_ms[len(took_ms) * 99 // 100],
        "cpu_us": 1e6 * own_s / len(counted),
        "database_us": 1e6 * database_s / len(counted),
    }


def _until(requests: Sequence[bytes], until_s: float) -> Iterator[bytes]:
    return itertools.takewhile(lambda _: time.monotonic() < until_s, itertools.cycle(requests))


async def _profile(server: Server, engine: str) -> None:
    sampler = Sampler(f"accept alone on {engine}, 64 connections", server.child.pid, seconds=4)
    await asyncio.sleep(0.5)
    figures = await once([server], "session text", 64, 4)
    stacks = await asyncio.to_thread(sampler.samples)
    print(table(sampler.title, stacks, figures["cpu_us"], top=20), end="\n\n")


def _figures(rows: Sequence[dict[str, Any]], engines: Sequence[str]) -> Iterator[Figure]:
    for row in rows:
        bare = row["bare"]
        what = f"{row['kind']}, {row['connections']} at once"
        for engine in engines:
            one = row[engine]
            is_judged = row["kind"] == "session text"
            least, aim = TARGETS.get((engine, row["connections"]), (None, None))
            yield Figure(
                "T1", engine, f"acknowledged / bare; {what}", one["ratio"], "x",
                least if is_judged else None, aim if is_judged else None, is_ratio=True,
                note=f"{one['per_s']:,.0f}/s of {bare['per_s']:,.0f}/s, p50 {one['p50_ms']:.1f} p99 {one['p99_ms']:.1f} ms",
            )  # fmt: skip
    for row in rows:
        if row["kind"] != "session text":
            continue
        for engine in engines:
            one = row[engine]
            yield Figure(
                "T1", engine, f"p99 / p50; {row['connections']} at once", one["p99_ms"] / one["p50_ms"], "x",
                P99_OF_P50, lower_is_better=True, is_ratio=True,
                note=f"bare {row['bare']['p99_ms'] / row['bare']['p50_ms']:.1f}",
            )  # fmt: skip
    for row in rows:
        if (row["kind"], row["connections"]) != ("session text", 64):
            continue
        for engine in engines:
            one = row[engine]
            yield Figure(
                "T2", engine, "processor time an acknowledgement, 64 at once",
                one["cpu_us"] + one["database_us"], "us", aim=CPU_AIM_US, lower_is_better=True,
                note=f"service {one['cpu_us']:.0f}, database {one['database_us']:.0f}; bare {row['bare']['cpu_us']:.0f}",
            )  # fmt: skip
            yield Figure(
                "T2", engine, "the same / bare", (one["cpu_us"] + one["database_us"]) / row["bare"]["cpu_us"], "x",
                lower_is_better=True, is_ratio=True,
            )  # fmt: skip
