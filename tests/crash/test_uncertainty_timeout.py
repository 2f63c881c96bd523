"""Uncertain messages that time out before the operator's status: `failed` with code 4002, and the edge out of it."""

import sys
from typing import Final

import pytest

from crashes.cluster import ClusterUnderTest
from crashes.load import Load
from crashes.verification import verify_load
from tests.crash.kills import run_with_kills

PHONES: Final = [f"1555600{number:04}" for number in range(200)]
MESSAGES: Final = 270
MOMENTS: Final = (50, 120, 190)


@pytest.fixture
def service_settings() -> dict[str, str]:
    """Return a timeout that is shorter than the operator's retries after a few failures."""
    return {"WAYPOST_UNCERTAIN_FOR_S": "1"}


async def test_timed_out_uncertain_message_fails_and_a_later_status_still_changes_it(cluster: ClusterUnderTest) -> None:
    load = Load(cluster, PHONES, (), at_least=MESSAGES)

    kill_run = await run_with_kills(cluster, load, MOMENTS)
    await cluster.wait_until(cluster.has_no_unconfirmed, "no message is unconfirmed")
    await cluster.wait_idle()
    verification = await verify_load(cluster, load, kill_run.in_flight, inbound_count=0)

    sys.stdout.write("\n" + verification.table())
    assert not verification.violations
    assert verification.counts["uncertain at the end"] == 0
