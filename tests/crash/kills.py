"""A load during which the service is killed."""

import asyncio
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from crashes.cluster import ClusterUnderTest, Restart
from crashes.load import Load

JITTER_S: Final = 0.05
"""So that a kill falls before, during or after the POSTs of a batch, at random."""
WRITE_INTERVAL_S: Final = 0.06


@dataclass(frozen=True, slots=True)
class KillRun:
    """The course of a load with kills.

    Attributes:
        backlog_s: for each restart, the seconds until the jobs from before it were complete, including
        later restarts if the next kill came sooner.
        inbound_count: number of inbound messages meanwhile.
    """

    restarts: Sequence[Restart]
    backlog_s: Sequence[float]
    inbound_count: int

    @property
    def in_flight(self) -> list[frozenset[str]]:
        """The messages in flight at each kill."""
        return [restart.in_flight for restart in self.restarts]


async def run_with_kills(
    cluster: ClusterUnderTest, load: Load, moments: Sequence[int], *, writers: Sequence[str] = ()
) -> KillRun:
    """Run the load until all queues are empty, with a kill at each count of acknowledgements.

    Args:
        cluster: the cluster of the load.
        load: a load that is not running yet.
        moments: counts of acknowledgements, ascending.
        writers: phones that write to our number meanwhile, in turn.
    """
    restarts: list[Restart] = []
    backlogs: list[asyncio.Task[float]] = []
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(load.run())
        writing = tasks.create_task(_write_during(running, cluster, writers))
        for moment in moments:
            await load.wait_acknowledged(moment, running)
            await cluster.wait_in_flight()
            await asyncio.sleep(random.uniform(0, JITTER_S))
            restarts.append(await cluster.kill_and_restart())
            backlog = cluster.wait_backlog_done(restarts[-1])
            backlogs.append(tasks.create_task(backlog))
    await cluster.wait_idle()
    return KillRun(restarts, [backlog.result() for backlog in backlogs], writing.result())


async def _write_during(running: "asyncio.Task[None]", cluster: ClusterUnderTest, writers: Sequence[str]) -> int:
    inbound_count = 0
    for phone in itertools.cycle(writers):
        if running.done():
            break
        await cluster.send_inbound_text(phone)
        inbound_count += 1
        await asyncio.sleep(WRITE_INTERVAL_S)
    return inbound_count
