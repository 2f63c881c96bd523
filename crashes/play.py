"""Playing one row: its load, its faults in the middle of it, the wait until all is settled, and the count."""

from __future__ import annotations

import asyncio
import bisect
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from crashes.load import Load
from crashes.proofs import prove_client, prove_server, prove_sqlite
from crashes.reckoning import Reckoning, received_ms, reckon
from crashes.rows import Engine, Row
from crashes.scene import IN_FLIGHT, PHONES, SLOW_MS, WRITERS, Scene, Struck
from crashes.stage import Stage, staged

AFTER_S: Final = 2
"""How long the load goes on after a fault at least, so that what follows it is seen."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a row is played.

    Attributes:
        rounds: how many faults.
        seconds: of load around each.
        per_second: how many messages are submitted, by 64 connections.
        seed: of the moments.
    """

    rounds: int
    seconds: float
    per_second: float
    seed: int


@dataclass(frozen=True, slots=True)
class Recovery:
    """Seconds from the end of a fault to the first of each; None where none came."""

    acknowledgement_s: float | None
    delivery_s: float | None
    callback_s: float | None


@dataclass
class Played:
    """What came of a row.

    Attributes:
        faults: every broken promise in words, and every fault that hit nothing.
        missing: why it was not run.
        settled_s: from the end of the load until nothing was on its way any more.
    """

    row: Row
    engine: Engine
    counts: dict[str, Any] = field(default_factory=dict[str, Any])
    struck: list[Struck] = field(default_factory=list[Struck])
    recoveries: list[Recovery] = field(default_factory=list[Recovery])
    bound: int = 0
    faults: list[str] = field(default_factory=list[str])
    note: str = ""
    missing: str = ""
    took_s: float = 0
    settled_s: float = 0


async def play(row: Row, engine: Engine, folder: Path, options: Options) -> Played:
    """Play one row on one engine.

    Raises:
        Missing: this machine has not what it needs.
        NotInTime: something did not recover, or did not settle.
    """
    played = Played(row, engine)
    async with staged(row, engine, folder) as stage:
        load, reckoning = await _load_and_strike(row, folder, options, stage, played)
        delivered = sorted(one["at_ms"] for one in await stage.town.deliveries())
        called_back = sorted(received_ms(stage.town.received))
        played.recoveries = [
            Recovery(
                _first(load.answered_s, one.ended_s, 1),
                _first(delivered, one.ended_ms, 1000),
                _first(called_back, one.ended_ms, 1000),
            )
            for one in played.struck
        ]
    played.note = stage.note
    played.counts = dict(reckoning.counts)
    played.faults += reckoning.faults
    if stage.traces:
        await asyncio.to_thread(_prove, stage.traces, played)
    return played


async def _load_and_strike(
    row: Row, folder: Path, options: Options, stage: Stage, played: Played
) -> tuple[Load, Reckoning]:
    town = stage.town
    slow = {"on": "call", "call": "messages.send", "what": {"slow_ms": SLOW_MS}}
    await town.arm({**slow, "when": {"always": True}})
    await asyncio.gather(*map(town.writes, WRITERS))
    load = Load(town, PHONES, WRITERS, at_least=None, per_second=options.per_second)
    chance = random.Random(f"{options.seed} {row.name} {played.engine}")
    scene = Scene(folder, town, load, chance, 0, stage.servers, stage.wires, stage.clock, stage.full)
    running = asyncio.create_task(load.run())
    try:
        for scene.nth in range(options.rounds):
            began = len(load.acknowledged)
            before_s = options.seconds * chance.uniform(0.2, 0.4)
            await asyncio.sleep(before_s)
            await scene.answers_again(began)
            struck = await row.strike(scene)
            played.struck.append(struck)
            await scene.answers_again(len(load.acknowledged))
            await asyncio.sleep(max(AFTER_S, options.seconds - before_s))
    finally:
        load.stop()
        await running
    began_s = time.monotonic()
    await town.completed()
    played.settled_s = time.monotonic() - began_s
    played.bound = IN_FLIGHT * town.processes * sum(one.waves for one in played.struck)
    known = [one.in_hand for one in played.struck if one.in_hand is not None]
    played.faults += [f"fault {nth} hit nothing: {one.what}" for nth, one in enumerate(played.struck, 1) if not one.hit]
    reckoning = await reckon(
        town,
        load,
        known if len(known) == len(played.struck) else None,
        written_in=len(WRITERS),
        uncertain_at_most=played.bound,
        may_log=row.may_log,
    )
    return load, reckoning


def _first(moments: Sequence[float], since: float, a_second: float) -> float | None:
    """Seconds from a moment to the first that is not before it."""
    after = bisect.bisect_left(moments, since)
    return (moments[after] - since) / a_second if after < len(moments) else None


def _prove(traces: Sequence[Path], played: Played) -> None:
    """A trace in which nothing was found proves nothing."""
    with traces[0].open(errors="replace") as lines:
        service = prove_client(lines) if traces[1:] else prove_sqlite(lines, "waypost.db-wal")
    proofs = {"service": service}
    if traces[1:]:
        with traces[1].open(errors="replace") as lines:
            proofs["server"] = prove_server(lines, "/pg_wal/")
    for name, proof in proofs.items():
        played.counts[f"acknowledgements in the trace of the {name}"] = proof.acknowledged
        played.counts[f"flushes in the trace of the {name}"] = proof.flushes
        played.counts[f"too early in the trace of the {name}"] = len(proof.violations)
        played.faults += proof.violations
        if not proof.flushes or not proof.acknowledged:
            played.faults.append(f"the trace of the {name} shows nothing")
    if service.acknowledged < played.counts["acknowledged"]:
        played.faults.append(
            f"the trace shows {service.acknowledged} acknowledgements of {played.counts['acknowledged']}"
        )
    played.note = "; ".join(
        f"{name}: {proof.acknowledged} answers after {proof.flushes} flushes" for name, proof in proofs.items()
    )
