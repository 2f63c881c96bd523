"""Several processes on one PostgreSQL under load, some of which are killed, paused and stopped."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from crashes.cluster import ClusterUnderTest
from crashes.load import Load
from crashes.partner import APP_NAME, SOURCE
from crashes.processes import Child
from crashes.verification import MAX_IN_FLIGHT, verify_load
from tests.processes.conftest import LEASE_S
from tests.support.polling import HANGS_AFTER_S, poll_until

MESSAGES: Final = 450
PHONES: Final = [f"1555900{number:04}" for number in range(150)]
WRITERS: Final = PHONES[:20]


def workers_of(service: Child) -> list[int]:
    """Return the pids of a service's workers, in the order in which they were started."""
    text = Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text(encoding="ascii")
    return [int(pid) for pid in text.split()]


async def wait_until(condition: Callable[[], bool], *, within_s: float) -> float:
    """Wait until the condition is true; return the seconds."""
    began_s = time.monotonic()
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110  there is no event to wait for
            await asyncio.sleep(0.02)
    return time.monotonic() - began_s


def has_ended(pid: int) -> bool:
    """True if a process has ended; a zombie counts as ended."""
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize("services", [2])
async def test_kill_pause_and_stop_under_load_lose_nothing_and_duplicate_nothing(cluster: ClusterUnderTest) -> None:
    staying, leaving = cluster.services
    await asyncio.gather(*map(cluster.send_inbound_text, WRITERS))
    load = Load(cluster, PHONES, WRITERS, at_least=MESSAGES)
    running = asyncio.create_task(load.run())

    await load.wait_acknowledged(MESSAGES // 6, running)
    killed, paused = workers_of(staying)
    os.kill(killed, signal.SIGKILL)
    await load.wait_acknowledged(MESSAGES // 3, running)
    os.kill(paused, signal.SIGSTOP)
    await asyncio.sleep(LEASE_S * 1.5)
    os.kill(paused, signal.SIGCONT)
    await load.wait_acknowledged(MESSAGES * 2 // 3, running)
    leaving.terminate()
    began_s = time.monotonic()
    code = await leaving.wait_ended(within_s=HANGS_AFTER_S)
    stopped_s = time.monotonic() - began_s
    await running
    await cluster.wait_idle()

    verification = await verify_load(cluster, load, None, inbound_count=len(WRITERS), max_uncertain=2 * MAX_IN_FLIGHT)
    sys.stdout.write(f"\n{verification.table()}stopped within {stopped_s:.1f} s\n")
    assert not verification.violations
    assert code == 0
    assert len(workers_of(staying)) == 2
    assert killed not in workers_of(staying)
    assert len(load.acknowledged) == MESSAGES


async def test_key_revoked_by_one_process_is_invalid_in_the_others_at_once(
    cluster: ClusterUnderTest, tmp_path: Path
) -> None:
    """A supervisor that is killed also leaves no worker behind, and every line of the log is JSON."""
    key = cluster.partner.api_key
    before = [await _post_empty_message(cluster, key) for _ in range(16)]

    await cluster.admin("POST", "api-keys/revoke", {"api_key": key})

    async def post_empty_messages() -> list[int]:
        return [await _post_empty_message(cluster, key) for _ in range(16)]

    await poll_until(post_empty_messages, lambda statuses: statuses == [401] * 16)

    workers = workers_of(cluster.service)
    cluster.service.kill()
    assert before == [400] * 16  # the key is valid, but the message has no text
    assert len(workers) == 2
    await wait_until(lambda: all(map(has_ended, workers)), within_s=HANGS_AFTER_S)
    records = [json.loads(line) for line in (tmp_path / "service.log").read_text(encoding="utf-8").splitlines()]
    assert any(record["event"].startswith("worker 2 is ready") for record in records)


async def _post_empty_message(cluster: ClusterUnderTest, key: str) -> int:
    """Return the response status of an empty message, over a new connection, so that any worker may handle it."""
    form = {"channel": "whatsapp", "source": SOURCE, "src.name": APP_NAME, "destination": PHONES[0]}
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{cluster.base_url}/wa/api/v1/msg", data=form, headers={"apikey": key}) as response,
    ):
        return response.status
