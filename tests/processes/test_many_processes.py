"""Many processes on one PostgreSQL under load, of which some are killed, paused and stopped."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from crashes.load import Load
from crashes.partner import APP_NAME, SOURCE
from crashes.processes import Child
from crashes.reckoning import IN_FLIGHT, reckon
from crashes.town import Town
from tests.processes.conftest import LEASE_S
from tests.support.waiting import HANGS_AFTER_S, patiently

MESSAGES: Final = 450
PHONES: Final = [f"1555900{number:04}" for number in range(150)]
WRITERS: Final = PHONES[:20]


def workers_of(service: Child) -> list[int]:
    """The pids of a service's workers, in the order in which they were started."""
    text = Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text(encoding="ascii")
    return [int(pid) for pid in text.split()]


async def until(is_so: Callable[[], bool], *, within_s: float) -> float:
    """How long it took."""
    began_s = time.monotonic()
    async with asyncio.timeout(within_s):
        while not is_so():  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.02)
    return time.monotonic() - began_s


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has asked for its exit code has."""
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize("services", [2])
async def test_kill_pause_and_stop_under_load_lose_nothing_and_double_nothing(town: Town) -> None:
    staying, leaving = town.services
    await asyncio.gather(*map(town.writes, WRITERS))
    load = Load(town, PHONES, WRITERS, at_least=MESSAGES)
    running = asyncio.create_task(load.run())

    await load.reached(MESSAGES // 6, running)
    killed, paused = workers_of(staying)
    os.kill(killed, signal.SIGKILL)
    await load.reached(MESSAGES // 3, running)
    os.kill(paused, signal.SIGSTOP)
    await asyncio.sleep(LEASE_S * 1.5)
    os.kill(paused, signal.SIGCONT)
    await load.reached(MESSAGES * 2 // 3, running)
    leaving.ask_to_stop()
    began_s = time.monotonic()
    code = await leaving.ended(within_s=HANGS_AFTER_S)
    stopped_s = time.monotonic() - began_s
    await running
    await town.completed()

    reckoning = await reckon(town, load, None, written_in=len(WRITERS), uncertain_at_most=2 * IN_FLIGHT)
    sys.stdout.write(f"\n{reckoning.table()}stopped within {stopped_s:.1f} s\n")
    assert not reckoning.faults
    assert code == 0
    assert len(workers_of(staying)) == 2
    assert killed not in workers_of(staying)
    assert len(load.acknowledged) == MESSAGES


async def test_what_one_process_revokes_is_gone_in_the_others_at_once(town: Town) -> None:
    """And a supervisor that is killed leaves no worker behind."""
    key = town.partner.api_key
    before = [await _looks(town, key) for _ in range(16)]

    await town.admin("POST", "api-keys/revoke", {"api_key": key})

    async def after() -> list[int]:
        return [await _looks(town, key) for _ in range(16)]

    await patiently(after, lambda statuses: statuses == [401] * 16)

    workers = workers_of(town.service)
    town.service.kill()
    assert before == [400] * 16  # the key is known, and the message has no text
    assert len(workers) == 2
    await until(lambda: all(map(is_gone, workers)), within_s=HANGS_AFTER_S)


async def _looks(town: Town, key: str) -> int:
    """How an empty message is answered, over a connection of its own: any worker may have it."""
    form = {"channel": "whatsapp", "source": SOURCE, "src.name": APP_NAME, "destination": PHONES[0]}
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{town.base}/wa/api/v1/msg", data=form, headers={"apikey": key}) as answer,
    ):
        return answer.status
