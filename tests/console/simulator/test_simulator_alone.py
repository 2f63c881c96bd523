"""A service with a simulator that stands alone beside it, and one without any."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from tests.console.conftest import LOOP
from tests.support.builders import ACCOUNT, APP, INSTANCE_KEY, PARTNER
from tests.support.closed_port import refusing_port
from waypost.assembly.http.servers import HttpServer, bind_socket, port_of
from waypost.assembly.service import Waypost
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.config import Settings
from waypost.console.guard import cookie_name
from waypost.simulator import Simulator, SimulatorSettings
from waypost.store.accounts.partners import add_app, add_business_account, add_partner

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)


class Site:
    """A service over HTTP, with somebody who is signed in."""

    def __init__(self, waypost: Waypost, base_url: str, http: aiohttp.ClientSession) -> None:
        self.waypost = waypost
        self.base_url = base_url
        self.http = http

    async def get(self, path: str) -> tuple[int, str]:
        async with self.http.get(self.base_url + path) as answer:
            return answer.status, await answer.text()

    async def post(self, path: str, **fields: str) -> tuple[int, str]:
        _, page = await self.get("/simulator/rules")
        found = re.search(r'data-csrf="([^"]*)"', page)
        body = {"csrf": found[1] if found else "", **fields}
        async with self.http.post(self.base_url + path, data=body) as answer:
            return answer.status, await answer.text()


async def open_site(
    folder: Path, simulator_url: str | None, *, admin_token: str | None = None, administrates: bool = True
) -> tuple[Site, HttpServer]:
    bound = bind_socket("127.0.0.1", 0, option="--port")
    base_url = f"http://127.0.0.1:{port_of(bound)}"
    clock = SystemClock()
    settings = Settings(
        data=folder / "service",
        secret_key=INSTANCE_KEY,
        public_url=base_url,
        simulator_url=simulator_url,
        admin_token=admin_token,
    )
    waypost = Waypost(settings, clock, RandomIds(clock))
    await waypost.open()
    await waypost.database.write(add_partner, PARTNER, "", 0)
    await waypost.database.write(add_business_account, ACCOUNT)
    await waypost.database.write(add_app, APP, "hash of a key")
    session = await waypost.console.services.sessions.start(PARTNER)
    if administrates:
        await waypost.console.services.sessions.grant_administration(session)
    cookies = {cookie_name(waypost.console.tools): session.token}
    http = aiohttp.ClientSession(cookies=cookies, cookie_jar=aiohttp.CookieJar(unsafe=True))
    server = HttpServer(waypost.application, bound)
    await server.start()
    return Site(waypost, base_url, http), server


async def close_site(site: Site, server: HttpServer) -> None:
    await site.http.close()
    await server.stop()
    await site.waypost.close()


@pytest_asyncio.fixture(loop_scope=LOOP)
async def alone(tmp_path: Path) -> AsyncIterator[Site]:
    """A service whose simulator is a process of its own, on the machine's clock."""
    clock = SystemClock()
    simulator = Simulator(SimulatorSettings(path=tmp_path / "simulator.db"), clock, RandomIds(clock))
    await simulator.open()
    bound = bind_socket("127.0.0.1", 0, option="--simulator-port")
    server = HttpServer(simulator.application, bound)
    await server.start()
    site, site_server = await open_site(tmp_path, f"http://127.0.0.1:{port_of(bound)}")
    yield site
    await close_site(site, site_server)
    await server.stop()
    await simulator.close()


@pytest_asyncio.fixture(loop_scope=LOOP)
async def without(tmp_path: Path) -> AsyncIterator[Site]:
    """A service of a real operator."""
    site, server = await open_site(tmp_path, None)
    yield site
    await close_site(site, server)


async def test_simulator_that_stands_alone_says_what_it_cannot_do(alone: Site) -> None:
    status, snapshots = await alone.get("/simulator/snapshots")
    assert status == 200
    assert "this simulator stands alone" in snapshots
    assert "The service is not reset" in snapshots

    status, clock = await alone.get("/simulator/clock")
    assert status == 200
    assert "follows the machine&#39;s clock, which cannot be advanced" in clock
    assert "is not advanced with it" in clock

    status, page = await alone.post("/simulator/clock/advance", by="1", unit="days")
    assert status == 200
    assert "notice-bad" in page
    status, page = await alone.post("/simulator/snapshots", name="one")
    assert "notice-bad" in page


async def test_everything_else_works_with_a_simulator_that_stands_alone(alone: Site) -> None:
    status, page = await alone.post("/simulator/faults/presets/silent")
    assert status == 200, page
    _, page = await alone.get("/simulator/faults")
    assert "Each update is dropped, every time, until" in page
    assert "uses this simulator" in page

    for path in ("/simulator", "/simulator/fleets", "/simulator/rules"):
        assert (await alone.get(path))[0] == 200
    status, page = await alone.post("/simulator/reset")
    assert "Reset to the initial state." in page
    assert "Each update is dropped" not in (await alone.get("/simulator/faults"))[1]


async def test_service_without_a_simulator_explains_that_there_is_none(without: Site) -> None:
    for path in ("/simulator", "/simulator/faults", "/simulator/clock", "/simulator/snapshots"):
        status, page = await without.get(path)
        assert status == 404
        assert "This service is connected to the operator" in page
        assert "WAYPOST_SIMULATOR_URL" in page


async def test_simulator_that_does_not_answer_is_said_to_be_away(tmp_path: Path) -> None:
    with refusing_port() as port:
        site, server = await open_site(tmp_path, f"http://127.0.0.1:{port}")
        status, page = await site.get("/simulator")
        await close_site(site, server)

    assert status == 503
    assert "The simulator is not responding." in page
