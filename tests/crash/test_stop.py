"""SIGTERM under load: the service ends in time and in order, and goes on where it stopped."""

import asyncio
import sys
import time
from typing import Final

from crashes.load import Load
from crashes.reckoning import reckon
from crashes.town import Town
from tests.support.waiting import HANGS_AFTER_S

MESSAGES: Final = 300
MOMENTS: Final = (90, 200)
PHONES: Final = [f"1555800{number:04}" for number in range(200)]
A_LITTLE_S: Final = 7
"""The doors may take 5 s to answer what has been asked; the rest is for closing the store."""


async def test_stop_under_load_leaves_nothing_uncertain_and_loses_nothing(town: Town) -> None:
    load = Load(town, PHONES, (), at_least=MESSAGES)
    in_flight: list[frozenset[str]] = []
    statuses: list[int] = []
    took_s: list[float] = []

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(load.run())
        for moment in MOMENTS:
            await load.reached(moment, running)
            await town.sends_something()
            began_s = time.monotonic()
            town.service.ask_to_stop()
            statuses.append(await town.service.ended(within_s=HANGS_AFTER_S))
            took_s.append(time.monotonic() - began_s)
            in_flight.append((await town.restart()).in_hand)
    await town.completed()
    reckoning = await reckon(town, load, in_flight, written_in=0)

    sys.stdout.write(f"\n{reckoning.table()}seconds to stop {took_s}\n")
    assert statuses == [0, 0]
    assert in_flight == [frozenset(), frozenset()]
    assert not reckoning.faults
    assert len(load.acknowledged) == MESSAGES
