"""The service is killed at random moments during uploads: no acknowledged upload is lost."""

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
from tests.support.polling import poll_until
from waypost.assembly.dev import demo
from waypost.base.encryption import SecretBox

KILLS: Final = 3
CLIENTS: Final = 4
MAX_BYTES: Final = 1_500_000


class Uploader:
    """Clients that upload one distinct file after another.

    Attributes:
        acknowledged: digests by media id of the uploads with status 200.
    """

    def __init__(self, url: str) -> None:
        self._url = f"{url}/partner/app/{demo.APP_ID}/media"
        self._token = SecretBox(demo.INSTANCE_KEY).app_token(demo.APP_ID, 1)
        self._rng = random.Random(20260101)
        self.acknowledged: dict[str, str] = {}

    async def run(self, http: aiohttp.ClientSession) -> None:
        """Upload until cancelled; retry while the service is down."""
        while True:
            size_bytes = self._rng.choice((100, 5_000, 200_000, MAX_BYTES))
            content = b"\x89PNG\r\n\x1a\n" + self._rng.randbytes(size_bytes)
            with contextlib.suppress(aiohttp.ClientError, OSError):
                await self._upload(http, content)
            await asyncio.sleep(0.001)

    async def wait_acknowledged(self, count: int) -> None:
        """Return once `count` more uploads are acknowledged."""
        before = len(self.acknowledged)

        async def count_acknowledged() -> int:
            return len(self.acknowledged)

        await poll_until(count_acknowledged, lambda now: now >= before + count)

    async def _upload(self, http: aiohttp.ClientSession, content: bytes) -> None:
        form = aiohttp.FormData()
        form.add_field("file", io.BytesIO(content), filename="a.png")
        async with http.post(self._url, data=form, headers={"token": self._token}) as response:
            body = await response.json()
            assert response.status == 200, body
            self.acknowledged[body["mediaId"]] = hashlib.sha256(content).hexdigest()


async def test_no_acknowledged_upload_is_lost_and_no_partial_file_is_kept(tmp_path: Path) -> None:
    port, simulator_port = free_port(), free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "waypost", "dev", "--port", str(port)]
    command += ["--simulator-port", str(simulator_port), "--env-file", str(tmp_path / "env")]
    variables = {"WAYPOST_DATA": str(tmp_path / "data"), "WAYPOST_RATES": "false"}
    child = Child("service", command, variables, tmp_path / "log")
    rng = random.Random(7)
    uploader = Uploader(url)

    async with aiohttp.ClientSession() as http:
        clients = [asyncio.create_task(uploader.run(http)) for _ in range(CLIENTS)]
        for _ in range(KILLS):
            child.start()
            await wait_ready(http, url, child)
            await uploader.wait_acknowledged(4)
            await asyncio.sleep(rng.uniform(0, 0.1))
            child.kill()
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        child.start()
        await wait_ready(http, url, child)
    child.close()

    assert len(uploader.acknowledged) > 3 * KILLS
    folder = tmp_path / "data" / "media"
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "waypost.db")) as store:
        rows = dict(store.execute("SELECT id, sha256 FROM media").fetchall())
    assert rows.items() >= uploader.acknowledged.items()
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    assert all(name == digest for name, digest in digests.items())
    assert digests.keys() >= set(rows.values())
    sys.stdout.write(f"\n{len(uploader.acknowledged)} uploads acknowledged, {os.cpu_count()} cores\n")


async def wait_ready(http: aiohttp.ClientSession, url: str, child: Child) -> None:
    """Return once the service is ready."""
    for _ in range(400):
        with contextlib.suppress(aiohttp.ClientError, OSError):
            async with http.get(f"{url}/readyz") as response:
                if response.status == 200:
                    return
        assert child.status is None, child.last_lines()
        await asyncio.sleep(0.05)
    raise AssertionError(child.last_lines())
