"""Thousands of stored messages and fifty changes a second: pages stay complete and small. `make soak` measures it."""

import asyncio
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser

from benchmarks.soak import Soak, fill_demonstration
from tests.console.conftest import LOOP, ConsoleClient, Tabs, close_console, open_console

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

STORED: Final = 3_000
BUSY_S: Final = 6
MAX_ROWS: Final = 450
MAX_ELEMENTS: Final = {"messages": 8_000, "trace": 1_500, "overview": 2_500}


@pytest_asyncio.fixture(loop_scope=LOOP)
async def busy_console(tmp_path: Path) -> AsyncGenerator[ConsoleClient]:
    """A console with thousands of stored messages."""
    await close_console(await open_console(tmp_path))
    await asyncio.to_thread(fill_demonstration, tmp_path / "data", STORED)
    console = await open_console(tmp_path, changes={"rates": False})
    yield console
    await close_console(console)


async def test_open_pages_stay_bounded_while_fifty_states_change_a_second(
    browser: Browser, busy_console: ConsoleClient
) -> None:
    running = busy_console.running
    soak = Soak(running.base_url, running.graph_url, stored=STORED, changes_per_s=50)
    tabs = Tabs(browser, busy_console)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        await soak.prepare(http)
        sending = asyncio.create_task(soak.send(http, time.monotonic() + BUSY_S))
        await asyncio.sleep(0.5)
        base = f"/apps/{busy_console.app_id}"
        pages = {
            "messages": await tabs(f"{base}/messages"),
            "trace": await tabs(f"{base}/messages/{soak.sent[0]}"),
            "overview": await tabs(base),
        }
        await sending

    newest = pages["messages"].page.locator(f"#m-{soak.sent[-1]}")
    await newest.get_by_text("read", exact=True).wait_for()
    await pages["trace"].page.locator("#summary").get_by_text("read", exact=True).wait_for()
    rows = await pages["messages"].page.locator("#rows > div").count()
    assert 50 <= rows <= MAX_ROWS
    assert soak.failed == 0
    for name, tab in pages.items():
        elements = await tab.page.evaluate("() => document.querySelectorAll('*').length")
        assert elements <= MAX_ELEMENTS[name], name
        assert tab.errors == []
        assert tab.external_requests == []
    for context, _ in tabs.open:
        await context.close()
