"""`kill -9` of the simulator alone, and of both: nothing that either has acknowledged is forgotten."""

import asyncio
import itertools
import random
import sys
import time
from typing import Final

import aiohttp
import pytest

from crashes.load import Load
from crashes.partner import PHONE_NUMBER_ID, SECRETS
from crashes.reckoning import reckon
from crashes.town import Restart, Town
from tests.crash.kills import JITTER_S

PHONES: Final = [f"1555500{number:04}" for number in range(200)]
STRANGERS: Final = [f"1555501{number:04}" for number in range(200)]
"""Phones that another client of the simulator writes to, past the service."""
MESSAGES: Final = 150
"""In each round; the kill falls while they are being sent."""
ROUNDS: Final = ("alone", "alone", "both")


@pytest.fixture
def service_settings() -> dict[str, str]:
    """What the simulator never got is told of soon."""
    return {"WAYPOST_UNCERTAIN_FOR_S": "3"}


async def test_killing_the_simulator_and_then_both_forgets_nothing(town: Town) -> None:
    whole = Load(town, PHONES, (), at_least=0)
    doubted: list[frozenset[str]] = []
    in_flight: list[int] = []
    recovered_s: list[float] = []
    stopping = asyncio.Event()
    direct = asyncio.create_task(send_past_the_service(town, stopping))
    for killed in ROUNDS:
        load = Load(town, PHONES, (), at_least=MESSAGES)
        before = town.stored.ever_uncertain()
        running = asyncio.create_task(load.run())
        await town.sends_something()
        await asyncio.sleep(random.uniform(0, JITTER_S))
        in_flight.append(len(town.stored.in_flight()))
        town.simulator.kill()
        if killed == "both":
            town.service.kill()
            doubted.append(frozenset(town.stored.ever_uncertain() - before))
            doubted.append((await town.restart()).in_hand)
        began_s = time.monotonic()
        await town.simulator_answers_again()
        await running
        newest = town.stored.newest_position()
        await town.backlog_settled(Restart(frozenset(), newest, began_s, 0))
        recovered_s.append(time.monotonic() - began_s)
        if killed == "alone":
            doubted.append(frozenset(town.stored.ever_uncertain() - before))
        whole.acknowledged |= load.acknowledged
        whole.broken += load.broken
        whole.repeated_ids += load.repeated_ids
    stopping.set()
    await town.until(town.has_no_doubts, "every doubt has ended")
    await town.completed()
    acknowledged = await direct
    held = {one["wamid"] for one in await town.deliveries()}
    reckoning = await reckon(town, whole, doubted, written_in=0, beside=frozenset(STRANGERS))

    sys.stdout.write(
        f"\n{reckoning.table()}"
        f"being sent at each kill               {', '.join(map(str, in_flight))}\n"
        f"acknowledged by the simulator itself  {len(acknowledged)}\n"
        f"of these forgotten                    {len(acknowledged - held)}\n"
        f"seconds until the backlog settled     {', '.join(f'{one:.1f}' for one in recovered_s)}\n"
    )
    assert not reckoning.faults
    assert len(whole.acknowledged) == len(ROUNDS) * MESSAGES
    assert any(in_flight), "no kill fell while anything was being sent"
    assert acknowledged
    assert acknowledged <= held


async def send_past_the_service(town: Town, stopping: asyncio.Event) -> set[str]:
    """Send texts over Graph until told to stop; the ids of all that were answered with 200."""
    acknowledged: set[str] = set()
    headers = {"Authorization": f"Bearer {SECRETS['token']}"}
    for phone in itertools.cycle(STRANGERS):
        if stopping.is_set():
            break
        message = {"messaging_product": "whatsapp", "to": phone, "text": {"body": "Hello"}}
        url = f"{town.graph}/v25.0/{PHONE_NUMBER_ID}/messages"
        try:
            async with town.http.post(url, json=message, headers=headers) as answer:
                if answer.status == 200:
                    acknowledged.add((await answer.json())["messages"][0]["id"])
        except (aiohttp.ClientError, TimeoutError, OSError):
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.02)
    return acknowledged
