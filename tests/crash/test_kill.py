"""`kill -9` at three moments under load: nothing is lost or duplicated, and all callbacks are in order."""

import asyncio
import os
import random
import sys
from collections.abc import Iterable
from typing import Final

from crashes.cluster import ClusterUnderTest
from crashes.load import Load
from crashes.verification import verify_load
from tests.crash.kills import run_with_kills

MESSAGES: Final = int(os.environ.get("CRASH_MESSAGES", "400"))
PHONES: Final = [f"1555900{number:04}" for number in range(80)]
WRITERS: Final = PHONES[:24]
SHARES: Final = (0.17, 0.43, 0.73)
"""Shares of the acknowledgements at which the service is killed, plus or minus `SPREAD`."""
SPREAD: Final = 0.06


async def test_three_kills_under_load_lose_nothing_and_duplicate_nothing(cluster: ClusterUnderTest) -> None:
    """The operator's limits are active: six messages a phone are far below the pair limit."""
    await asyncio.gather(*map(cluster.send_inbound_text, WRITERS))
    load = Load(cluster, PHONES, WRITERS, at_least=MESSAGES)
    moments = [round(MESSAGES * random.uniform(share - SPREAD, share + SPREAD)) for share in SHARES]

    kill_run = await run_with_kills(cluster, load, moments, writers=PHONES[-40:])
    inbound_count = len(WRITERS) + kill_run.inbound_count
    verification = await verify_load(cluster, load, kill_run.in_flight, inbound_count=inbound_count)

    sys.stdout.write(
        f"\n{verification.table()}"
        f"killed after acknowledgements       {moments}\n"
        f"seconds until ready after a restart {_seconds(restart.ready_after_s for restart in kill_run.restarts)}\n"
        f"seconds until its backlog was done  {_seconds(kill_run.backlog_s)}\n"
    )
    assert not verification.violations
    assert len(load.acknowledged) == MESSAGES


def _seconds(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.1f}" for value in values)
