"""A log that cannot be written changes no response and ends no loop, even while the disk is full."""

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

from tests.support.polling import poll_until
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
    """`waypost dev` in its own process, with the content types of its responses.

    Attributes:
        content_types: the content types of all responses.
    """

    process: subprocess.Popen[bytes]
    variables: dict[str, str]
    http: aiohttp.ClientSession
    content_types: set[str] = field(default_factory=set[str])

    async def request(self, method: str, url: str, form: dict[str, str] | None = None) -> tuple[int, Any]:
        headers = {"apikey": self.variables["API_KEY"]}
        if "/admin/" in url:
            headers = {"Authorization": f"Bearer {self.variables['ADMIN_TOKEN']}"}
        async with self.http.request(method, url, data=form, headers=headers) as response:
            self.content_types.add(response.content_type)
            return response.status, await response.json(content_type=None)

    async def send(self, text: str) -> int:
        form = {
            "channel": "whatsapp",
            "source": self.variables["SOURCE"],
            "destination": self.variables["DESTINATION"],
            "src.name": self.variables["SRC_NAME"],
            "message": f'{{"type":"text","text":"{text}"}}',
        }
        status, _ = await self.request("POST", f"{self.variables['PARTNER_URL']}/wa/api/v1/msg", form)
        return status

    def limit_files(self, size: int | None) -> None:
        """Limit the size of the service's files; None removes the limit."""
        _, hard = resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE)
        soft = resource.RLIM_INFINITY if size is None else size
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (soft, hard))

    async def count_states(self) -> dict[str, int]:
        status, content = await self.request("GET", f"{self.variables['ADMIN_URL']}/messages")
        assert status == 200
        return content["messages"]

    async def read_readiness(self) -> tuple[int, Any]:
        return await self.request("GET", f"{self.variables['PARTNER_URL']}/readyz")


@pytest.fixture(params=["a file", "a closed pipe", "a full pipe"])
async def service(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Service]:
    env_file, log = tmp_path / "dev.env", tmp_path / "log"
    reading, writing = os.pipe()
    if request.param == "a full pipe":  # its reader has stopped
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
                    if (await service.read_readiness())[0] == 200:
                        break
                await asyncio.sleep(0.05)
            yield service
    finally:
        process.terminate()
        process.communicate(timeout=WITHIN_S)
        if request.param != "a closed pipe":
            os.close(reading)


async def test_responses_stay_json_and_loops_continue_when_the_disk_has_space_again(service: Service) -> None:
    sent = [await service.send(f"before {n}") for n in range(20)]
    service.limit_files(1)
    try:
        failed = [await service.send(f"without room {n}") for n in range(5)]
        phone = f"{service.variables['CONTROL_URL']}/phones/{service.variables['DESTINATION']}"
        inbound_status, _ = await service.request("POST", f"{phone}/messages", {"text": "hello"})
        for _ in range(20):  # long enough for every loop to fail more than once
            await service.read_readiness()
            await asyncio.sleep(0.1)
        status, readiness = await service.read_readiness()
    finally:
        service.limit_files(None)

    await poll_until(service.read_readiness, lambda response: response[0] == 200, within_s=WITHIN_S)
    sent += [await service.send(f"after {n}") for n in range(20)]
    delivered = {"delivered": sent.count(200)}
    states = await poll_until(service.count_states, lambda states: states == delivered, within_s=WITHIN_S)

    assert states == delivered
    assert (sent, set(failed)) == ([200] * 40, {500})
    assert inbound_status >= 400
    assert (status, bool(readiness["checks"]["store_writes"])) == (503, True)
    assert service.content_types == {"application/json"}
