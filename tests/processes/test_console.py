"""The console of a service of many processes: whoever is signed in at one is at all, and sees what any has done."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest_asyncio

from crashes.partner import SOURCE
from crashes.plans import Plan
from crashes.processes import free_port
from crashes.town import CONTROL_TOKEN, Town
from tests.support.waiting import HANGS_AFTER_S

ANN = "15557001001"
ACCOUNT = {"email": "crash@waypost.test", "password": "Crash-1234"}


@dataclass
class Visitor:
    """Somebody with one browser, whom a balancer sends to this process or that."""

    town: Town
    http: aiohttp.ClientSession

    async def get(self, at: int, path: str) -> tuple[int, str]:
        """A page from the process `at`, and not where it leads."""
        url = self.town.bases[at] + path
        async with self.http.get(url, allow_redirects=False) as answer:
            return answer.status, await answer.text()

    async def post(self, at: int, path: str, **fields: str) -> int:
        """A form, with what a page of the other process gave against forgery."""
        _, page = await self.get(1 - at, "/settings")
        found = re.search(r'data-csrf="([^"]+)"', page)
        body = {"csrf": found[1] if found else "", **fields}
        url = self.town.bases[at] + path
        async with self.http.post(url, data=body, allow_redirects=False) as answer:
            return answer.status

    async def hears(self, at: int, path: str, words: str) -> asyncio.Task[None]:
        """Opens a stream; what it gives is done when the stream has said these words."""
        answer = await self.http.get(self.town.bases[at] + path)
        assert answer.status == 200

        async def listen() -> None:
            async with answer, asyncio.timeout(HANGS_AFTER_S):
                while words not in (await answer.content.readline()).decode():
                    assert not answer.content.at_eof()

        return asyncio.create_task(listen())


@pytest_asyncio.fixture
async def visitor(tmp_path: Path, database_url: str) -> AsyncIterator[Visitor]:
    """Two services on one PostgreSQL, the simulator by itself, and a visitor who is signed in at the first."""
    operator_port = free_port()
    plan = Plan(
        settings={
            "WAYPOST_SIMULATOR_URL": f"http://127.0.0.1:{operator_port}",
            "WAYPOST_SIMULATOR_TOKEN": CONTROL_TOKEN,
        },
        database_url=database_url,
        stored_url=database_url.replace("postgresql://", "postgresql+psycopg://"),
        services=2,
        operator_port=operator_port,
    )
    town = Town(tmp_path, plan)
    jar = aiohttp.CookieJar(unsafe=True)
    try:
        await town.open()
        async with aiohttp.ClientSession(cookie_jar=jar) as http:
            sign_in = town.base + "/sign-in"
            async with http.post(sign_in, data=ACCOUNT, allow_redirects=False) as answer:
                assert answer.status == 303
            yield Visitor(town, http)
    finally:
        await town.close()


async def test_console_is_one_whichever_process_answers(visitor: Visitor) -> None:
    town, partner = visitor.town, visitor.town.partner
    base = f"/apps/{partner.app_id}"
    app = {"id": partner.app_id, "app_token": partner.app_token}
    form = {
        "channel": "whatsapp",
        "source": SOURCE,
        "destination": ANN,
        "src.name": "CrashApp",
        "template": json.dumps({"id": partner.template_id, "params": ["4711"]}),
    }

    overview = [(await visitor.get(at, base))[0] for at in (0, 1)]
    arrives = await visitor.hears(1, f"{base}/messages/live", "read</span>")
    await town.app_call(app, "template/msg", form)  # by the first process
    await arrives
    shown = await visitor.get(1, f"/phones?phone={ANN}")
    answers = await visitor.hears(0, f"{base}/messages/received/live", "(13 characters)")
    wrote = await visitor.post(1, f"/phones/{ANN}/chats/{SOURCE}/text", text="Who is there?")
    await answers
    named = await visitor.post(0, f"{base}/settings/keys", key_name="a second")
    keys = (await visitor.get(1, f"{base}/settings"))[1]
    left = await visitor.post(0, "/sign-out")
    after = [(await visitor.get(at, base))[0] for at in (1, 0)]

    assert overview == [200, 200]
    assert (shown[0], "Parcel 4711 is ready" in shown[1]) == (200, True)
    assert (wrote, named) == (303, 200)
    assert "a second" in keys
    assert (left, after) == (303, [303, 303])
