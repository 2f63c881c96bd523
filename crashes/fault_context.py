"""The context of a fault: the cluster, its load, and the effects of the faults."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from crashes.cluster import ClusterUnderTest
from crashes.load import Load
from crashes.network_links import NetworkLink
from crashes.postgres import Postgres
from crashes.processes import NotInTime

PHONES: Final = [f"1555900{number:04}" for number in range(500)]
WRITERS: Final = PHONES[:60]
"""Phones whose window is open: every fourth message to them is a session text."""
SLOW_MS: Final = 40
"""Response time of the operator, so that some message is always in flight."""
MAX_IN_FLIGHT: Final = 64
OPERATOR_TIMEOUT_S: Final = 2
ACKNOWLEDGED_WITHIN_S: Final = 60


class MissingRequirement(Exception):
    """A row cannot be run on this machine; the text names the requirement."""


@dataclass(frozen=True, slots=True)
class FaultResult:
    """One fault after its end.

    Attributes:
        hit: number of things that it affected; 0 proves nothing.
        description: a description of those things.
        ended_s, ended_ms: when it ended, by the monotonic clock and by the machine's clock.
        in_flight: messages whose POST it may have cut off, if they are known.
        waves: how many times it may have made everything in flight uncertain.
    """

    hit: int
    description: str
    ended_s: float
    ended_ms: int
    in_flight: frozenset[str] | None = None
    waves: int = 0


def record_fault(hit: int, description: str, *, in_flight: frozenset[str] | None = None, waves: int = 0) -> FaultResult:
    """Return the result of a fault that ends now."""
    return FaultResult(hit, description, time.monotonic(), time.time_ns() // 1_000_000, in_flight, waves)


@dataclass
class FaultContext:
    """The objects that a fault can use.

    Attributes:
        folder: the folder of the row.
        cluster: the open cluster.
        load: the running load.
        rng: the random source of the moments.
        nth: index of the fault, from 0.
        servers: PostgreSQL servers; the first is the primary.
        links: links between the service and other processes, by the other's name.
        clock: the file that the service's clock follows.
        disk: the folder whose disk can be filled.
    """

    folder: Path
    cluster: ClusterUnderTest
    load: Load
    rng: random.Random
    nth: int = 0
    servers: list[Postgres] = field(default_factory=list[Postgres])
    links: dict[str, NetworkLink] = field(default_factory=dict[str, NetworkLink])
    clock: Path | None = None
    disk: Path | None = None

    async def wait_in_flight(self) -> frozenset[str]:
        """Wait until a message is in flight; return the ids in flight, or none after 3 s."""
        deadline_s = time.monotonic() + 3
        while time.monotonic() < deadline_s:
            in_flight = await asyncio.to_thread(self.cluster.store.in_flight)
            if in_flight:
                await asyncio.sleep(self.rng.uniform(0, 0.03))
                return frozenset(in_flight)
            await asyncio.sleep(0.002)
        return frozenset()

    async def wait_acknowledging(self, since: int, *, within_s: float = ACKNOWLEDGED_WITHIN_S) -> None:
        """Return once more than `since` submissions are acknowledged."""
        deadline_s = time.monotonic() + within_s
        while len(self.load.acknowledged) <= since:
            if time.monotonic() > deadline_s:
                raise NotInTime(f"nothing was acknowledged for {within_s} s\n{await self.cluster.report()}")
            await asyncio.sleep(0.01)
