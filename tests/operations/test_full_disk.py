"""One partner fills the disk with uploads; the other one sends and logs in as if nothing were."""

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
from tests.support.waiting import patiently
from waypost.client.dev_variables import read_variables

pytestmark = pytest.mark.timeout(180)
DISK_MB = 170
REFUSED = 20
ASKED = 10
"""How often the other partner sends and logs in while uploads are refused."""
AT_ONCE = 4
FILE_BYTES = 3_000_000
PORTS = ("--port", "0", "--simulator-port", "0")
COMMAND = (sys.executable, "-m", "waypost", "dev", *PORTS, "--until-stdin-ends")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 170 MB, of which 100 are to stay free; skipped where none may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    options = ("-t", "tmpfs", "-o", f"size={DISK_MB * 1_000_000},mode=700", "tmpfs", str(folder))
    try:
        mounted = subprocess.run(("mount", *options), capture_output=True, check=False)
    except OSError:
        pytest.skip("there is no mount here")
    if mounted.returncode:
        pytest.skip("no file system may be mounted here")
    yield folder
    subprocess.run(("umount", "--lazy", str(folder)), check=True)


@pytest.fixture
async def known(disk: Path, tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    """The variables of a service on that disk."""
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

        yield await patiently(variables, lambda found: "ADMIN_TOKEN" in found)
    finally:
        process.terminate()
        process.communicate(timeout=30)


async def add_uploader(http: aiohttp.ClientSession, known: dict[str, str]) -> tuple[str, str]:
    """A partner with an app; gives the app's id and token."""
    headers = {"Authorization": f"Bearer {known['ADMIN_TOKEN']}"}

    async def add(what: str, body: dict[str, Any]) -> dict[str, Any]:
        url = f"{known['ADMIN_URL']}/{what}"
        async with http.post(url, json=body, headers=headers) as answer:
            told = await answer.json()
            assert answer.status < 300, told
            return told

    partner = await add("partners", {"name": "Uploader", "email": "up@waypost.test"})
    business = {"id": "2000000000000098", "namespace": "uploader_namespace"}
    await add("business-accounts", {"partner_id": partner["id"], "operator_account_id": "demo", **business})
    number = {"phone_number": "15550009999", "phone_number_id": "2000000000000099"}
    numbered = {**number, "business_account_id": business["id"]}
    app = await add("apps", {"partner_id": partner["id"], "name": "Uploader", **numbered})
    return app["id"], app["app_token"]


async def test_sends_and_logins_of_another_partner_are_answered_200_throughout(
    known: dict[str, str], disk: Path
) -> None:
    uploads: Counter[int] = Counter()
    others: Counter[tuple[str, int]] = Counter()
    took_s: list[float] = []
    ended = asyncio.Event()

    async def upload(http: aiohttp.ClientSession, nth: int, app_id: str, token: str) -> None:
        number = 0
        while not ended.is_set():
            number += 1
            content = sample("png") + b"%d %d" % (nth, number) + bytes(FILE_BYTES)
            form = aiohttp.FormData({"file_type": "image/png"})
            form.add_field("file", BytesIO(content), filename="a.png", content_type="image/png")
            url = f"{known['PARTNER_URL']}/partner/app/{app_id}/media"
            async with http.post(url, data=form, headers={"token": token}) as answer:
                told = await answer.json()
                uploads[answer.status] += 1
                if answer.status != 200:
                    assert told["message"] == "Unable to upload requested Media"

    async def ask(http: aiohttp.ClientSession, what: str, path: str, form: dict[str, str]) -> None:
        began_s = time.monotonic()
        headers = {"apikey": known["API_KEY"]}
        async with http.post(known["PARTNER_URL"] + path, data=form, headers=headers) as answer:
            await answer.json()
            others[what, answer.status] += 1
        took_s.append(time.monotonic() - began_s)

    text = {
        "channel": "whatsapp",
        "source": known["SOURCE"],
        "destination": known["DESTINATION"],
        "src.name": known["SRC_NAME"],
        "message": '{"type":"text","text":"hello"}',
    }
    login = {"email": known["EMAIL"], "password": known["PASSWORD"]}
    async with aiohttp.ClientSession() as http:
        app_id, token = await add_uploader(http, known)
        beside = 0
        async with asyncio.TaskGroup() as uploading:
            for nth in range(AT_ONCE):
                uploading.create_task(upload(http, nth, app_id, token))
            while (refused := uploads.total() - uploads[200]) < REFUSED or beside < ASKED:
                beside += refused > 0
                await ask(http, "send", "/wa/api/v1/msg", text)
                await ask(http, "login", "/partner/account/login", login)
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
