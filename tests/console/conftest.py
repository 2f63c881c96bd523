"""The console in a real browser, and as a script asks for it, over `waypost dev` in this process."""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, Playwright, async_playwright, expect

from tests.support.waiting import HANGS_AFTER_S
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
"""The same browser without its own windows, which cost a third of the processor's time."""
CHROMIUM: Final = os.environ.get("WAYPOST_CHROMIUM") or shutil.which(HEADLESS) or "/usr/bin/chromium"
LOOP: Final = "session"


@dataclass
class Desk:
    """`waypost dev`, and its doors as scripts use them; `http` is signed in to the console."""

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
        """The simulator's control door."""
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
        """A page of the console as text."""
        async with self.http.get(self.base_url + path, **options) as answer:
            text = await answer.text()
            assert answer.status == status, (path, answer.status, text[:2000])
            return text

    async def post(
        self, path: str, fields: Mapping[str, str] | None = None, *, status: int = 303
    ) -> aiohttp.ClientResponse:
        """An act of the console, with the token of the session, and not followed."""
        body = {"csrf": await self.csrf(), **(fields or {})}
        async with self.http.post(self.base_url + path, data=body, allow_redirects=False) as answer:
            text = await answer.text()
            assert answer.status == status, (path, answer.status, text[:2000])
            return answer

    async def reveal(self, path: str, fields: Mapping[str, str] | None = None) -> str:
        """What an act of the console shows on a page that stays."""
        body = {"csrf": await self.csrf(), **(fields or {})}
        quiet = {"X-Waypost-Quiet": "1"}
        async with self.http.post(self.base_url + path, data=body, headers=quiet) as answer:
            text = await answer.text()
            assert answer.status == 200, (path, answer.status, text[:2000])
            return text

    async def csrf(self) -> str:
        """The token that the console's pages carry."""
        page = await self.get("/settings")
        return page.partition('data-csrf="')[2].partition('"')[0]

    async def send_text(self, text: str, *, to: str = demo.DESTINATION) -> str:
        """Send a session text; gives our id of it."""
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
    """A page of the browser that is signed in, and what went wrong in it."""

    page: Page
    desk: Desk
    wrong: list[str] = field(default_factory=list[str])
    elsewhere: list[str] = field(default_factory=list[str])

    async def go(self, path: str) -> Page:
        """Open one of the console's pages, and wait until its modules have run."""
        await self.page.goto(self.desk.base_url + path, wait_until="load")
        return self.page

    def listen(self) -> None:
        """Note errors of the console and requests that leave the machine."""
        own = (self.desk.base_url, "blob:", "data:")
        self.page.on("console", lambda said: self.wrong.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda asked: None if asked.url.startswith(own) else self.elsewhere.append(asked.url))


@dataclass
class Tabs:
    """Opens tabs; each in a context of its own, so that cookies are apart."""

    browser: Browser
    desk: Desk
    open: list[tuple[BrowserContext, Tab]] = field(default_factory=list[tuple[BrowserContext, Tab]])

    async def __call__(
        self, path: str = "/", *, width: int = 1440, height: int = 900,
        theme: Any = "light", signed_in: bool = True,
    ) -> Tab:  # fmt: skip
        context = await self.browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme,
            permissions=["clipboard-read", "clipboard-write"],
        )  # fmt: skip
        if signed_in:
            cookie = next(c for c in self.desk.http.cookie_jar if c.key == "waypost_session")
            await context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": self.desk.base_url}])
        tab = Tab(await context.new_page(), self.desk)
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
    """Chromium, once for each worker of the suite."""
    if not shutil.which(CHROMIUM):
        if os.environ.get("CI") == "true":
            pytest.fail(f"there is no browser at {CHROMIUM}; .ci/run installs Debian's chromium-headless-shell")
        pytest.skip(
            f"there is no browser at {CHROMIUM}; install Debian's chromium-headless-shell, or set WAYPOST_CHROMIUM"
        )
    expect.set_options(timeout=HANGS_AFTER_S * 1000)
    browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
    yield browser
    await browser.close()


async def open_desk(
    folder: Path,
    *,
    begun: Path | None = None,
    changes: Mapping[str, Any] | None = None,
    clock: VirtualClock | None = None,
    **options: Any,
) -> Desk:
    """`waypost dev` on a folder, with a script that is signed in.

    Args:
        folder: where it keeps what it knows.
        begun: what it finds there; None: nothing, and it makes the demonstration itself.
        changes: of its settings.
        clock: both sides'; None: the machine's.
        options: of `waypost dev`.
    """
    if begun is not None:
        shutil.copytree(begun, folder / "data")
    set_up_logs(SystemClock(), as_json=False, level="error")  # defects are shown
    settings = Settings(data=folder / "data", port=0, log_level="error", **(changes or {}))
    dev = DevServer(DevOptions(settings, simulator_port=0, env_file=folder / "dev.env", **options), clock)
    try:
        running = await dev.open()
    except BaseException:
        await dev.close()
        raise
    http = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))
    async with http.post(running.base_url + "/enter", allow_redirects=False) as answer:
        assert answer.status == 303
    return Desk(dev, running, http, folder / "data")


@pytest_asyncio.fixture(loop_scope=LOOP, scope="session")
async def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the demonstration and nothing else, to be copied.

    Making one takes a fifth of a second of the processor's, six times as long as going on from a copy.
    """
    folder = tmp_path_factory.mktemp("begun")
    settings = Settings(data=folder, log_level="error", admin_token=demo.ADMIN_TOKEN)
    settings = settings.model_copy(update={"secret_key": read_or_create_instance_key(settings)})
    clock = VirtualClock()
    dev = DevServer(DevOptions(settings))  # is not opened: nobody asks for a snapshot
    pair = ServiceAndSimulator(
        settings, SimulatorSettings(path=folder / "simulator.db"), clock, RandomIds(clock),
        travel=TimeTravel(clock), snapshots=dev, control=HttpTransport("http://127.0.0.1:9"),
    )  # fmt: skip
    await pair.open(BaseUrls("http://127.0.0.1:9", "http://127.0.0.1:9"))
    assert pair.is_new
    await pair.close()
    return folder


async def close_desk(desk: Desk) -> None:
    await desk.http.close()
    await desk.dev.close()


@pytest_asyncio.fixture(loop_scope=LOOP)
async def desk(tmp_path: Path, begun: Path) -> AsyncGenerator[Desk]:
    desk = await open_desk(tmp_path, begun=begun)
    yield desk
    await close_desk(desk)


@pytest_asyncio.fixture(loop_scope=LOOP, scope="session")
async def shared_desk(tmp_path_factory: pytest.TempPathFactory, begun: Path) -> AsyncGenerator[Desk]:
    """The same, once for each worker of the suite: for tests that mind nothing that others leave behind."""
    desk = await open_desk(tmp_path_factory.mktemp("desk"), begun=begun)
    yield desk
    await close_desk(desk)


@pytest_asyncio.fixture(loop_scope=LOOP)
async def tabs(browser: Browser, desk: Desk) -> AsyncGenerator[Tabs]:
    """Opens tabs; when the test ends, none may have had an error or asked for anything elsewhere."""
    tabs = Tabs(browser, desk)
    yield tabs
    for context, tab in tabs.open:
        await context.close()
        assert tab.wrong == []
        assert tab.elsewhere == []
    await asyncio.sleep(0)


@pytest_asyncio.fixture(loop_scope=LOOP, scope="session")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator["Scene"]:
    """A lively demonstration, once for each worker of the suite: tests look at it, and change nothing."""
    from tests.console.support import story  # here, because it is told by what stands above
    from tests.console.support.scene import open_scene

    async with open_scene(tmp_path_factory.mktemp("scene"), story.tell) as scene:
        yield scene


@pytest_asyncio.fixture(loop_scope=LOOP)
async def scene_tabs(browser: Browser, scene: "Scene") -> AsyncGenerator[Tabs]:
    """Opens tabs on the scene; the tests look themselves at what went wrong in them."""
    tabs = Tabs(browser, scene.desk)
    yield tabs
    for context, _ in tabs.open:
        await context.close()
