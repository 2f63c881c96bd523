"""The service is killed between any two lines while files come in: none that was answered is lost."""

import asyncio
import contextlib
import hashlib
import io
import os
import random
import sqlite3
import sys
from pathlib import Path
from typing import Final

import aiohttp

from crashes.processes import Child, free_port
from tests.support.waiting import patiently
from waypost.assembly.dev import demo
from waypost.base.encryption import SecretBox

KILLS: Final = 3
AT_ONCE: Final = 4
MOST_BYTES: Final = 1_500_000


class Uploading:
    """Clients that upload as fast as they are answered, each file another one.

    Attributes:
        answered: digests by media id, of what was answered with 200.
    """

    def __init__(self, url: str) -> None:
        self._url = f"{url}/partner/app/{demo.APP_ID}/media"
        self._token = SecretBox(demo.INSTANCE_KEY).app_token(demo.APP_ID, 1)
        self._chance = random.Random(20260101)
        self.answered: dict[str, str] = {}

    async def run(self, http: aiohttp.ClientSession) -> None:
        """Upload until cancelled; a service that is away is tried again."""
        while True:
            size_bytes = self._chance.choice((100, 5_000, 200_000, MOST_BYTES))
            content = b"\x89PNG\r\n\x1a\n" + self._chance.randbytes(size_bytes)
            with contextlib.suppress(aiohttp.ClientError, OSError):
                await self._upload(http, content)
            await asyncio.sleep(0.001)

    async def answered_more(self, count: int) -> None:
        """Return once so many more have been answered."""
        before = len(self.answered)

        async def answered() -> int:
            return len(self.answered)

        await patiently(answered, lambda now: now >= before + count)

    async def _upload(self, http: aiohttp.ClientSession, content: bytes) -> None:
        form = aiohttp.FormData()
        form.add_field("file", io.BytesIO(content), filename="a.png")
        async with http.post(self._url, data=form, headers={"token": self._token}) as answer:
            told = await answer.json()
            assert answer.status == 200, told
            self.answered[told["mediaId"]] = hashlib.sha256(content).hexdigest()


async def test_no_answered_upload_is_lost_and_nothing_half_written_is_kept(tmp_path: Path) -> None:
    port, simulator_port = free_port(), free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "waypost", "dev", "--port", str(port)]
    command += ["--simulator-port", str(simulator_port), "--env-file", str(tmp_path / "env")]
    variables = {"WAYPOST_DATA": str(tmp_path / "data"), "WAYPOST_RATES": "false"}
    child = Child("service", command, variables, tmp_path / "log")
    chance = random.Random(7)
    uploading = Uploading(url)

    async with aiohttp.ClientSession() as http:
        clients = [asyncio.create_task(uploading.run(http)) for _ in range(AT_ONCE)]
        for _ in range(KILLS):
            child.start()
            await up(http, url, child)
            await uploading.answered_more(4)
            await asyncio.sleep(chance.uniform(0, 0.1))
            child.kill()
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        child.start()
        await up(http, url, child)
    child.close()

    assert len(uploading.answered) > 3 * KILLS
    folder = tmp_path / "data" / "media"
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "waypost.db")) as store:
        rows = dict(store.execute("SELECT id, sha256 FROM media").fetchall())
    assert rows.items() >= uploading.answered.items()
    whole = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    assert all(name == digest for name, digest in whole.items())
    assert whole.keys() >= set(rows.values())
    sys.stdout.write(f"\n{len(uploading.answered)} uploads answered, {os.cpu_count()} cores\n")


async def up(http: aiohttp.ClientSession, url: str, child: Child) -> None:
    """Return once the service is there."""
    for _ in range(400):
        with contextlib.suppress(aiohttp.ClientError, OSError):
            async with http.get(f"{url}/readyz") as answer:
                if answer.status == 200:
                    return
        assert child.status is None, child.last_lines()
        await asyncio.sleep(0.05)
    raise AssertionError(child.last_lines())
