"""SIGTERM under load: the service ends in time and in order, and continues where it stopped."""

import asyncio
import sys
import time
from typing import Final

from crashes.cluster import ClusterUnderTest
from crashes.load import Load
from crashes.verification import verify_load
from tests.support.polling import HANGS_AFTER_S

MESSAGES: Final = 300
MOMENTS: Final = (90, 200)
PHONES: Final = [f"1555800{number:04}" for number in range(200)]


async def test_stop_under_load_leaves_nothing_uncertain_and_loses_nothing(cluster: ClusterUnderTest) -> None:
    load = Load(cluster, PHONES, (), at_least=MESSAGES)
    in_flight: list[frozenset[str]] = []
    statuses: list[int] = []
    took_s: list[float] = []

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(load.run())
        for moment in MOMENTS:
            await load.wait_acknowledged(moment, running)
            await cluster.wait_in_flight()
            began_s = time.monotonic()
            cluster.service.terminate()
            statuses.append(await cluster.service.wait_ended(within_s=HANGS_AFTER_S))
            took_s.append(time.monotonic() - began_s)
            in_flight.append((await cluster.restart()).in_flight)
    await cluster.wait_idle()
    verification = await verify_load(cluster, load, in_flight, inbound_count=0)

    sys.stdout.write(f"\n{verification.table()}seconds to stop {took_s}\n")
    assert statuses == [0, 0]
    assert in_flight == [frozenset(), frozenset()]
    assert not verification.violations
    assert len(load.acknowledged) == MESSAGES
