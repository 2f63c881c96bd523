"""A log that cannot be written changes no answer and ends no loop, also while the store has no room."""

import asyncio
import contextlib
import os
import resource
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.waiting import patiently
from waypost.client.dev_variables import read_variables

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="limits of another process: Linux only"),
    pytest.mark.timeout(180),
]
WITHIN_S = 60
PORTS = ("--port", "0", "--simulator-port", "0")
COMMAND = (sys.executable, "-m", "waypost", "dev", "--memory", *PORTS)


@dataclass
class Service:
    """`waypost dev` in a process of its own, and what it has answered.

    Attributes:
        kinds: the content types of all answers.
    """

    process: subprocess.Popen[bytes]
    known: dict[str, str]
    http: aiohttp.ClientSession
    kinds: set[str] = field(default_factory=set[str])

    async def ask(self, method: str, url: str, form: dict[str, str] | None = None) -> tuple[int, Any]:
        headers = {"apikey": self.known["API_KEY"]}
        if "/admin/" in url:
            headers = {"Authorization": f"Bearer {self.known['ADMIN_TOKEN']}"}
        async with self.http.request(method, url, data=form, headers=headers) as answer:
            self.kinds.add(answer.content_type)
            return answer.status, await answer.json(content_type=None)

    async def send(self, text: str) -> int:
        form = {
            "channel": "whatsapp",
            "source": self.known["SOURCE"],
            "destination": self.known["DESTINATION"],
            "src.name": self.known["SRC_NAME"],
            "message": f'{{"type":"text","text":"{text}"}}',
        }
        status, _ = await self.ask("POST", f"{self.known['PARTNER_URL']}/wa/api/v1/msg", form)
        return status

    def limit_files(self, size: int | None) -> None:
        """Let no file of the service grow beyond a size; None lifts it."""
        _, hard = resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE)
        soft = resource.RLIM_INFINITY if size is None else size
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (soft, hard))

    async def states(self) -> dict[str, int]:
        status, told = await self.ask("GET", f"{self.known['ADMIN_URL']}/messages")
        assert status == 200
        return told["messages"]

    async def reasons(self) -> tuple[int, Any]:
        return await self.ask("GET", f"{self.known['PARTNER_URL']}/readyz")


@pytest.fixture(params=["a file", "a closed pipe", "a full pipe"])
async def service(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Service]:
    env_file, log = tmp_path / "dev.env", tmp_path / "log"
    reading, writing = os.pipe()
    if request.param == "a full pipe":  # whose reader has stopped
        os.set_blocking(writing, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writing, b"full" * 1024)
        os.set_blocking(writing, True)
    with log.open("wb") as file:
        process = subprocess.Popen(  # noqa: ASYNC220  before anything else runs
            [*COMMAND, "--env-file", str(env_file), "--until-stdin-ends"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=file if request.param == "a file" else writing,
            env={**os.environ, "WAYPOST_RATES": "false"},
            cwd=tmp_path,
        )
    os.close(writing)
    if request.param == "a closed pipe":
        os.close(reading)
    try:
        async with aiohttp.ClientSession() as http, asyncio.timeout(WITHIN_S):
            while not (env_file.exists() and "ADMIN_TOKEN" in env_file.read_text()):
                assert process.poll() is None
                await asyncio.sleep(0.05)
            service = Service(process, read_variables(env_file), http)
            while True:
                with contextlib.suppress(aiohttp.ClientError):
                    if (await service.reasons())[0] == 200:
                        break
                await asyncio.sleep(0.05)
            yield service
    finally:
        process.terminate()
        process.communicate(timeout=WITHIN_S)
        if request.param != "a closed pipe":
            os.close(reading)


async def test_answers_stay_json_and_loops_go_on_once_there_is_room_again(service: Service) -> None:
    sent = [await service.send(f"before {n}") for n in range(20)]
    service.limit_files(1)
    try:
        refused = [await service.send(f"without room {n}") for n in range(5)]
        phone = f"{service.known['CONTROL_URL']}/phones/{service.known['DESTINATION']}"
        moved, _ = await service.ask("POST", f"{phone}/messages", {"text": "hello"})
        for _ in range(20):  # long enough for every loop to fail more than once
            await service.reasons()
            await asyncio.sleep(0.1)
        not_ready, why = await service.reasons()
    finally:
        service.limit_files(None)

    await patiently(service.reasons, lambda told: told[0] == 200, within_s=WITHIN_S)
    sent += [await service.send(f"after {n}") for n in range(20)]
    delivered = {"delivered": sent.count(200)}
    states = await patiently(service.states, lambda states: states == delivered, within_s=WITHIN_S)

    assert states == delivered
    assert (sent, set(refused)) == ([200] * 40, {500})
    assert moved >= 400
    assert (not_ready, bool(why["checks"]["store_writes"])) == (503, True)
    assert service.kinds == {"application/json"}
