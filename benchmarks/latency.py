"""T10 and T11: how long an acknowledgement and the callbacks after it take, under load and beside a busy neighbour.

Latencies count from the time at which a request was due (`open_loop.py`); those of callbacks from the acknowledgement.
"""

import argparse
import asyncio
import itertools
import math
import statistics
import time
from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.load import prepare_requests, template_message, template_message_of
from benchmarks.measurements import Measurement
from benchmarks.peers.open_loop import OpenLoop, Submission
from benchmarks.pipeline import PHONES, SOURCES, WARM_MESSAGES, WITHIN_S, run_load, start_children
from benchmarks.processes import Child
from benchmarks.service import NEIGHBOUR_APP, NEIGHBOUR_KEY, NEIGHBOUR_SOURCE, NEIGHBOUR_TEMPLATE_ID
from benchmarks.stores import Stores

LEVELS = (0.05, 0.5, 0.8, 1.0)
"""Rates of T10, as shares of the throughput at saturation; the first counts as idle."""
HIGHEST_AT = 0.8
HIGHEST_RATIO = 3  # of p99 at 80 % to idle. Source: decision 0087, T10
NEIGHBOUR_RATIO = 2  # of p99 beside the busy partner to alone. Source: decision 0087, T11
LEVEL_S = 20
IDLE_MESSAGES = 500
BUSY_PER_S = 100_000 / 60
NEIGHBOUR_PER_S = 20
NEIGHBOUR_PHONE = 15_570_000_000
MEASURED = {"acknowledged": "acknowledgement", "sent": "from there to sent callback"}


async def measure(stores: Stores, options: argparse.Namespace) -> tuple[list[Measurement], dict[str, Any]]:
    """Measure latencies at shares of saturation, then those of a neighbour, on one engine."""
    store = stores.new()
    children = start_children(store)
    try:
        for child in children.values():
            child.wait_ready()
        await run_load(children, store, messages=WARM_MESSAGES)
        saturated_per_s = (await run_load(children, store, messages=options.messages))["per_s"]
        levels = [(level, await _send(children, _busy(level * saturated_per_s))) for level in LEVELS]
        alone = await _send(children, _neighbour(LEVEL_S))
        beside = await _send(children, _busy(BUSY_PER_S), _neighbour(LEVEL_S))
    finally:
        for child in reversed(children.values()):
            child.end()
    results = [*_level_rows(levels, stores.engine), *_neighbour_rows(alone, beside, stores.engine)]
    raw = {"saturated_per_s": saturated_per_s, "levels": dict(levels), "alone": alone, "beside": beside}
    return results, raw


def _busy(per_second: float) -> tuple[list[bytes], float]:
    """Return the requests of a stretch of the first partner, and their rate."""
    prepared = prepare_requests(template_message, phones=PHONES, sources=SOURCES)
    count = max(round(per_second * LEVEL_S), IDLE_MESSAGES)
    return list(itertools.islice(itertools.cycle(prepared), count)), per_second


def _neighbour(seconds: float) -> tuple[list[bytes], float]:
    """Return the requests of a stretch of the second partner, and their rate."""
    sender = (NEIGHBOUR_KEY, NEIGHBOUR_SOURCE, NEIGHBOUR_APP, NEIGHBOUR_TEMPLATE_ID)
    phones = range(NEIGHBOUR_PHONE, NEIGHBOUR_PHONE + round(NEIGHBOUR_PER_S * seconds))
    return [template_message_of(phone, *sender) for phone in phones], NEIGHBOUR_PER_S


async def _send(children: dict[str, Child], *stretches: tuple[list[bytes], float]) -> dict[str, dict[str, float]]:
    """Send stretches at the same time, wait for all their callbacks, and return the latencies of the last one.

    Raises:
        RuntimeError: a request was not acknowledged, or callbacks are missing after two minutes.
    """
    receiver, service = children["receiver"], children["service"]
    await asyncio.to_thread(receiver.get, "/reset")
    loads = [
        OpenLoop(service.port, [Submission(nth, request) for nth, request in enumerate(requests)], per_second)
        for requests, per_second in stretches
    ]
    sent = await asyncio.gather(*(load.run() for load in loads))
    every = list(itertools.chain(*sent))
    if refused := [submission for submission in every if not submission.is_accepted]:
        raise RuntimeError(f"{len(refused)} requests were not acknowledged; the first: {refused[0]}")
    deadline_s = time.monotonic() + WITHIN_S
    while (reads := (await asyncio.to_thread(receiver.get, "/counts"))["reads"]) < len(every):
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"{reads} of {len(every)} messages are read after {WITHIN_S} s")
        await asyncio.sleep(0.1)
    seen: dict[str, dict[str, float]] = (await asyncio.to_thread(receiver.get, "/summary"))["seen"]
    last = sent[-1]
    return {
        "acknowledged": _summarize(submission.ended_s - submission.due_s for submission in last),
        "sent": _summarize(seen[submission.body[-38:-2].decode()]["sent"] - submission.ended_s for submission in last),
    }


def _summarize(seconds: Iterable[float]) -> dict[str, float]:
    took_ms = sorted(1000 * value for value in seconds)
    return {
        "p50_ms": round(statistics.median(took_ms), 2),
        "p99_ms": round(took_ms[math.ceil(len(took_ms) * 0.99) - 1], 2),
        "count": len(took_ms),
    }


def _level_rows(levels: list[tuple[float, dict[str, dict[str, float]]]], engine: str) -> Iterator[Measurement]:
    (_, idle), *loaded = levels
    for what, name in MEASURED.items():
        yield Measurement(
            "T10", engine, f"idle, {name}, p99", idle[what]["p99_ms"], "ms", lower_is_better=True,
            note=f"p50 {idle[what]['p50_ms']:.1f} ms",
        )  # fmt: skip
        for level, took in loaded:
            yield Measurement(
                "T10", engine, f"at {level:.0%}, {name}, p99 / idle", took[what]["p99_ms"] / idle[what]["p99_ms"], "x",
                HIGHEST_RATIO if level == HIGHEST_AT else None, lower_is_better=True, is_ratio=True,
                note=f"p50 {took[what]['p50_ms']:.1f}, p99 {took[what]['p99_ms']:.1f} ms",
            )  # fmt: skip


def _neighbour_rows(
    alone: dict[str, dict[str, float]], beside: dict[str, dict[str, float]], engine: str
) -> Iterator[Measurement]:
    for what, name in MEASURED.items():
        yield Measurement(
            "T11", engine, f"beside 100,000 a minute, {name}, p99 / alone",
            beside[what]["p99_ms"] / alone[what]["p99_ms"], "x", NEIGHBOUR_RATIO, lower_is_better=True, is_ratio=True,
            note=f"alone p50 {alone[what]['p50_ms']:.1f}, p99 {alone[what]['p99_ms']:.1f} ms; "
            f"beside p50 {beside[what]['p50_ms']:.1f}, p99 {beside[what]['p99_ms']:.1f} ms",
        )  # fmt: skip
