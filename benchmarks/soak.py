"""A soak test of the console: many messages stored, fifty changes a second, three pages open in a browser.

`make soak` fills `waypost dev` with 200,000 messages, sends templates over the whole pipeline to a fleet of phones
for MINUTES=10, and prints the response times of lists, searches and traces at the server, the first paint, the
longest gap between two frames, and the browser's heap after a forced collection at minute 2 and at the end.
"""

import argparse
import asyncio
import itertools
import json
import shutil
import signal
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from playwright.async_api import BrowserContext, Page, async_playwright
from sqlalchemy import create_engine, text

from benchmarks.bulk_fill import fill_store, numbers_per_app
from benchmarks.measurements import Measurement, format_table, measurements_as_json
from benchmarks.processes import LOCAL, Child, describe_machine, free_port, write_result
from waypost.assembly.dev import demo
from waypost.assembly.dev.dev import DevOptions, DevServer
from waypost.config import Settings

CHANGES = 4
"""Changes of one message: enqueued, sent, delivered, read."""
PHONES = 5_000
FIRST_PHONE = 15_551_000_000
REQUESTS = 15
MAX_HEAP_RATIO = 1.2  # Source: decision 0057
SERVER_AIM_MS = 100
PAINT_AIM_MS = 200
WATCH_SCRIPT = """
(() => {
  const seen = { gap: 0, tasks: 0, longest: 0, from: performance.now() };
  window.soak = seen;
  let last = performance.now();
  const step = (now) => { if (now - seen.from > 2000) seen.gap = Math.max(seen.gap, now - last); last = now; requestAnimationFrame(step); };
  requestAnimationFrame(step);
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) { seen.tasks += 1; seen.longest = Math.max(seen.longest, one.duration); }
  }).observe({ type: "longtask", buffered: true });
})();
"""


@dataclass
class Tab:
    """A page that stays open.

    Attributes:
        heap: bytes in use after a forced collection, by time of the reading.
        activity_s: seconds of its main thread by activity, by time of the reading.
    """

    name: str
    page: Page
    cdp: Any
    heap: dict[str, float] = field(default_factory=dict[str, float])
    activity_s: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    errors: list[str] = field(default_factory=list[str])

    async def collect(self, when: str) -> None:
        """Force a garbage collection; record the heap in use and the time by activity."""
        metrics = (await self.cdp.send("Performance.getMetrics"))["metrics"]
        self.activity_s[when] = {metric["name"]: metric["value"] for metric in metrics}
        for _ in range(2):
            await self.cdp.send("HeapProfiler.collectGarbage")
        self.heap[when] = (await self.cdp.send("Runtime.getHeapUsage"))["usedSize"]

    def describe_activity(self) -> str:
        """Return the shares of its main thread by activity between the two readings."""
        early, late = self.activity_s["early"], self.activity_s["late"]
        wall_s = late["Timestamp"] - early["Timestamp"]
        labels = {
            "TaskDuration": "busy",
            "ScriptDuration": "script",
            "RecalcStyleDuration": "style",
            "LayoutDuration": "layout",
        }
        return ", ".join(f"{label} {100 * (late[name] - early[name]) / wall_s:.0f} %" for name, label in labels.items())


async def serve(options: argparse.Namespace) -> None:
    """Run `waypost dev` until a signal."""
    settings = Settings(data=Path(options.serve), port=options.port, rates=False, log_level="error")
    env_file = Path(options.serve) / "dev.env"
    dev = DevServer(DevOptions(settings, simulator_port=options.simulator_port, env_file=env_file))
    stopped = asyncio.Event()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signal_number, stopped.set)
    await dev.open()
    try:
        await stopped.wait()
    finally:
        await dev.close()


def fill_demonstration(data: Path, count: int) -> float:
    """Insert messages of the demonstration's app, as of years; return the seconds.

    Its own first recipient is deleted, because its id is needed; the next start creates it again.
    """
    engine = create_engine(f"sqlite:///{Settings(data=data).store_path}")
    with engine.connect() as connection:
        connection.execute(text("DELETE FROM recipients"))
        connection.commit()
        took_s = fill_store(
            connection, [(demo.APP_ID, demo.SOURCE)],
            partner_id=demo.PARTNER.id, count=count, now_ms=time.time_ns() // 1_000_000 - 60_000,
        )  # fmt: skip
    engine.dispose()
    return took_s


class Soak:
    """One run.

    Args:
        base_url: URL of the service.
        control_url: URL of the simulator.
        stored: number of messages stored before.
        changes_per_s: state changes a second.
    """

    def __init__(self, base_url: str, control_url: str, *, stored: int, changes_per_s: float) -> None:
        self.base_url = base_url
        self.control_url = control_url
        self.stored = stored
        self.per_s = changes_per_s / CHANGES
        self.sent: list[str] = []
        self.failed = 0
        self._messages = f"{base_url}/apps/{demo.APP_ID}/messages"

    async def prepare(self, http: aiohttp.ClientSession) -> None:
        """Sign in, and create a fleet of phones that read their messages."""
        async with http.post(self.base_url + "/enter", allow_redirects=False) as response:
            assert response.status == 303, response.status
        fleet = {
            "name": "soak", "first": str(FIRST_PHONE), "count": PHONES, "deliver_after_ms": 200,
            "read_after_ms": 400, "open_window_to": demo.SOURCE,
        }  # fmt: skip
        async with http.post(f"{self.control_url}/control/fleets", json=fleet) as response:
            assert response.status == 200, await response.text()

    async def send(self, http: aiohttp.ClientSession, deadline_s: float) -> None:
        """Send at a steady rate until the end."""
        sending: set[asyncio.Task[None]] = set()
        began_s = time.monotonic()
        for nth in itertools.count():
            due_s = began_s + nth / self.per_s
            if due_s >= deadline_s:
                break
            await asyncio.sleep(max(0, due_s - time.monotonic()))
            task = asyncio.create_task(self._send_one(http, nth))
            sending.add(task)
            task.add_done_callback(sending.discard)
        await asyncio.gather(*sending)

    async def _send_one(self, http: aiohttp.ClientSession, nth: int) -> None:
        form = {
            "channel": "whatsapp", "source": demo.SOURCE, "src.name": demo.APP_NAME,
            "destination": str(FIRST_PHONE + nth % PHONES),
            "template": json.dumps({"id": demo.TEMPLATE_ID, "params": ["Ann", str(nth)]}),
        }  # fmt: skip
        headers = {"apikey": demo.API_KEY}
        async with http.post(f"{self.base_url}/wa/api/v1/template/msg", data=form, headers=headers) as response:
            if response.status == 200:
                self.sent.append((await response.json())["messageId"])
            else:
                self.failed += 1

    async def server_ms(self, http: aiohttp.ClientSession) -> dict[str, tuple[float, float]]:
        """Return the median and the slowest response time of each page, in milliseconds."""
        numbers = numbers_per_app(1, self.stored)
        number = 15_560_000_000 + numbers // 2
        newest = self.sent[-1]
        pages = {
            "list": self._messages,
            "search of a number": f"{self._messages}?q={number}",
            "search of four digits": f"{self._messages}?q={str(number)[-4:]}",
            "filter with few matches": f"{self._messages}?state=failed",
            "trace": f"{self._messages}/{newest}",
            "overview": f"{self.base_url}/apps/{demo.APP_ID}",
        }
        return {name: await _took_ms(http, url) for name, url in pages.items()}

    async def open(self, context: BrowserContext) -> list[Tab]:
        """Open the three pages."""
        pages = {
            "overview": f"{self.base_url}/apps/{demo.APP_ID}",
            "trace": f"{self._messages}/{self.sent[-1]}",
            "messages": self._messages,  # last: a page in the background draws one frame a second
        }
        return [await _tab(context, name, url) for name, url in pages.items()]

    async def first_paint_ms(self, context: BrowserContext) -> float:
        """Return the median first paint of the messages page, opened several times during the load."""
        took_ms: list[float] = []
        for _ in range(7):
            page = await context.new_page()
            await page.goto(self._messages, wait_until="load")
            took_ms.append(
                await page.evaluate(
                    "() => new Promise((done) => new PerformanceObserver((list) => done(list.getEntriesByName("
                    "'first-contentful-paint')[0]?.startTime ?? 0)).observe({ type: 'paint', buffered: true }))"
                )
            )
            await page.close()
        return statistics.median(took_ms)


async def _took_ms(http: aiohttp.ClientSession, url: str) -> tuple[float, float]:
    took_ms: list[float] = []
    for _ in range(REQUESTS):
        began_s = time.perf_counter()
        async with http.get(url) as response:
            await response.read()
            assert response.status == 200, (url, response.status)
        took_ms.append(1000 * (time.perf_counter() - began_s))
    return statistics.median(took_ms), max(took_ms)


async def _tab(context: BrowserContext, name: str, url: str) -> Tab:
    page = await context.new_page()
    cdp: Any = await context.new_cdp_session(page)
    await cdp.send("HeapProfiler.enable")
    await cdp.send("Performance.enable")
    tab = Tab(name, page, cdp)
    page.on("pageerror", lambda error: tab.errors.append(str(error)))
    page.on("console", lambda label: tab.errors.append(label.text) if label.type == "error" else None)
    await page.add_init_script(WATCH_SCRIPT)
    await page.goto(url, wait_until="load")
    return tab


async def run(options: argparse.Namespace, data: Path) -> tuple[list[Measurement], dict[str, Any]]:
    """Fill the store, start the service, send and measure."""
    port, simulator_port = free_port(), free_port()
    arguments = ("--serve", str(data), "--simulator-port", str(simulator_port))
    first = Child("benchmarks.soak", *arguments, port=port)
    first.wait_responding()
    first.end()
    took_s = await asyncio.to_thread(fill_demonstration, data, options.stored)
    _print_line(f"{options.stored:,} messages stored in {took_s:.0f} s")
    child = Child("benchmarks.soak", *arguments, port=port)
    try:
        await asyncio.to_thread(child.wait_responding)
        soak = Soak(
            f"http://127.0.0.1:{port}", f"http://127.0.0.1:{simulator_port}",
            stored=options.stored, changes_per_s=options.changes,
        )  # fmt: skip
        return await _run_soak(soak, child, options)
    finally:
        child.end()


async def _run_soak(soak: Soak, child: Child, options: argparse.Namespace) -> tuple[list[Measurement], dict[str, Any]]:
    length_s = options.minutes * 60
    early_s = min(120, length_s / 5)
    async with (
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http,
        async_playwright() as playwright,
    ):
        await soak.prepare(http)
        began_s = time.monotonic()
        sending = asyncio.create_task(soak.send(http, began_s + length_s))
        await asyncio.sleep(1)
        browser = await playwright.chromium.launch(
            executable_path=options.browser, args=["--no-sandbox", "--disable-gpu"]
        )
        context = await browser.new_context(viewport={"width": 1440, "height": 900})
        cookie = next(cookie for cookie in http.cookie_jar if cookie.key == "waypost_session")
        await context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": soak.base_url}])
        tabs = await soak.open(context)
        rss: dict[str, float] = {}
        await _sleep_until(began_s + early_s)
        server = await soak.server_ms(http)
        paint_ms = await soak.first_paint_ms(context)
        await _collect(tabs, "early")
        rss["early"] = child.rss_mb()
        _print_line(f"at {early_s:.0f} s: " + ", ".join(f"{tab.name} {tab.heap['early'] / 1e6:.1f} MB" for tab in tabs))
        await _sleep_until(began_s + length_s)
        await sending
        await asyncio.sleep(2)
        await _collect(tabs, "late")
        rss["late"] = child.rss_mb()
        page_stats = {tab.name: await tab.page.evaluate("() => window.soak") for tab in tabs}
        rows = await tabs[-1].page.evaluate("() => document.querySelectorAll('#rows > li').length")
        nodes = {tab.name: await tab.page.evaluate("() => document.querySelectorAll('*').length") for tab in tabs}
        await browser.close()
    measurements = [
        Measurement("S", "sqlite", f"{name}, at the server, median", took_ms[0], "ms", aim=SERVER_AIM_MS, lower_is_better=True, note=f"slowest {took_ms[1]:.0f} ms")
        for name, took_ms in server.items()
    ]  # fmt: skip
    measurements.append(
        Measurement(
            "S", "sqlite", "first paint of the messages", paint_ms, "ms", aim=PAINT_AIM_MS, lower_is_better=True
        )
    )
    for tab in tabs:
        ratio = tab.heap["late"] / tab.heap["early"]
        measurements += [
            Measurement("S", "sqlite", f"{tab.name}: heap at the end / early", ratio, "x", MAX_HEAP_RATIO, lower_is_better=True, is_ratio=True,
                   note=f"{tab.heap['early'] / 1e6:.1f} to {tab.heap['late'] / 1e6:.1f} MB, {nodes[tab.name]:,} elements"),
            Measurement("S", "sqlite", f"{tab.name}: longest task", page_stats[tab.name]["longest"], "ms", lower_is_better=True,
                   note=f"{page_stats[tab.name]['tasks']} of 50 ms and more; {tab.describe_activity()}"),
        ]  # fmt: skip
    gap_ms = page_stats[tabs[-1].name]["gap"]
    measurements.append(
        Measurement("S", "sqlite", "messages: longest gap between frames", gap_ms, "ms", lower_is_better=True)
    )
    changed_per_s = CHANGES * len(soak.sent) / length_s
    measurements += [
        Measurement("S", "sqlite", "changes a second", changed_per_s, "/s", note=f"{len(soak.sent):,} messages, {soak.failed} rejected"),
        Measurement("S", "sqlite", "rows on the messages page", rows, ""),
        Measurement("S", "sqlite", "memory of service and simulator", rss["late"], "MB", note=f"{rss['early']:.0f} MB early"),
    ]  # fmt: skip
    errors = {tab.name: tab.errors for tab in tabs if tab.errors}
    return measurements, {"server_ms": server, "seen": page_stats, "rss_mb": rss, "errors": errors}


async def _collect(tabs: list[Tab], when: str) -> None:
    for tab in tabs:
        await tab.collect(when)


async def _sleep_until(at_s: float) -> None:
    await asyncio.sleep(max(0, at_s - time.monotonic()))


def _print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Run the test, print and write the results; exit with 1 if the heap grew too far or a page had an error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--stored", type=int, default=200_000)
    parser.add_argument("--changes", type=float, default=50, help="a second")
    parser.add_argument("--browser", default=shutil.which("chromium") or "/usr/bin/chromium")
    parser.add_argument("--serve", default="")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--simulator-port", type=int, default=0)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options))
        return
    LOCAL.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="soak-", dir=LOCAL, ignore_cleanup_errors=True) as at:
        machine = describe_machine(Path(at))
        measurements, raw = asyncio.run(run(options, Path(at) / "data"))
    _print_line(format_table(measurements))
    if raw["errors"]:
        _print_line(f"errors of the pages: {raw['errors']}")
    path = write_result("soak", {"machine": machine, "figures": measurements_as_json(measurements), "raw": raw})
    _print_line(f"written to {path.name}")
    missed = any(measurement.verdict == "MISSED" for measurement in measurements)
    sys.exit(1 if missed or raw["errors"] else 0)


if __name__ == "__main__":
    main()
