"""`kill -9` at three moments under load: nothing lost, nothing doubled, all called back in order."""

import asyncio
import os
import random
import sys
from collections.abc import Iterable
from typing import Final

from crashes.load import Load
from crashes.reckoning import reckon
from crashes.town import Town
from tests.crash.kills import ride

MESSAGES: Final = int(os.environ.get("CRASH_MESSAGES", "400"))
PHONES: Final = [f"1555900{number:04}" for number in range(80)]
WRITERS: Final = PHONES[:24]
SHARES: Final = (0.17, 0.43, 0.73)
"""At which share of the acknowledgements the service is killed, give or take `SPREAD`."""
SPREAD: Final = 0.06


async def test_three_kills_under_load_lose_nothing_and_double_nothing(town: Town) -> None:
    """The operator's limits stay on: six messages a phone are far from the pair limit."""
    await asyncio.gather(*map(town.writes, WRITERS))
    load = Load(town, PHONES, WRITERS, at_least=MESSAGES)
    moments = [round(MESSAGES * random.uniform(share - SPREAD, share + SPREAD)) for share in SHARES]

    ridden = await ride(town, load, moments, writers=PHONES[-40:])
    written = len(WRITERS) + ridden.written
    reckoning = await reckon(town, load, ridden.in_flight, written_in=written)

    sys.stdout.write(
        f"\n{reckoning.table()}"
        f"killed after acknowledgements       {moments}\n"
        f"seconds until ready after a restart {_seconds(one.answered_after_s for one in ridden.restarts)}\n"
        f"seconds until its backlog settled   {_seconds(ridden.settled_s)}\n"
    )
    assert not reckoning.faults
    assert len(load.acknowledged) == MESSAGES


def _seconds(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.1f}" for value in values)
