"""A load with kills on its way."""

import asyncio
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from crashes.load import Load
from crashes.town import Restart, Town

JITTER_S: Final = 0.05
"""So that a kill falls before, while and after the POSTs of a batch leave, and not always alike."""
WRITES_EVERY_S: Final = 0.06


@dataclass(frozen=True, slots=True)
class Ride:
    """What happened on the way.

    Attributes:
        settled_s: of each restart after how many seconds all was settled that the one before it had
            left; where the next kill came sooner, its restart is included.
        written: how many messages phones wrote meanwhile.
    """

    restarts: Sequence[Restart]
    settled_s: Sequence[float]
    written: int

    @property
    def in_flight(self) -> list[frozenset[str]]:
        """Of each kill the messages that were being sent."""
        return [restart.in_hand for restart in self.restarts]


async def ride(town: Town, load: Load, moments: Sequence[int], *, writers: Sequence[str] = ()) -> Ride:
    """Run the load until all has settled, with a kill at each count of acknowledgements.

    Args:
        town: of the load.
        load: not yet run.
        moments: counts of acknowledgements, rising.
        writers: phones that write to our number all the while, in turn.
    """
    restarts: list[Restart] = []
    backlogs: list[asyncio.Task[float]] = []
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(load.run())
        writing = tasks.create_task(_write_while(running, town, writers))
        for moment in moments:
            await load.reached(moment, running)
            await town.sends_something()
            await asyncio.sleep(random.uniform(0, JITTER_S))
            restarts.append(await town.kill_and_restart())
            settling = town.backlog_settled(restarts[-1])
            backlogs.append(tasks.create_task(settling))
    await town.completed()
    return Ride(restarts, [backlog.result() for backlog in backlogs], writing.result())


async def _write_while(running: "asyncio.Task[None]", town: Town, writers: Sequence[str]) -> int:
    written = 0
    for phone in itertools.cycle(writers):
        if running.done():
            break
        await town.writes(phone)
        written += 1
        await asyncio.sleep(WRITES_EVERY_S)
    return written
