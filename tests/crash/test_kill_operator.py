"""`kill -9` of the simulator alone, and with the service: neither loses what it has acknowledged."""

import asyncio
import itertools
import random
import sys
import time
from typing import Final

import aiohttp
import pytest

from crashes.cluster import ClusterUnderTest, Restart
from crashes.load import Load
from crashes.partner import PHONE_NUMBER_ID, SECRETS
from crashes.verification import verify_load
from tests.crash.kills import JITTER_S

PHONES: Final = [f"1555500{number:04}" for number in range(200)]
DIRECT_PHONES: Final = [f"1555501{number:04}" for number in range(200)]
"""Phones to which another client of the simulator sends directly, without the service."""
MESSAGES: Final = 150
"""In each round; the kill falls while messages are in flight."""
ROUNDS: Final = ("alone", "alone", "both")


@pytest.fixture
def service_settings() -> dict[str, str]:
    """Return a short timeout for messages that the simulator never received."""
    return {"WAYPOST_UNCERTAIN_FOR_S": "3"}


async def test_killing_the_simulator_and_then_both_loses_no_acknowledged_message(cluster: ClusterUnderTest) -> None:
    total = Load(cluster, PHONES, (), at_least=0)
    uncertain: list[frozenset[str]] = []
    in_flight: list[int] = []
    recovered_s: list[float] = []
    stopping = asyncio.Event()
    direct = asyncio.create_task(send_directly(cluster, stopping))
    for target in ROUNDS:
        load = Load(cluster, PHONES, (), at_least=MESSAGES)
        before = cluster.store.ever_uncertain()
        running = asyncio.create_task(load.run())
        await cluster.wait_in_flight()
        await asyncio.sleep(random.uniform(0, JITTER_S))
        in_flight.append(len(cluster.store.in_flight()))
        cluster.simulator.kill()
        if target == "both":
            cluster.service.kill()
            uncertain.append(frozenset(cluster.store.ever_uncertain() - before))
            uncertain.append((await cluster.restart()).in_flight)
        began_s = time.monotonic()
        await cluster.restart_simulator()
        await running
        last_position = cluster.store.last_position()
        await cluster.wait_backlog_done(Restart(frozenset(), last_position, began_s, 0))
        recovered_s.append(time.monotonic() - began_s)
        if target == "alone":
            uncertain.append(frozenset(cluster.store.ever_uncertain() - before))
        total.acknowledged |= load.acknowledged
        total.broken += load.broken
        total.repeated_ids += load.repeated_ids
    stopping.set()
    await cluster.wait_until(cluster.has_no_unconfirmed, "no message is unconfirmed")
    await cluster.wait_idle()
    acknowledged = await direct
    delivered = {delivery["wamid"] for delivery in await cluster.deliveries()}
    verification = await verify_load(
        cluster, total, uncertain, inbound_count=0, excluded_phones=frozenset(DIRECT_PHONES)
    )

    sys.stdout.write(
        f"\n{verification.table()}"
        f"in flight at each kill                {', '.join(map(str, in_flight))}\n"
        f"acknowledged by the simulator itself  {len(acknowledged)}\n"
        f"of these lost                         {len(acknowledged - delivered)}\n"
        f"seconds until the backlog was done    {', '.join(f'{seconds:.1f}' for seconds in recovered_s)}\n"
    )
    assert not verification.violations
    assert len(total.acknowledged) == len(ROUNDS) * MESSAGES
    assert any(in_flight), "no message was in flight at any kill"
    assert acknowledged
    assert acknowledged <= delivered


async def send_directly(cluster: ClusterUnderTest, stopping: asyncio.Event) -> set[str]:
    """Send texts over the Graph API until stopped; return the ids of those with status 200."""
    acknowledged: set[str] = set()
    headers = {"Authorization": f"Bearer {SECRETS['token']}"}
    for phone in itertools.cycle(DIRECT_PHONES):
        if stopping.is_set():
            break
        message = {"messaging_product": "whatsapp", "to": phone, "text": {"body": "Hello"}}
        url = f"{cluster.graph_url}/v25.0/{PHONE_NUMBER_ID}/messages"
        try:
            async with cluster.http.post(url, json=message, headers=headers) as response:
                if response.status == 200:
                    acknowledged.add((await response.json())["messages"][0]["id"])
        except (aiohttp.ClientError, TimeoutError, OSError):
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.02)
    return acknowledged
