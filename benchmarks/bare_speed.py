"""The speed of the bare server at the time of a measurement: what absolute targets are scaled by."""

import asyncio
from dataclasses import dataclass

from benchmarks.accept import LOAD_CORE, SERVER_CORE, PinnedToCore, Server, run_round
from benchmarks.processes import Child

CONNECTIONS = 64
REFERENCE_PER_S = 25_000
"""Requests a second of the bare server on the machine for which the absolute targets are stated."""


@dataclass(frozen=True, slots=True)
class BareSpeed:
    """The speed of the bare server.

    Attributes:
        per_s: requests a second at 64 connections, with one core for itself.
        cpu_us: processor time of one request.
    """

    per_s: float
    cpu_us: float

    @property
    def factor(self) -> float:
        """The speed of this machine, now, relative to the reference."""
        return self.per_s / REFERENCE_PER_S


async def measure_bare_speed(seconds: float) -> BareSpeed:
    """Run the bare server for one round."""
    with PinnedToCore(LOAD_CORE):
        child = Child("benchmarks.bare", "--core", str(SERVER_CORE))
        try:
            await asyncio.to_thread(child.wait_ready)
            values = await run_round([Server(child)], "session text", CONNECTIONS, seconds)
        finally:
            child.end()
    return BareSpeed(values["per_s"], values["cpu_us"])


def average_speed(*speeds: BareSpeed) -> BareSpeed:
    """Return the mean: of rounds before and after a measurement, because the machine's speed changes meanwhile."""
    return BareSpeed(
        sum(speed.per_s for speed in speeds) / len(speeds), sum(speed.cpu_us for speed in speeds) / len(speeds)
    )
