"""A service with a standalone simulator, and one without a simulator."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.console.conftest import LOOP
from tests.support.builders import ACCOUNT, APP, INSTANCE_KEY, OPERATOR, PARTNER
from tests.support.closed_port import closed_port
from tests.support.store_locations import ENGINES, StoreLocation
from waypost.admin import provisioning
from waypost.assembly.http.servers import HttpServer, bind_socket, port_of
from waypost.assembly.service import Waypost
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.config import Settings
from waypost.simulator import Simulator, SimulatorSettings
from waypost.simulator.state.settings import AccountSeed, NumberSeed
from waypost.store.accounts.partners import add_app, add_business_account, add_partner

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

NUMBER: Final = APP.phone_number or ""
PHONE: Final = f"/phones/business/{NUMBER}"
SEED: Final = AccountSeed(ACCOUNT.id, "Shop", "", OPERATOR["token"], OPERATOR["app_id"], OPERATOR["app_secret"], "", "")


class Site:
    """A service over HTTP, with a session that is signed in."""

    def __init__(self, waypost: Waypost, base_url: str, http: aiohttp.ClientSession) -> None:
        self.waypost = waypost
        self.base_url = base_url
        self.http = http

    async def get(self, path: str) -> tuple[int, str]:
        async with self.http.get(self.base_url + path) as response:
            return response.status, await response.text()

    async def errors_in(self, browser: Browser, path: str) -> list[str]:
        """Open a page in a browser; return what its console reports."""
        context, errors = await browser.new_context(), list[str]()
        session = {cookie.key: cookie.value for cookie in self.http.cookie_jar}
        await context.add_cookies(
            [{"name": name, "value": value, "url": self.base_url} for name, value in session.items()]
        )
        page = await context.new_page()
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        await page.goto(self.base_url + path, wait_until="load")
        assert urlsplit(page.url).path == path
        await context.close()
        return errors

    async def post(self, path: str, **fields: str) -> tuple[int, str]:
        _, page = await self.get("/simulator/rules")
        csrf = re.search(r'data-csrf="([^"]*)"', page)
        body = {"csrf": csrf[1] if csrf else "", **fields}
        async with self.http.post(self.base_url + path, data=body) as response:
            return response.status, await response.text()


async def open_site(
    folder: Path,
    simulator_url: str | None,
    *,
    location: StoreLocation | None = None,
    admin_token: str | None = None,
    administrates: bool = True,
    has_operator: bool = True,
) -> tuple[Site, HttpServer]:
    server_socket = bind_socket("127.0.0.1", 0, option="--port")
    base_url = f"http://127.0.0.1:{port_of(server_socket)}"
    clock = SystemClock()
    settings = Settings(
        data=folder / "service",
        secret_key=INSTANCE_KEY,
        public_url=base_url,
        simulator_url=simulator_url,
        admin_token=admin_token,
        **(location.settings if location else {}),
    )
    waypost = Waypost(settings, clock, RandomIds(clock))
    await waypost.open()
    await waypost.database.write(add_partner, PARTNER, "", 0)
    operator = replace(OPERATOR, base_url=simulator_url or OPERATOR.base_url)
    if has_operator:
        await provisioning.put_operator_account(waypost.admin_context, operator)
    await waypost.database.write(add_business_account, ACCOUNT)
    await waypost.database.write(add_app, APP, "hash of a key")
    session = await waypost.console.services.sessions.start(PARTNER)
    if administrates:
        await waypost.console.services.sessions.grant_administration(session)
    cookies = {waypost.console.services.session_cookie: session.token}
    http = aiohttp.ClientSession(cookies=cookies, cookie_jar=aiohttp.CookieJar(unsafe=True))
    server = HttpServer(waypost.application, server_socket)
    await server.start()
    return Site(waypost, base_url, http), server


async def close_site(site: Site, server: HttpServer) -> None:
    await site.http.close()
    await server.stop()
    await site.waypost.close()


@pytest_asyncio.fixture(loop_scope=LOOP)
async def standalone(tmp_path: Path, store_location: StoreLocation) -> AsyncIterator[Site]:
    """A service whose simulator is a process of its own, on the machine's clock; it knows the number of the app."""
    clock = SystemClock()
    simulator = Simulator(SimulatorSettings(path=tmp_path / "simulator.db"), clock, RandomIds(clock))
    await simulator.open()
    await simulator.seed(SEED, [NumberSeed(APP.phone_number_id or "", ACCOUNT.id, NUMBER, "Shop")])
    server_socket = bind_socket("127.0.0.1", 0, option="--simulator-port")
    server = HttpServer(simulator.application, server_socket)
    await server.start()
    site, site_server = await open_site(tmp_path, f"http://127.0.0.1:{port_of(server_socket)}", location=store_location)
    yield site
    await close_site(site, site_server)
    await server.stop()
    await simulator.close()


@pytest_asyncio.fixture(loop_scope=LOOP)
async def no_simulator(tmp_path: Path, store_location: StoreLocation) -> AsyncIterator[Site]:
    """A service that is connected to a real operator."""
    site, server = await open_site(tmp_path, None, location=store_location)
    yield site
    await close_site(site, server)


async def test_standalone_simulator_shows_what_it_does_not_support(standalone: Site) -> None:
    status, snapshots = await standalone.get("/simulator/snapshots")
    assert status == 200
    assert "this simulator stands alone" in snapshots
    assert "The service is not reset" in snapshots

    status, clock = await standalone.get("/simulator/clock")
    assert status == 200
    assert "follows the machine&#39;s clock, which cannot be advanced" in clock
    assert "is not advanced with it" in clock

    status, page = await standalone.post("/simulator/clock/advance", by="1", unit="days")
    assert status == 200
    assert "notice-bad" in page
    status, page = await standalone.post("/simulator/snapshots", name="one")
    assert "notice-bad" in page


@pytest.mark.parametrize("engine", ENGINES)
async def test_everything_else_works_with_a_standalone_simulator(standalone: Site, browser: Browser) -> None:
    status, page = await standalone.post("/simulator/faults/presets/silent")
    assert status == 200, page
    _, page = await standalone.get("/simulator/faults")
    assert "Each update is dropped, every time.</a> Ends <time" in page
    assert "uses this simulator" in page

    for path in ("/simulator", "/simulator/fleets", "/simulator/rules", "/phones", "/businesses", PHONE):
        assert (await standalone.get(path))[0] == 200, path
    assert "Corner is signed up." in (await standalone.post("/businesses", name="Corner", how="play"))[1]
    assert "the app and the API share the number" in (await standalone.post(f"{PHONE}/connect"))[1]
    for path in ("/businesses", PHONE):
        assert await standalone.errors_in(browser, path) == []
    status, page = await standalone.post("/simulator/reset")
    assert "Reset to the initial state." in page
    assert "Each update is dropped" not in (await standalone.get("/simulator/faults"))[1]


@pytest.mark.parametrize("engine", ENGINES)
async def test_service_without_a_simulator_explains_that_there_is_none(no_simulator: Site, browser: Browser) -> None:
    for path in ("/simulator", "/simulator/faults", "/simulator/clock", "/simulator/snapshots", PHONE):
        status, page = await no_simulator.get(path)
        assert status == 404
        assert "This service is connected to the operator" in page
        assert "WAYPOST_SIMULATOR_URL" in page
    status, page = await no_simulator.get("/businesses")
    assert status == 200
    assert "AcmeShop" in page
    assert await no_simulator.errors_in(browser, "/businesses") == []


async def test_unreachable_simulator_is_reported(tmp_path: Path) -> None:
    with closed_port() as port:
        site, server = await open_site(tmp_path, f"http://127.0.0.1:{port}")
        status, page = await site.get("/simulator")
        await close_site(site, server)

    assert status == 503
    assert "The simulator is not responding." in page
