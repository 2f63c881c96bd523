"""Runs one row: the load, the faults in the middle of it, the wait until all queues are empty, and the count."""

from __future__ import annotations

import asyncio
import bisect
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from crashes.environment import RowEnvironment, open_environment
from crashes.fault_context import MAX_IN_FLIGHT, PHONES, SLOW_MS, WRITERS, FaultContext, FaultResult
from crashes.load import Load
from crashes.proofs import prove_client, prove_server, prove_sqlite
from crashes.rows import Engine, Row
from crashes.verification import Verification, read_callback_times_ms, verify_load

LOAD_AFTER_S: Final = 2
"""Minimum time of load after a fault, so that its effects are observed."""


@dataclass(frozen=True, slots=True)
class Options:
    """Parameters of a run.

    Attributes:
        rounds: number of faults.
        seconds: seconds of load around each fault.
        per_second: messages submitted a second, over 64 connections.
        seed: seed of the moments of the faults.
    """

    rounds: int
    seconds: float
    per_second: float
    seed: int


@dataclass(frozen=True, slots=True)
class Recovery:
    """Seconds from the end of a fault to the first event of each kind; None if there was none."""

    acknowledgement_s: float | None
    delivery_s: float | None
    callback_s: float | None


@dataclass
class RowResult:
    """The result of a row.

    Attributes:
        faults: a text for every violated guarantee, and for every fault that had no effect.
        missing: the reason why it was not run.
        idle_after_s: seconds from the end of the load until all queues were empty.
    """

    row: Row
    engine: Engine
    counts: dict[str, Any] = field(default_factory=dict[str, Any])
    fault_results: list[FaultResult] = field(default_factory=list[FaultResult])
    recoveries: list[Recovery] = field(default_factory=list[Recovery])
    max_uncertain: int = 0
    violations: list[str] = field(default_factory=list[str])
    note: str = ""
    missing: str = ""
    took_s: float = 0
    idle_after_s: float = 0


async def run_row(row: Row, engine: Engine, folder: Path, options: Options) -> RowResult:
    """Run one row on one engine.

    Raises:
        MissingRequirement: this machine lacks a requirement of the row.
        NotInTime: something did not recover, or the queues did not become empty.
    """
    result = RowResult(row, engine)
    async with open_environment(row, engine, folder) as environment:
        load, verification = await _run_with_faults(row, folder, options, environment, result)
        delivered = sorted(delivery["at_ms"] for delivery in await environment.cluster.deliveries())
        callback_times = sorted(read_callback_times_ms(environment.cluster.callbacks_file))
        result.recoveries = [
            Recovery(
                _seconds_to_first(load.acknowledged_s, fault.ended_s, 1),
                _seconds_to_first(delivered, fault.ended_ms, 1000),
                _seconds_to_first(callback_times, fault.ended_ms, 1000),
            )
            for fault in result.fault_results
        ]
    result.note = environment.note
    result.counts = dict(verification.counts)
    result.violations += verification.violations
    if environment.traces:
        await asyncio.to_thread(_verify_traces, environment.traces, result)
    return result


async def _run_with_faults(
    row: Row, folder: Path, options: Options, environment: RowEnvironment, result: RowResult
) -> tuple[Load, Verification]:
    cluster = environment.cluster
    slow = {"on": "call", "call": "messages.send", "what": {"slow_ms": SLOW_MS}}
    await cluster.add_fault({**slow, "when": {"always": True}})
    await asyncio.gather(*map(cluster.send_inbound_text, WRITERS))
    load = Load(cluster, PHONES, WRITERS, at_least=None, per_second=options.per_second)
    rng = random.Random(f"{options.seed} {row.name} {result.engine}")
    context = FaultContext(
        folder, cluster, load, rng, 0, environment.servers, environment.links, environment.clock, environment.disk
    )
    running = asyncio.create_task(load.run())
    try:
        for context.nth in range(options.rounds):
            began = len(load.acknowledged)
            before_s = options.seconds * rng.uniform(0.2, 0.4)
            await asyncio.sleep(before_s)
            await context.wait_acknowledging(began)
            fault_result = await row.cause(context)
            result.fault_results.append(fault_result)
            await context.wait_acknowledging(len(load.acknowledged))
            await asyncio.sleep(max(LOAD_AFTER_S, options.seconds - before_s))
    finally:
        load.stop()
        await running
    began_s = time.monotonic()
    await cluster.wait_idle()
    result.idle_after_s = time.monotonic() - began_s
    result.max_uncertain = MAX_IN_FLIGHT * cluster.processes * sum(fault.waves for fault in result.fault_results)
    in_flight_sets = [fault.in_flight for fault in result.fault_results if fault.in_flight is not None]
    result.violations += [
        f"fault {nth} had no effect: {fault.description}"
        for nth, fault in enumerate(result.fault_results, 1)
        if not fault.hit
    ]
    verification = await verify_load(
        cluster,
        load,
        in_flight_sets if len(in_flight_sets) == len(result.fault_results) else None,
        inbound_count=len(WRITERS),
        max_uncertain=result.max_uncertain,
        may_log=row.may_log,
    )
    return load, verification


def _seconds_to_first(times: Sequence[float], since: float, a_second: float) -> float | None:
    """Return the seconds from `since` to the first moment that is not before it."""
    after = bisect.bisect_left(times, since)
    return (times[after] - since) / a_second if after < len(times) else None


def _verify_traces(traces: Sequence[Path], result: RowResult) -> None:
    """Check the traces; a trace without acknowledgements or flushes is a violation."""
    with traces[0].open(errors="replace") as lines:
        service = prove_client(lines) if traces[1:] else prove_sqlite(lines, "waypost.db-wal")
    proofs = {"service": service}
    if traces[1:]:
        with traces[1].open(errors="replace") as lines:
            proofs["server"] = prove_server(lines, "/pg_wal/")
    for name, proof in proofs.items():
        result.counts[f"acknowledgements in the trace of the {name}"] = proof.acknowledged
        result.counts[f"flushes in the trace of the {name}"] = proof.flushes
        result.counts[f"too early in the trace of the {name}"] = len(proof.violations)
        result.violations += proof.violations
        if not proof.flushes or not proof.acknowledged:
            result.violations.append(f"the trace of the {name} has no acknowledgement or no flush")
    if service.acknowledged < result.counts["acknowledged"]:
        result.violations.append(
            f"the trace shows {service.acknowledged} acknowledgements of {result.counts['acknowledged']}"
        )
    result.note = "; ".join(
        f"{name}: {proof.acknowledged} responses after {proof.flushes} flushes" for name, proof in proofs.items()
    )
