"""One partner fills the disk with uploads; another partner's sends and logins are not affected."""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.media_samples import sample
from tests.support.polling import poll_until
from waypost.client.dev_variables import read_variables

pytestmark = pytest.mark.timeout(180)
DISK_MB = 170
MIN_FAILED_UPLOADS = 20
MIN_OTHER_REQUESTS = 10
"""How often the other partner sends and logs in while uploads fail."""
CONCURRENT_UPLOADS = 4
FILE_BYTES = 3_000_000
PORTS = ("--port", "0", "--simulator-port", "0")
COMMAND = (sys.executable, "-m", "waypost", "dev", *PORTS, "--until-stdin-ends")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 170 MB, of which 100 MB must stay free; skip if it cannot be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    options = ("-t", "tmpfs", "-o", f"size={DISK_MB * 1_000_000},mode=700", "tmpfs", str(folder))
    try:
        mounted = subprocess.run(("mount", *options), capture_output=True, check=False)
    except OSError:
        pytest.skip("there is no mount command")
    if mounted.returncode:
        pytest.skip("a file system cannot be mounted")
    yield folder
    subprocess.run(("umount", "--lazy", str(folder)), check=True)


@pytest.fixture
async def dev_variables(disk: Path, tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    """Start a service on that disk; return its variables."""
    env_file = tmp_path / "dev.env"
    process = subprocess.Popen(  # noqa: ASYNC220  before anything else runs
        [*COMMAND, "--data", str(disk / "data"), "--env-file", str(env_file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "WAYPOST_RATES": "false", "WAYPOST_LEAST_FREE_MB": "100"},
        cwd=tmp_path,
    )
    try:

        async def variables() -> dict[str, str]:
            assert process.poll() is None
            return read_variables(env_file) if env_file.exists() else {}

        yield await poll_until(variables, lambda read: "ADMIN_TOKEN" in read)
    finally:
        process.terminate()
        process.communicate(timeout=30)


async def add_uploader(http: aiohttp.ClientSession, dev_variables: dict[str, str]) -> tuple[str, str]:
    """Add a partner with an app; return the app's id and token."""
    headers = {"Authorization": f"Bearer {dev_variables['ADMIN_TOKEN']}"}

    async def add(what: str, body: dict[str, Any]) -> dict[str, Any]:
        url = f"{dev_variables['ADMIN_URL']}/{what}"
        async with http.post(url, json=body, headers=headers) as response:
            content = await response.json()
            assert response.status < 300, content
            return content

    partner = await add("partners", {"name": "Uploader", "email": "up@waypost.test"})
    business = {"id": "2000000000000098", "namespace": "uploader_namespace"}
    await add("business-accounts", {"partner_id": partner["id"], "operator_account_id": "demo", **business})
    number = {"phone_number": "15550009999", "phone_number_id": "2000000000000099"}
    numbered = {**number, "business_account_id": business["id"]}
    app = await add("apps", {"partner_id": partner["id"], "name": "Uploader", **numbered})
    return app["id"], app["app_token"]


async def test_sends_and_logins_of_another_partner_get_200_throughout(
    dev_variables: dict[str, str], disk: Path
) -> None:
    uploads: Counter[int] = Counter()
    others: Counter[tuple[str, int]] = Counter()
    took_s: list[float] = []
    ended = asyncio.Event()

    async def upload(http: aiohttp.ClientSession, worker: int, app_id: str, token: str) -> None:
        number = 0
        while not ended.is_set():
            number += 1
            content = sample("png") + b"%d %d" % (worker, number) + bytes(FILE_BYTES)
            form = aiohttp.FormData({"file_type": "image/png"})
            form.add_field("file", BytesIO(content), filename="a.png", content_type="image/png")
            url = f"{dev_variables['PARTNER_URL']}/partner/app/{app_id}/media"
            async with http.post(url, data=form, headers={"token": token}) as response:
                body = await response.json()
                uploads[response.status] += 1
                if response.status != 200:
                    assert body["message"] == "Unable to upload requested Media"

    async def send_request(http: aiohttp.ClientSession, what: str, path: str, form: dict[str, str]) -> None:
        began_s = time.monotonic()
        headers = {"apikey": dev_variables["API_KEY"]}
        async with http.post(dev_variables["PARTNER_URL"] + path, data=form, headers=headers) as response:
            await response.json()
            others[what, response.status] += 1
        took_s.append(time.monotonic() - began_s)

    text = {
        "channel": "whatsapp",
        "source": dev_variables["SOURCE"],
        "destination": dev_variables["DESTINATION"],
        "src.name": dev_variables["SRC_NAME"],
        "message": '{"type":"text","text":"hello"}',
    }
    login = {"email": dev_variables["EMAIL"], "password": dev_variables["PASSWORD"]}
    async with aiohttp.ClientSession() as http:
        app_id, token = await add_uploader(http, dev_variables)
        requests = 0
        async with asyncio.TaskGroup() as uploading:
            for worker in range(CONCURRENT_UPLOADS):
                uploading.create_task(upload(http, worker, app_id, token))
            while (failed := uploads.total() - uploads[200]) < MIN_FAILED_UPLOADS or requests < MIN_OTHER_REQUESTS:
                requests += failed > 0
                await send_request(http, "send", "/wa/api/v1/msg", text)
                await send_request(http, "login", "/partner/account/login", login)
                await asyncio.sleep(0.02)
            ended.set()

    free = os.statvfs(disk)
    report = (
        f"uploads {dict(uploads)}, others {dict(others)}, median {statistics.median(took_s) * 1000:.0f} ms, "
        f"worst {max(took_s) * 1000:.0f} ms, free {free.f_bavail * free.f_frsize // 1_000_000} MB"
    )
    (disk.parent / "report").write_text(report, encoding="ascii")
    assert set(uploads) <= {200, 500}, report
    assert min(uploads[200], uploads[500]) > 0, report
    assert {status for _, status in others} == {200}, report
