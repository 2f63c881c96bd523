"""One row on its stage: the town, its load, and what the faults found and left."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from crashes.load import Load
from crashes.postgres import Postgres
from crashes.processes import NotInTime
from crashes.town import Town
from crashes.wires import Wire

PHONES: Final = [f"1555900{number:04}" for number in range(500)]
WRITERS: Final = PHONES[:60]
"""Their windows are open: every fourth message of theirs is a session text."""
SLOW_MS: Final = 40
"""How long the operator takes to answer, as one far away does: so something is always being sent."""
IN_FLIGHT: Final = 64
OPERATOR_TIMEOUT_S: Final = 2
DECIDES_WITHIN_S: Final = 60


class Missing(Exception):
    """A row cannot be run on this machine; the text says what it needs."""


@dataclass(frozen=True, slots=True)
class Struck:
    """One fault, after its end.

    Attributes:
        hit: how many things it was seen to hit; 0 proves nothing.
        what: those things, in words.
        ended_s, ended_ms: when it had ended, by the steady clock and by the machine's.
        in_hand: messages whose POST it may have cut off, where they are known one by one.
        waves: how many times what may be in flight it may have made uncertain.
    """

    hit: int
    what: str
    ended_s: float
    ended_ms: int
    in_hand: frozenset[str] | None = None
    waves: int = 0


def over(hit: int, what: str, *, in_flight: frozenset[str] | None = None, waves: int = 0) -> Struck:
    """A fault that ends now."""
    return Struck(hit, what, time.monotonic(), time.time_ns() // 1_000_000, in_flight, waves)


@dataclass
class Scene:
    """What a fault can reach.

    Attributes:
        folder: of the row.
        town: open.
        load: running.
        chance: what moments are drawn from.
        nth: which fault this is, from 0.
        servers: of PostgreSQL; the first is the primary.
        wires: between the service and others, by the other's name.
        clock: the file that the service's clock follows.
        full: the folder whose disk can be filled.
    """

    folder: Path
    town: Town
    load: Load
    chance: random.Random
    nth: int = 0
    servers: list[Postgres] = field(default_factory=list[Postgres])
    wires: dict[str, Wire] = field(default_factory=dict[str, Wire])
    clock: Path | None = None
    full: Path | None = None

    async def something_in_hand(self) -> frozenset[str]:
        """What is being sent, as soon as something is; for the moment before a kill."""
        until_s = time.monotonic() + 3
        while time.monotonic() < until_s:
            in_flight = await asyncio.to_thread(self.town.stored.in_flight)
            if in_flight:
                await asyncio.sleep(self.chance.uniform(0, 0.03))
                return frozenset(in_flight)
            await asyncio.sleep(0.002)
        return frozenset()

    async def answers_again(self, since: int, *, within_s: float = DECIDES_WITHIN_S) -> None:
        """Return once more submissions are acknowledged than `since`."""
        until_s = time.monotonic() + within_s
        while len(self.load.acknowledged) <= since:
            if time.monotonic() > until_s:
                raise NotInTime(f"nothing was acknowledged for {within_s} s\n{await self.town.report()}")
            await asyncio.sleep(0.01)
