"""The console with several processes: a session is valid in all of them, and each shows the changes of the others."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest_asyncio

from crashes.cluster import CONTROL_TOKEN, ClusterUnderTest
from crashes.layout import ClusterLayout
from crashes.partner import SOURCE
from crashes.processes import free_port
from tests.support.polling import HANGS_AFTER_S

ANN = "15557001001"
ACCOUNT = {"email": "crash@waypost.test", "password": "Crash-1234"}


@dataclass
class BalancedBrowser:
    """A browser whose requests a load balancer sends to different processes."""

    cluster: ClusterUnderTest
    http: aiohttp.ClientSession

    async def get(self, process: int, path: str) -> tuple[int, str]:
        """Get a page from the process `at`, without following redirects."""
        url = self.cluster.base_urls[process] + path
        async with self.http.get(url, allow_redirects=False) as response:
            return response.status, await response.text()

    async def post(self, process: int, path: str, **fields: str) -> int:
        """Post a form, with the CSRF token of a page of the other process."""
        _, page = await self.get(1 - process, "/settings")
        csrf = re.search(r'data-csrf="([^"]+)"', page)
        body = {"csrf": csrf[1] if csrf else "", **fields}
        url = self.cluster.base_urls[process] + path
        async with self.http.post(url, data=body, allow_redirects=False) as response:
            return response.status

    async def open_stream(self, process: int, path: str, expected: str) -> asyncio.Task[None]:
        """Open a stream; the returned task ends when the stream has sent the text."""
        response = await self.http.get(self.cluster.base_urls[process] + path)
        assert response.status == 200

        async def listen() -> None:
            async with response, asyncio.timeout(HANGS_AFTER_S):
                while expected not in (await response.content.readline()).decode():
                    assert not response.content.at_eof()

        return asyncio.create_task(listen())


@pytest_asyncio.fixture
async def browser(tmp_path: Path, database_url: str) -> AsyncIterator[BalancedBrowser]:
    """Yield a browser that is signed in at the first of two services on one PostgreSQL, with a separate simulator."""
    operator_port = free_port()
    layout = ClusterLayout(
        settings={
            "WAYPOST_SIMULATOR_URL": f"http://127.0.0.1:{operator_port}",
            "WAYPOST_SIMULATOR_TOKEN": CONTROL_TOKEN,
        },
        database_url=database_url,
        reader_url=database_url.replace("postgresql://", "postgresql+psycopg://"),
        services=2,
        operator_port=operator_port,
    )
    cluster = ClusterUnderTest(tmp_path, layout)
    jar = aiohttp.CookieJar(unsafe=True)
    try:
        await cluster.open()
        async with aiohttp.ClientSession(cookie_jar=jar) as http:
            sign_in = cluster.base_url + "/sign-in"
            async with http.post(sign_in, data=ACCOUNT, allow_redirects=False) as response:
                assert response.status == 303
            yield BalancedBrowser(cluster, http)
    finally:
        await cluster.close()


async def test_console_works_alike_whichever_process_handles_the_request(browser: BalancedBrowser) -> None:
    cluster, partner = browser.cluster, browser.cluster.partner
    app_path = f"/apps/{partner.app_id}"
    app = {"id": partner.app_id, "app_token": partner.app_token}
    form = {
        "channel": "whatsapp",
        "source": SOURCE,
        "destination": ANN,
        "src.name": "CrashApp",
        "template": json.dumps({"id": partner.template_id, "params": ["4711"]}),
    }

    overview = [(await browser.get(process, app_path))[0] for process in (0, 1)]
    delivered = await browser.open_stream(1, f"{app_path}/messages/live", "read</span>")
    await cluster.app_call(app, "template/msg", form)  # handled by the first process
    await delivered
    phone_page = await browser.get(1, f"/phones?phone={ANN}")
    replied = await browser.open_stream(0, f"{app_path}/messages/received/live", "(13 characters)")
    text_status = await browser.post(1, f"/phones/{ANN}/chats/{SOURCE}/text", text="Who is there?")
    await replied
    key_status = await browser.post(0, f"{app_path}/settings/keys", key_name="a second")
    keys = (await browser.get(1, f"{app_path}/settings"))[1]
    sign_out_status = await browser.post(0, "/sign-out")
    after_sign_out = [(await browser.get(process, app_path))[0] for process in (1, 0)]

    assert overview == [200, 200]
    assert (phone_page[0], "Parcel 4711 is ready" in phone_page[1]) == (200, True)
    assert (text_status, key_status) == (303, 200)
    assert "a second" in keys
    assert (sign_out_status, after_sign_out) == (303, [303, 303])
