"""Fixtures that start `waypost dev` in this process."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.callback_sink import CallbackSink
from tests.support.polling import HANGS_AFTER_S
from waypost.assembly.dev.dev import DevOptions, DevServer, DevStatus
from waypost.config import convert_settings


@dataclass
class RunningDev:
    """`waypost dev` in this process, with its control API and its service as a script uses them."""

    dev: DevServer
    running: DevStatus
    http: aiohttp.ClientSession

    async def control(self, method: str, path: str, body: Any = None, *, status: int = 200) -> dict[str, Any]:
        """Send a request to the simulator control API."""
        url = f"{self.running.variables['CONTROL_URL']}/{path}"
        async with self.http.request(method, url, json=body) as response:
            content = await response.json()
            assert response.status == status, content
            return content

    async def request(self, method: str, path: str, form: dict[str, str] | None = None) -> Any:
        """Send a request to the service with the credentials of the demonstration."""
        variables = self.running.variables
        headers = {"apikey": variables["API_KEY"]}
        if path.startswith("/partner/"):
            headers = {"Authorization": variables["APP_TOKEN"]}
        async with self.http.request(method, self.running.base_url + path, data=form, headers=headers) as response:
            assert response.status == 200, await response.text()
            return await response.json()

    async def send_text(self, text: str, *, source: str = "", app_name: str = "") -> str:
        """Send a session text to the demonstration's phone; return the message id.

        Args:
            text: of the message.
            source: the number of another app than the demonstration's.
            app_name: its name.
        """
        variables = self.running.variables
        form = {
            "channel": "whatsapp",
            "source": source or variables["SOURCE"],
            "destination": variables["DESTINATION"],
            "src.name": app_name or variables["SRC_NAME"],
            "message": f'{{"type":"text","text":"{text}"}}',
        }
        return (await self.request("POST", "/wa/api/v1/msg", form))["messageId"]

    async def subscribe(self, url: str, *, tag: str, modes: str = "SENT,DELIVERED,READ,MESSAGE") -> None:
        """Subscribe a receiver of version 2 to the demonstration's app."""
        path = f"/partner/app/{self.running.variables['APP_ID']}/subscription"
        form = {"modes": modes, "tag": tag, "url": url, "version": "2", "doCheck": "false"}
        await self.request("POST", path, form)

    async def travel(self, ms: int) -> None:
        """Advance the clock by the whole time, however long a busy machine takes for the due work."""
        left_ms = (await self.control("POST", "clock/advance", {"ms": ms}))["left_ms"]
        while left_ms:
            left_ms = (await self.control("POST", "clock/advance", {"ms": left_ms}))["left_ms"]

    async def shown_texts(self, *, until: str | None = None) -> list[str]:
        """Return the texts on the demonstration's phone; wait until the given text is among them."""
        phone = self.running.variables["DESTINATION"]
        async with asyncio.timeout(HANGS_AFTER_S):
            while True:
                inbox = await self.control("GET", f"phones/{phone}?wait_ms=200")
                texts = [message["text"] for message in inbox["messages"]]
                if until is None or until in texts:
                    return texts


@dataclass
class DevStarter:
    """Starts `waypost dev` on a folder, several times if a test needs it."""

    folder: Path
    http: aiohttp.ClientSession
    started: list[RunningDev] = field(default_factory=list[RunningDev])

    async def __call__(
        self, folder: str = "data", *, settings: Mapping[str, Any] | None = None, **options: Any
    ) -> RunningDev:
        """Start it with further settings, and return when it responds."""
        values: dict[str, Any] = {"data": self.folder / folder, "port": 0, "rates": False, "log_level": "error"}
        chosen = convert_settings(values | dict(settings or {}))
        dev = DevServer(DevOptions(chosen, simulator_port=0, env_file=self.folder / f"{folder}.env", **options))
        try:
            started = RunningDev(dev, await dev.open(), self.http)
        except BaseException:
            await dev.close()
            raise
        self.started.append(started)
        return started

    async def stop(self, started: RunningDev) -> None:
        """Stop it gracefully."""
        self.started.remove(started)
        await started.dev.close()


@pytest.fixture
async def sink() -> AsyncGenerator[CallbackSink]:
    """Open a receiver of callbacks that responds 200."""
    receiver = CallbackSink()
    await receiver.open()
    yield receiver
    receiver.gate.set()
    await receiver.close()


@pytest.fixture
async def start(tmp_path: Path) -> AsyncGenerator[DevStarter]:
    async with aiohttp.ClientSession() as http:
        starter = DevStarter(tmp_path, http)
        yield starter
        for started in starter.started:
            await started.dev.close()
