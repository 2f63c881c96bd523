import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.callback_sink import CallbackSink
from tests.support.waiting import HANGS_AFTER_S
from waypost.assembly.dev.dev import DevOptions, DevServer, DevStatus
from waypost.config import Settings


@dataclass
class Started:
    """`waypost dev` in this process, and both its doors as a script uses them."""

    dev: DevServer
    running: DevStatus
    http: aiohttp.ClientSession

    async def control(self, method: str, path: str, body: Any = None, *, status: int = 200) -> dict[str, Any]:
        """One request to the control door."""
        url = f"{self.running.variables['CONTROL_URL']}/{path}"
        async with self.http.request(method, url, json=body) as answer:
            content = await answer.json()
            assert answer.status == status, content
            return content

    async def ask(self, method: str, path: str, form: dict[str, str] | None = None) -> Any:
        """One request to the service with the credentials of the demonstration."""
        known = self.running.variables
        headers = {"apikey": known["API_KEY"]}
        if path.startswith("/partner/"):
            headers = {"Authorization": known["APP_TOKEN"]}
        async with self.http.request(method, self.running.base_url + path, data=form, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def send_text(self, text: str) -> str:
        """Send a session text to the demonstration's phone; gives our id of it."""
        known = self.running.variables
        form = {
            "channel": "whatsapp",
            "source": known["SOURCE"],
            "destination": known["DESTINATION"],
            "src.name": known["SRC_NAME"],
            "message": f'{{"type":"text","text":"{text}"}}',
        }
        return (await self.ask("POST", "/wa/api/v1/msg", form))["messageId"]

    async def subscribe(self, url: str, *, tag: str, modes: str = "SENT,DELIVERED,READ,MESSAGE") -> None:
        """Subscribe a receiver of version 2 to the demonstration's app."""
        path = f"/partner/app/{self.running.variables['APP_ID']}/subscription"
        form = {"modes": modes, "tag": tag, "url": url, "version": "2", "doCheck": "false"}
        await self.ask("POST", path, form)

    async def travel(self, ms: int) -> None:
        """Move the clock, however long a busy machine takes for what is due on the way."""
        left_ms = (await self.control("POST", "clock/advance", {"ms": ms}))["left_ms"]
        while left_ms:
            left_ms = (await self.control("POST", "clock/advance", {"ms": left_ms}))["left_ms"]

    async def shown_texts(self, *, until: str | None = None) -> list[str]:
        """The texts on the demonstration's phone, once the one that is waited for is among them."""
        phone = self.running.variables["DESTINATION"]
        async with asyncio.timeout(HANGS_AFTER_S):
            while True:
                inbox = await self.control("GET", f"phones/{phone}?wait_ms=200")
                texts = [message["text"] for message in inbox["messages"]]
                if until is None or until in texts:
                    return texts


@dataclass
class Starter:
    """Starts `waypost dev` on a folder, several times where a test wants it."""

    folder: Path
    http: aiohttp.ClientSession
    started: list[Started] = field(default_factory=list[Started])

    async def __call__(self, folder: str = "data", **options: Any) -> Started:
        """Start it and return once it answers."""
        settings = Settings(data=self.folder / folder, port=0, rates=False, log_level="error")
        dev = DevServer(DevOptions(settings, simulator_port=0, env_file=self.folder / "dev.env", **options))
        try:
            started = Started(dev, await dev.open(), self.http)
        except BaseException:
            await dev.close()
            raise
        self.started.append(started)
        return started

    async def stop(self, started: Started) -> None:
        """Stop it in order."""
        self.started.remove(started)
        await started.dev.close()


@pytest.fixture
async def sink() -> AsyncGenerator[CallbackSink]:
    """A receiver of callbacks that answers 200."""
    receiver = CallbackSink()
    await receiver.open()
    yield receiver
    receiver.gate.set()
    await receiver.close()


@pytest.fixture
async def start(tmp_path: Path) -> AsyncGenerator[Starter]:
    async with aiohttp.ClientSession() as http:
        starter = Starter(tmp_path, http)
        yield starter
        for started in starter.started:
            await started.dev.close()
