"""T3: the whole pipeline: submit, operator, phone; callbacks for enqueued, sent, delivered and read."""

import argparse
import asyncio
import itertools
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.bare_speed import BareSpeed, average_speed, measure_bare_speed
from benchmarks.load import Exchange, prepare_requests, send_closed_loop, template_message
from benchmarks.measurements import Measurement
from benchmarks.processes import Child, cpu_s, free_port
from benchmarks.profiling import Sampler, format_table, parts_as_json
from benchmarks.receiver import EVENTS
from benchmarks.stores import Store, Stores

PHONES = 10_000
CONNECTIONS = 16
SOURCES = 4
GATHER_MS = 50
WITHIN_S = 120
WARM_MESSAGES = 500
# fmt: off
TARGETS = {  # by engine. Source: decision 0087, T3
    #              messages a second   processor time of service and database / the bare server's
    #              at the reference    required  aim
    "sqlite":     (1_000,              12,       10),
    "postgresql": (800,                17,       14),
}
# fmt: on


async def measure_throughput(stores: Stores, options: argparse.Namespace) -> tuple[list[Measurement], dict[str, Any]]:
    """Measure throughput and processor time on one engine, between two rounds of the bare server."""
    bare_before = await measure_bare_speed(options.seconds)
    raw = await _run(stores, options)
    bare = average_speed(bare_before, await measure_bare_speed(options.seconds))
    return list(_throughput(raw, stores.engine, bare)), raw | {"bare": asdict(bare)}


async def _run(stores: Stores, options: argparse.Namespace) -> dict[str, Any]:
    store = stores.new()
    children = start_children(store)
    try:
        for child in children.values():
            child.wait_ready()
        await run_load(children, store, messages=WARM_MESSAGES)  # load modules and caches before the measurement
        samplers = _samplers(children, options, stores.engine) if options.profile else {}
        raw = await run_load(children, store, messages=options.messages)
        for name, sampler in samplers.items():
            stacks, us = await asyncio.to_thread(sampler.samples), raw["cpu_us_per_message"][name]
            print(format_table(sampler.title, stacks, us, top=30), end="\n\n")
            raw[f"parts of the {name}"] = parts_as_json(stacks, us)
    finally:
        for child in reversed(children.values()):
            child.end()
    return raw


def start_children(
    store: Store, *options: str, graph: int | None = None, simulator: Sequence[str] = ()
) -> dict[str, Child]:
    """Start receiver, service and simulator; the simulator's port is chosen first, because the service needs it."""
    receiver = Child("benchmarks.receiver")
    graph = graph or free_port()
    service = start_service(store, *options, receiver=receiver, graph=graph)
    operator = Child(
        "benchmarks.simulator",
        *("--data", str(Path(store.folder) / "simulator.db"), "--gather-ms", str(GATHER_MS)),
        *("--webhook", f"http://127.0.0.1:{service.port}/operator/webhook/demo"),
        *simulator,
        port=graph,
    )
    return {"receiver": receiver, "service": service, "simulator": operator}


def start_service(store: Store, *options: str, receiver: Child, graph: int, port: int | None = None) -> Child:
    """Start the service with every stage, between a receiver and the simulator's port."""
    return Child(
        "benchmarks.service",
        *("--stages", *store.options, *options),
        *("--operator", f"http://127.0.0.1:{graph}"),
        *("--receiver", f"http://127.0.0.1:{receiver.port}/callbacks"),
        port=port,
    )


def _samplers(children: dict[str, Child], options: argparse.Namespace, engine: str) -> dict[str, Sampler]:
    seconds = options.messages / TARGETS[engine][0]
    return {
        name: Sampler(f"The {name}, whole pipeline on {engine}", children[name].pid, seconds=seconds)
        for name in ("service", "simulator")
    }


async def run_load(children: dict[str, Child], store: Store, *, messages: int) -> dict[str, Any]:
    """Send messages and wait for the last callback."""
    receiver, service = children["receiver"], children["service"]
    await asyncio.to_thread(receiver.get, "/reset")
    requests = prepare_requests(template_message, phones=PHONES, sources=SOURCES)
    submissions = itertools.islice(itertools.cycle(requests), messages)
    cpu_before_s = _read_cpu_s(children, store)
    began_s = time.monotonic()
    exchanges = await send_closed_loop(service.port, submissions, connections=CONNECTIONS)
    acknowledged_s = time.monotonic() - began_s
    while (await asyncio.to_thread(receiver.get, "/counts"))["reads"] < messages:
        if time.monotonic() - began_s > WITHIN_S:
            break
        await asyncio.sleep(0.1)
    used_cpu_s = {name: after - cpu_before_s[name] for name, after in _read_cpu_s(children, store).items()}
    summary = await asyncio.to_thread(receiver.get, "/summary")
    return _raw(exchanges, summary, used_cpu_s, began_s, acknowledged_s)


def _read_cpu_s(children: dict[str, Child], store: Store) -> dict[str, float]:
    child_cpu_s = {name: child.cpu_s() for name, child in children.items()}
    return {**child_cpu_s, "load": cpu_s(os.getpid()), "database": store.server_cpu_s()}


def _raw(
    exchanges: Sequence[Exchange],
    summary: dict[str, Any],
    used_cpu_s: dict[str, float],
    began_s: float,
    acknowledged_s: float,
) -> dict[str, Any]:
    seen: dict[str, dict[str, float]] = summary["seen"]
    submitted = {exchange.message_id: exchange for exchange in exchanges}
    lost = sum(len(EVENTS) - len(seen.get(message_id, {})) for message_id in submitted)
    ended_s = max((max(times.values()) for times in seen.values() if times), default=began_s)
    count = len(exchanges)
    return {
        "messages": count,
        "per_s": count / (ended_s - began_s),
        "acknowledged_per_s": count / acknowledged_s,
        "cpu_us_per_message": {name: round(1e6 * s / count) for name, s in used_cpu_s.items()},
        "lost": lost,
        "strangers": len(seen.keys() - submitted.keys()),
        "wrong": summary["wrong"],
    }


def _throughput(raw: dict[str, Any], engine: str, bare: BareSpeed) -> Iterator[Measurement]:
    cpu: dict[str, float] = raw["cpu_us_per_message"]
    per_s, times_bare, times_bare_aim = TARGETS[engine]
    yield Measurement(
        "T3", engine, "messages a second, submitted to read, all called back", raw["per_s"], "/s", per_s * bare.factor,
        note=f"{raw['acknowledged_per_s']:,.0f} acknowledged a second; bare {bare.per_s:,.0f}/s",
    )  # fmt: skip
    yield Measurement(
        "T3", engine, "processor time a message / bare, a request", (cpu["service"] + cpu["database"]) / bare.cpu_us,
        "x", times_bare, times_bare_aim, lower_is_better=True, is_ratio=True,
        note=f"service {cpu['service']}, database {cpu['database']}; bare {bare.cpu_us:.1f} us",
    )  # fmt: skip
    yield Measurement("T3", engine, "callbacks lost", raw["lost"], "", 0, lower_is_better=True)
    yield Measurement(
        "T3", engine, "callbacks out of order or duplicated", sum(raw["wrong"].values()), "", 0,
        lower_is_better=True, note=str(raw["wrong"] or ""),
    )  # fmt: skip
    yield Measurement(
        "T3", engine, "processor time a message, all processes", sum(cpu.values()), "us", lower_is_better=True,
        note=", ".join(f"{name} {us}" for name, us in cpu.items() if us),
    )  # fmt: skip
    yield Measurement(
        "T3", engine, "service and database / receiver and load",
        (cpu["service"] + cpu["database"]) / (cpu["receiver"] + cpu["load"]), "x", lower_is_better=True, is_ratio=True,
    )  # fmt: skip
