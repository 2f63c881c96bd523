"""Fixtures of the console tests: `waypost dev` in this process, with a browser and a scripted client."""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, Playwright, async_playwright, expect

from tests.support.polling import HANGS_AFTER_S
from waypost.assembly.dev import demo
from waypost.assembly.dev.dev import DevOptions, DevServer, DevStatus
from waypost.assembly.dev.files import read_or_create_instance_key
from waypost.assembly.dev.service_and_simulator import BaseUrls, ServiceAndSimulator
from waypost.base.clock import SystemClock, VirtualClock
from waypost.base.ids import RandomIds
from waypost.base.telemetry.logs import set_up_logs
from waypost.base.time_travel import TimeTravel
from waypost.client.api_client import ApiClient, HttpTransport
from waypost.config import Settings
from waypost.simulator import SimulatorSettings

if TYPE_CHECKING:
    from tests.console.support.scene import Scene

HEADLESS: Final = "/usr/bin/chromium-headless-shell"
"""The browser without its window UI, which takes a third of the processor time."""
CHROMIUM: Final = os.environ.get("WAYPOST_CHROMIUM") or shutil.which(HEADLESS) or "/usr/bin/chromium"
LOOP: Final = "session"


@dataclass
class ConsoleClient:
    """A client of a running `waypost dev`: its console, where `http` is signed in, and its APIs."""

    dev: DevServer
    running: DevStatus
    http: aiohttp.ClientSession
    data: Path
    app_id: str = demo.APP_ID
    phone: str = demo.DESTINATION

    @property
    def base_url(self) -> str:
        return self.running.base_url

    @property
    def control(self) -> ApiClient:
        """The simulator's control API."""
        return ApiClient(HttpTransport(self.running.graph_url, timeout_s=70), {})

    @property
    def api(self) -> ApiClient:
        """The partner API with the demo app's token: `/partner/app/{app_id}/…`."""
        return ApiClient(HttpTransport(self.base_url), {"Authorization": self.running.variables["APP_TOKEN"]})

    @property
    def admin(self) -> ApiClient:
        token = self.running.variables["ADMIN_TOKEN"]
        return ApiClient(HttpTransport(self.base_url), {"Authorization": f"Bearer {token}"})

    async def get(self, path: str, *, status: int = 200, **options: Any) -> str:
        """Return a page of the console as text."""
        async with self.http.get(self.base_url + path, **options) as response:
            text = await response.text()
            assert response.status == status, (path, response.status, text[:2000])
            return text

    async def post(
        self, path: str, fields: Mapping[str, str] | None = None, *, status: int = 303
    ) -> aiohttp.ClientResponse:
        """Post an action of the console with the CSRF token of the session; redirects are not followed."""
        body = {"csrf": await self.csrf(), **(fields or {})}
        async with self.http.post(self.base_url + path, data=body, allow_redirects=False) as response:
            text = await response.text()
            assert response.status == status, (path, response.status, text[:2000])
            return response

    async def reveal(self, path: str, fields: Mapping[str, str] | None = None) -> str:
        """Post an action as a page's script does; return the text that it shows on the same page."""
        body = {"csrf": await self.csrf(), **(fields or {})}
        quiet = {"X-Waypost-Quiet": "1"}
        async with self.http.post(self.base_url + path, data=body, headers=quiet) as response:
            text = await response.text()
            assert response.status == 200, (path, response.status, text[:2000])
            return text

    async def csrf(self) -> str:
        """Return the CSRF token in the console's pages."""
        page = await self.get("/settings")
        return page.partition('data-csrf="')[2].partition('"')[0]

    async def send_text(self, text: str, *, to: str = demo.DESTINATION) -> str:
        """Send a text as a session message; return our message ID."""
        return (
            await self.api.form(
                "POST",
                f"/partner/app/{self.app_id}/msg",
                {
                    "channel": "whatsapp", "source": demo.SOURCE, "destination": to,
                    "src.name": demo.APP_NAME, "message": f'{{"type":"text","text":"{text}"}}',
                },
            )
        )["messageId"]  # fmt: skip


@dataclass
class Tab:
    """A browser tab that is signed in, with the errors and the external requests of its page."""

    page: Page
    console: ConsoleClient
    errors: list[str] = field(default_factory=list[str])
    external_requests: list[str] = field(default_factory=list[str])

    async def go(self, path: str) -> Page:
        """Open a page of the console, and wait until its scripts have run."""
        await self.page.goto(self.console.base_url + path, wait_until="load")
        return self.page

    def listen(self) -> None:
        """Record errors in the browser's console and requests that leave the machine."""
        own_origins = (self.console.base_url, "blob:", "data:")
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on(
            "request",
            lambda request: None if request.url.startswith(own_origins) else self.external_requests.append(request.url),
        )


async def answer_question(page: Page, button: str) -> str:
    """Press a button of the console's own question before an action; return the question."""
    question = page.get_by_role("alertdialog")
    text = await question.inner_text()
    await question.get_by_role("button", name=button).click()
    await expect(question).to_have_count(0)
    return text


@dataclass
class Tabs:
    """Opens tabs, each in a browser context of its own, so that cookies are separate."""

    browser: Browser
    console: ConsoleClient
    open: list[tuple[BrowserContext, Tab]] = field(default_factory=list[tuple[BrowserContext, Tab]])

    async def __call__(
        self, path: str = "/", *, width: int = 1440, height: int = 900,
        theme: Any = "light", signed_in: bool = True, **options: Any,
    ) -> Tab:  # fmt: skip
        context = await self.browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme,
            permissions=["clipboard-read", "clipboard-write"], **options,
        )  # fmt: skip
        if signed_in:
            cookie = next(c for c in self.console.http.cookie_jar if c.key == "waypost_session")
            await context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": self.console.base_url}])
        tab = Tab(await context.new_page(), self.console)
        tab.page.set_default_timeout(HANGS_AFTER_S * 1000)
        tab.page.set_default_navigation_timeout(HANGS_AFTER_S * 1000)
        tab.listen()
        self.open.append((context, tab))
        await tab.go(path)
        return tab


@pytest_asyncio.fixture(loop_scope=LOOP, scope="session")
async def playwright() -> AsyncGenerator[Playwright]:
    async with async_playwright() as running:
        yield running


@pytest_asyncio.fixture(loop_scope=LOOP, scope="session")
async def browser(playwright: Playwright) -> AsyncGenerator[Browser]:
    """Chromium, once per test worker."""
    if not shutil.which(CHROMIUM):
        if os.environ.get("CI") == "true":
            pytest.fail(f"no browser at {CHROMIUM}; .ci/run installs Debian's chromium-headless-shell")
        pytest.skip(f"no browser at {CHROMIUM}; install Debian's chromium-headless-shell, or set WAYPOST_CHROMIUM")
    expect.set_options(timeout=HANGS_AFTER_S * 1000)
    browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
    yield browser
    await browser.close()


async def open_console(
    folder: Path,
    *,
    demo_data: Path | None = None,
    changes: Mapping[str, Any] | None = None,
    clock: VirtualClock | None = None,
    **options: Any,
) -> ConsoleClient:
    """Start `waypost dev` in a folder, and return a client that is signed in.

    Args:
        folder: for its data.
        demo_data: a data folder to copy first; None: it creates the demo data itself.
        changes: settings that differ from the defaults.
        clock: of the service and the simulator; None: the machine's.
        options: of `waypost dev`.
    """
    if demo_data is not None:
        shutil.copytree(demo_data, folder / "data")
    set_up_logs(SystemClock(), as_json=False, level="error")  # show defects
    settings = Settings(data=folder / "data", port=0, log_level="error", **(changes or {}))
    dev = DevServer(DevOptions(settings, simulator_port=0, env_file=folder / "dev.env", **options), clock)
    try:
        running = await dev.open()
    except BaseException:
        await dev.close()
        raise
    http = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))
    async with http.post(running.base_url + "/enter", allow_redirects=False) as response:
        assert response.status == 303
    return ConsoleClient(dev, running, http, folder / "data")


@pytest_asyncio.fixture(loop_scope=LOOP, scope="session")
async def demo_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with nothing but the demo data, to be copied.

    Creating it takes 0.2 s of processor time, six times as long as starting from a copy.
    """
    folder = tmp_path_factory.mktemp("demo_data")
    settings = Settings(data=folder, log_level="error", admin_token=demo.ADMIN_TOKEN)
    settings = replace(settings, secret_key=read_or_create_instance_key(settings))
    clock = VirtualClock()
    dev = DevServer(DevOptions(settings))  # is never opened: no snapshot is requested
    sides = ServiceAndSimulator(
        settings, SimulatorSettings(path=folder / "simulator.db"), clock, RandomIds(clock),
        travel=TimeTravel(clock), snapshots=dev, control=HttpTransport("http://127.0.0.1:9"),
    )  # fmt: skip
    await sides.open(BaseUrls("http://127.0.0.1:9", "http://127.0.0.1:9"))
    assert sides.is_new
    await sides.close()
    return folder


async def close_console(console: ConsoleClient) -> None:
    await console.http.close()
    await console.dev.close()


@pytest_asyncio.fixture(loop_scope=LOOP)
async def console(tmp_path: Path, demo_data: Path) -> AsyncGenerator[ConsoleClient]:
    console = await open_console(tmp_path, demo_data=demo_data)
    yield console
    await close_console(console)


@pytest_asyncio.fixture(loop_scope=LOOP, scope="session")
async def shared_console(tmp_path_factory: pytest.TempPathFactory, demo_data: Path) -> AsyncGenerator[ConsoleClient]:
    """The same, once per test worker: for tests that tolerate what other tests leave behind."""
    console = await open_console(tmp_path_factory.mktemp("console"), demo_data=demo_data)
    yield console
    await close_console(console)


@pytest_asyncio.fixture(loop_scope=LOOP)
async def tabs(browser: Browser, console: ConsoleClient) -> AsyncGenerator[Tabs]:
    """Opens tabs; fails at the end if a page had an error or sent an external request."""
    tabs = Tabs(browser, console)
    yield tabs
    for context, tab in tabs.open:
        await context.close()
        assert tab.errors == []
        assert tab.external_requests == []
    await asyncio.sleep(0)


@pytest_asyncio.fixture(loop_scope=LOOP, scope="session")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator["Scene"]:
    """A populated demo, once per test worker: for tests that change nothing."""
    from tests.console.support import story  # here, because both modules import this one
    from tests.console.support.scene import open_scene

    async with open_scene(tmp_path_factory.mktemp("scene"), story.populate) as scene:
        yield scene


@pytest_asyncio.fixture(loop_scope=LOOP)
async def scene_tabs(browser: Browser, scene: "Scene") -> AsyncGenerator[Tabs]:
    """Opens tabs on the scene; the tests themselves check the errors of the pages."""
    tabs = Tabs(browser, scene.console)
    yield tabs
    for context, _ in tabs.open:
        await context.close()
