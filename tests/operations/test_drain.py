"""`drain_s`: after a stop signal `/readyz` says 503 while the API responds on; a second signal ends the process."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from crashes.processes import Child, free_port
from tests.support.polling import HANGS_AFTER_S, poll_until


@pytest.fixture
def drain_s() -> str:
    return "3600"


@pytest.fixture
async def service(tmp_path: Path, drain_s: str) -> AsyncIterator[tuple[Child, str]]:
    """Yield a service that is ready, and its URL."""
    port = free_port()
    child = Child(
        "serve",
        [sys.executable, "-m", "waypost", "serve", "--data", str(tmp_path / "data"), "--port", str(port)],
        {"WAYPOST_SECRET_KEY": "long-key" * 8, "WAYPOST_ADMIN_TOKEN": "admin-token" * 4, "WAYPOST_DRAIN_S": drain_s},
        tmp_path / "log",
    )
    child.start()
    url = f"http://127.0.0.1:{port}"
    try:
        await poll_until(lambda: get(f"{url}/readyz"), lambda response: response[0] == 200)
        yield child, url
    finally:
        child.kill()
        sys.stdout.write(child.last_lines() + "\n")


async def get(url: str) -> tuple[int, str]:
    try:
        async with aiohttp.ClientSession() as http, http.get(url) as response:
            return response.status, await response.text()
    except aiohttp.ClientError:
        return 0, ""


async def test_service_that_drains_is_not_ready_and_responds_until_a_second_signal(service: tuple[Child, str]) -> None:
    child, url = service
    child.terminate()

    _, reasons = await poll_until(lambda: get(f"{url}/readyz"), lambda response: response[0] == 503)
    assert '"stopping":"the service is stopping"' in reasons
    assert (await get(f"{url}/healthz"))[0] == 200
    assert (await get(f"{url}/partner/app/x/token"))[0] == 403

    await asyncio.sleep(1.1)  # a second one within a second is ignored: two programs may send the same
    child.terminate()
    assert await child.wait_ended(within_s=HANGS_AFTER_S) == 128 + 15


@pytest.mark.parametrize("drain_s", ["0.5"])
async def test_service_ends_after_its_drain(service: tuple[Child, str]) -> None:
    child, _ = service
    child.terminate()

    assert await child.wait_ended(within_s=HANGS_AFTER_S) == 0
