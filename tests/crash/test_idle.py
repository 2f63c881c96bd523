"""A quiet service: no connection is used in the moment in which the other side closes it."""

import asyncio
import sys
from typing import Final

import pytest

from tests.crash.load import Load
from tests.crash.reckoning import reckon
from tests.crash.town import Town

EVERY_S: Final = 5
"""As long as a common server keeps an idle connection: where a pool keeps one longer, both meet here."""
FOR_S: Final = 60
PHONES: Final = [f"15557001{number:03}" for number in range(20)]
"""As many as are sent at once: so many connections then lie idle, and end within milliseconds of each other."""


@pytest.mark.timeout(FOR_S + 90)
async def test_messages_every_five_seconds_are_never_uncertain(town: Town) -> None:
    load = Load(town, PHONES, (), at_least=len(PHONES) * FOR_S // EVERY_S)

    for _ in range(FOR_S // EVERY_S):
        await asyncio.gather(*(load.one_more() for _ in PHONES))
        await asyncio.sleep(EVERY_S)
    await town.settled(within_s=20)
    reckoning = await reckon(town, load, [], written_in=0)
    state = await town.control("GET", "state")

    sys.stdout.write("\n" + reckoning.table())
    assert not reckoning.faults
    assert town.stored.failed_attempts() == []
    assert [account["last_failure"] for account in state["accounts"]] == [None]
