"""T3: the whole pipeline. Submit, operator, phone; enqueued, sent, delivered and read each called back."""

import argparse
import asyncio
import itertools
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure
from benchmarks.load import Answered, as_fast_as_answered, at_rate, prepared, template_message
from benchmarks.parts import Sampler, as_json, table
from benchmarks.processes import Child, cpu_s, free_port
from benchmarks.receiver import KINDS
from benchmarks.stores import Store, Stores

PHONES = 10_000
CONNECTIONS = 16
SOURCES = 4
GATHER_MS = 50
WITHIN_S = 120
WARM_MESSAGES = 500
# fmt: off
TARGET, AIM = 600, 1000  # messages a second. Source: decision 0087, T3
# fmt: on


async def measure(
    stores: Stores, options: argparse.Namespace, *, rate: float | None = None
) -> tuple[list[Figure], dict[str, Any]]:
    """The street on one engine; at a set rate it tells latencies, else how much it carries."""
    store = stores.new()
    children = start(store)
    try:
        for child in children.values():
            child.wait_ready()
        await run(children, store, messages=WARM_MESSAGES)  # what loads once, loads now
        await asyncio.to_thread(children["receiver"].get, "/forget")
        samplers = _samplers(children, options, stores.engine) if options.profile else {}
        raw = await run(children, store, messages=options.messages, rate=rate)
        for name, sampler in samplers.items():
            stacks, us = await asyncio.to_thread(sampler.samples), raw["cpu_us_per_message"][name]
            print(table(sampler.title, stacks, us, top=30), end="\n\n")
            raw[f"parts of the {name}"] = as_json(stacks, us)
    finally:
        for child in reversed(children.values()):
            child.end()
    figures = _at_rate(raw, stores.engine, rate) if rate else _carried(raw, stores.engine)
    return list(figures), raw


def start(store: Store, *options: str, graph: int | None = None) -> dict[str, Child]:
    """Simulator and service need each other's addresses; the simulator's port is found first."""
    receiver = Child("benchmarks.receiver")
    graph = graph or free_port()
    service = Child(
        "benchmarks.service",
        *("--stages", *store.options, *options),
        *("--operator", f"http://127.0.0.1:{graph}"),
        *("--receiver", f"http://127.0.0.1:{receiver.port}/callbacks"),
    )
    simulator = Child(
        "benchmarks.other_party",
        *("--data", str(Path(store.folder) / "simulator.db"), "--gather-ms", str(GATHER_MS)),
        *("--webhook", f"http://127.0.0.1:{service.port}/operator/webhook/demo"),
        port=graph,
    )
    return {"receiver": receiver, "service": service, "simulator": simulator}


def _samplers(children: dict[str, Child], options: argparse.Namespace, engine: str) -> dict[str, Sampler]:
    seconds = options.messages / TARGET
    return {
        name: Sampler(f"The {name}, whole pipeline on {engine}", children[name].pid, seconds=seconds)
        for name in ("service", "simulator")
    }


async def run(children: dict[str, Child], store: Store, *, messages: int, rate: float | None = None) -> dict[str, Any]:
    """Send so many messages and wait for the last callback."""
    receiver, service = children["receiver"], children["service"]
    requests = prepared(template_message, phones=PHONES, sources=SOURCES)
    wanted = list(itertools.islice(itertools.cycle(requests), messages))
    used = _used(children, store)
    began_s = time.monotonic()
    if rate:
        answers = await at_rate(service.port, wanted, per_second=rate, connections=64)
    else:
        answers = await as_fast_as_answered(service.port, iter(wanted), connections=CONNECTIONS)
    acknowledged_s = time.monotonic() - began_s
    while (await asyncio.to_thread(receiver.get, "/reads"))["reads"] < messages:
        if time.monotonic() - began_s > WITHIN_S:
            break
        await asyncio.sleep(0.1)
    spent = {name: after - used[name] for name, after in _used(children, store).items()}
    judged = await asyncio.to_thread(receiver.get, "/judged")
    return _raw(answers, judged, spent, began_s, acknowledged_s)


def _used(children: dict[str, Child], store: Store) -> dict[str, float]:
    used = {name: child.cpu_s() for name, child in children.items()}
    return {**used, "load": cpu_s(os.getpid()), "database": store.server_cpu_s()}


def _raw(
    answers: Sequence[Answered], judged: dict[str, Any], spent: dict[str, float], began_s: float, acknowledged_s: float
) -> dict[str, Any]:
    seen: dict[str, dict[str, float]] = judged["seen"]
    submitted = {one.message_id: one for one in answers}
    lost = sum(len(KINDS) - len(seen.get(message_id, {})) for message_id in submitted)
    ended_s = max((max(times.values()) for times in seen.values() if times), default=began_s)
    count = len(answers)
    latencies: dict[str, dict[str, float]] = {}
    for kind in KINDS:
        took = sorted(
            1000 * (seen[one][kind] - answer.began_s) for one, answer in submitted.items() if kind in seen.get(one, {})
        )
        if took:
            latencies[kind] = {
                "p50_ms": round(statistics.median(took), 1),
                "p99_ms": round(took[len(took) * 99 // 100], 1),
            }
    return {
        "messages": count,
        "per_s": count / (ended_s - began_s),
        "acknowledged_per_s": count / acknowledged_s,
        "cpu_us_per_message": {name: round(1e6 * s / count) for name, s in spent.items()},
        "latencies": latencies,
        "lost": lost,
        "strangers": len(seen.keys() - submitted.keys()),
        "wrong": judged["wrong"],
    }


def _carried(raw: dict[str, Any], engine: str) -> Iterator[Figure]:
    cpu: dict[str, float] = raw["cpu_us_per_message"]
    yield Figure(
        "T3", engine, "messages a second, submitted to read, all called back", raw["per_s"], "/s", TARGET, AIM,
        note=f"{raw['acknowledged_per_s']:,.0f} acknowledged a second",
    )  # fmt: skip
    yield Figure("T3", engine, "callbacks lost", raw["lost"], "", 0, lower_is_better=True)
    yield Figure(
        "T3", engine, "callbacks out of order or told twice", sum(raw["wrong"].values()), "", 0,
        lower_is_better=True, note=str(raw["wrong"] or ""),
    )  # fmt: skip
    yield Figure(
        "T3", engine, "processor time a message, all processes", sum(cpu.values()), "us", lower_is_better=True,
        note=", ".join(f"{name} {us}" for name, us in cpu.items() if us),
    )  # fmt: skip
    yield Figure(
        "T3", engine, "service and database / receiver and load",
        (cpu["service"] + cpu["database"]) / (cpu["receiver"] + cpu["load"]), "x", lower_is_better=True, is_ratio=True,
    )  # fmt: skip


def _at_rate(raw: dict[str, Any], engine: str, rate: float) -> Iterator[Figure]:
    for kind, took in raw["latencies"].items():
        yield Figure(
            "T3", engine, f"at {rate:.0f} a second: submitted to {kind}, median", took["p50_ms"], "ms",
            lower_is_better=True, note=f"p99 {took['p99_ms']:.0f}",
        )  # fmt: skip
