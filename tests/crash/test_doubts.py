"""Doubts that end before the operator tells: `failed` with code 4002, and the one edge out of it."""

import sys
from typing import Final

import pytest

from crashes.load import Load
from crashes.reckoning import reckon
from crashes.town import Town
from tests.crash.kills import ride

PHONES: Final = [f"1555600{number:04}" for number in range(200)]
MESSAGES: Final = 270
MOMENTS: Final = (50, 120, 190)


@pytest.fixture
def service_settings() -> dict[str, str]:
    """Doubts end sooner than the operator tries again after a few failures."""
    return {"WAYPOST_UNCERTAIN_FOR_S": "1"}


async def test_ended_doubt_is_told_as_failed_and_a_later_status_still_moves_it(town: Town) -> None:
    load = Load(town, PHONES, (), at_least=MESSAGES)

    ridden = await ride(town, load, MOMENTS)
    await town.until(town.has_no_doubts, "every doubt has ended")
    await town.completed()
    reckoning = await reckon(town, load, ridden.in_flight, written_in=0)

    sys.stdout.write("\n" + reckoning.table())
    assert not reckoning.faults
    assert reckoning.counts["uncertain at the end"] == 0
