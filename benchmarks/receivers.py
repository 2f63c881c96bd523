"""A quick receiver of callbacks beside others that are slow, dead, silent, or have ten thousand waiting.

The service runs in this process with its stages; callbacks are appended as the stages append them. The
receivers are a process of their own. What is measured is the time from a callback's commit being asked
for to its arrival at the quick receiver, which answers after 5 ms.
"""

import argparse
import asyncio
import json
import signal
import socket
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import uvloop
from sqlalchemy import Connection

from benchmarks.processes import Child, folder, keep, machine
from waypost.admin import provisioning
from waypost.assembly.dev import demo
from waypost.assembly.service import Waypost
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.base.telemetry.logs import set_up_logs
from waypost.config import Settings
from waypost.domain.app import App
from waypost.domain.callbacks.subscription import Subscription
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.store.accounts.partners import add_app, add_partner
from waypost.store.callbacks.subscriptions import add_subscription

QUICK_S = 0.005
PER_S = 100
WAITING = 10_000
RECIPIENTS = 200


class Receivers:
    """Answers by the path: `/quick` after 5 ms, `/slow/<seconds>` after so long, `/refused` with 503."""

    def __init__(self) -> None:
        self.took_ms: list[float] = []
        self.tries: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = int(head.partition("content-length:")[2].split("\r\n")[0] or 0)
                body = await reader.readexactly(length)
                await self._answer(head.split()[1], body, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()

    async def _answer(self, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        if path == "/figures":
            told = json.dumps({"took_ms": self.took_ms, "tries": self.tries}).encode()
            self.took_ms = []
            self.tries.clear()
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(told) + told)
            writer.close()
            return
        kind, _, seconds = path.strip("/").partition("/")
        self.tries[kind] += 1
        if kind == "quick":
            self.took_ms.append(1000 * (time.monotonic() - json.loads(body)["at_s"]))
        await asyncio.sleep(QUICK_S if kind == "quick" else float(seconds or 0))
        status = b"503 No" if kind == "refused" else b"200 OK"
        writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")


async def receive(port: int) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    server = await asyncio.start_server(Receivers().serve, "127.0.0.1", port, backlog=2048)
    await stop.wait()
    server.close()


class Scene:
    """The service, its receivers, and a subscription for each app: an app is one receiver here."""

    def __init__(self, waypost: Waypost, receivers: Child, *, seconds: float) -> None:
        self._waypost = waypost
        self._receivers = receivers
        self._seconds = seconds
        self._ids = RandomIds(SystemClock())
        self._count = 0

    async def subscribe(self, url: str) -> App:
        """An app whose callbacks go there."""
        self._count += 1
        now_ms = SystemClock().now_ms()
        app = replace(
            demo.app(now_ms),
            id=self._ids.new(),
            name=f"receiver {self._count}",
            phone_number=str(15_550_000_000 + self._count),
            phone_number_id=str(10**15 + self._count),
        )
        await self._waypost.database.write(add_app, app, app.id)
        subscription = Subscription("", demo.PARTNER.id, app.id, "bench", url, 2, ("MESSAGE",), now_ms, now_ms)
        seal = self._waypost.directory.seal
        await self._waypost.database.write(add_subscription, subscription, seal, 5)
        return app

    def own(self, path: str) -> str:
        """An address of the receivers' process."""
        return f"http://127.0.0.1:{self._receivers.port}/{path}"

    async def tell(self, app: App, count: int, *, first: int = 0) -> None:
        """Something happens to so many recipients of an app, one each."""
        now_ms = SystemClock().now_ms()
        await self._waypost.database.write(_tell, self._ids, now_ms, app, count, first)

    async def steadily(self, app: App, *, per_s: float) -> None:
        """So many a second, one at a time, for as long as a measurement lasts."""
        began_s, nth = time.monotonic(), 0
        waits: list[asyncio.Task[None]] = []
        while (now_s := time.monotonic()) - began_s < self._seconds:
            while nth <= (now_s - began_s) * per_s:
                waits.append(asyncio.create_task(self.tell(app, 1, first=nth % RECIPIENTS)))
                nth += 1
            await asyncio.sleep(0.002)
        await asyncio.gather(*waits)

    async def measure(self, name: str, quick: App, beside: Sequence[App], *, per_s: float) -> dict[str, Any]:
        """The quick receiver's times while others are told too."""
        await asyncio.to_thread(self._receivers.get, "/figures")
        began_s, used_s = time.monotonic(), time.process_time()
        others = [asyncio.create_task(self.steadily(one, per_s=per_s)) for one in beside]
        await self.steadily(quick, per_s=PER_S)
        await asyncio.gather(*others)
        await asyncio.sleep(0.5)
        told = await asyncio.to_thread(self._receivers.get, "/figures")
        took = sorted(told["took_ms"])
        share = (time.process_time() - used_s) / (time.monotonic() - began_s)
        figures = {
            "name": name,
            "processor": round(share, 3),
            "callbacks": len(took),
            "p50_ms": round(statistics.median(took), 2),
            "p99_ms": round(took[len(took) * 99 // 100], 2),
            "max_ms": round(took[-1], 2),
            "tries_of_others": {kind: count for kind, count in told["tries"].items() if kind != "quick"},
        }
        print(
            f"  {name:<52} p50 {figures['p50_ms']:7.2f} ms   p99 {figures['p99_ms']:7.2f} ms   "
            f"max {figures['max_ms']:8.2f} ms   {share:4.0%} of a core; others' tries {figures['tries_of_others']}",
            flush=True,
        )
        return figures


def _tell(connection: Connection, ids: RandomIds, at_ms: int, app: App, count: int, first: int) -> None:
    telling = StateChangeRecorder(connection, ids, at_ms)
    body = json.dumps({"at_s": time.monotonic(), "text": "a" * 200}).encode()
    for nth in range(first, first + count):
        render: Callable[[int], bytes] = lambda _: body  # noqa: E731
        telling.emit_callback(app, mode="MESSAGE", about=str(nth), message_id=None, event_name="text", render=render)
    telling.write()


def silent() -> list[socket.socket]:
    """A port that takes no connection and refuses none: its queue is full. The last one listens."""
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(0)
    fill: list[socket.socket] = []
    for _ in range(4):
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(server.getsockname())
        fill.append(one)
    return [*fill, server]


async def main(options: argparse.Namespace) -> dict[str, Any]:
    """Measure, print, keep."""
    clock = SystemClock()
    set_up_logs(clock, as_json=False, level="error")
    hole = silent()
    with folder() as at:
        about = machine(at)
        receivers = Child("benchmarks.receivers", "--serve")
        settings = Settings(
            data=at, secret_key="benchmarks only, known to everybody", rates=False,
            allowed_networks=("127.0.0.0/8",), stop_within_s=0.1,
        )  # fmt: skip
        waypost = Waypost(settings, clock, RandomIds(clock))
        await waypost.open()
        try:
            receivers.wait_ready()
            await provisioning.put_operator_account(waypost.admin_context, demo.operator_account("http://127.0.0.1:9"))
            await waypost.database.write(add_partner, demo.PARTNER, "no password", 0)
            await provisioning.add_business_account(waypost.admin_context, demo.ACCOUNT)
            waypost.start()
            rows = await _rounds(Scene(waypost, receivers, seconds=options.seconds), hole[-1].getsockname()[1])
        finally:
            await waypost.drain()
            await waypost.close()
            receivers.end()
            for one in hole:
                one.close()
    result = {"benchmark": "receivers", "machine": about, "rounds": rows}
    print(f"kept in {keep('receivers', result)}")
    return result


async def _rounds(scene: Scene, hole: int) -> list[dict[str, Any]]:
    print(f"A receiver that answers in 5 ms, {PER_S} callbacks a second to it, from the commit to the receiver:")
    quick = await scene.subscribe(scene.own("quick"))
    await scene.measure("(first second, not counted)", quick, [], per_s=0)
    rows = [await scene.measure("alone", quick, [], per_s=0)]
    slow = await scene.subscribe(scene.own("slow/9"))
    rows.append(await scene.measure("beside one of 9 s", quick, [slow], per_s=20))
    refused = await scene.subscribe("http://127.0.0.1:9/")
    rows.append(await scene.measure("beside one whose connection is refused", quick, [refused], per_s=50))
    black = await scene.subscribe(f"http://127.0.0.1:{hole}/")
    rows.append(await scene.measure("beside one that takes no connection", quick, [black], per_s=50))
    many = [await scene.subscribe(scene.own("slow/9")) for _ in range(40)]
    rows.append(await scene.measure("beside forty of 9 s", quick, many, per_s=2))
    behind = await scene.subscribe(scene.own("refused"))
    await scene.tell(behind, WAITING)
    rows.append(await scene.measure(f"beside a dead one with {WAITING} recipients waiting", quick, [behind], per_s=10))
    backlog = await scene.subscribe(scene.own("slow/0.05"))
    await scene.tell(backlog, WAITING)
    rows.append(await scene.measure(f"beside a busy one with {WAITING} recipients waiting", quick, [backlog], per_s=10))
    rows.append(await scene.measure("alone with all of these still waiting", quick, [], per_s=0))
    return rows


def options_of(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command's options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=12, help="Of each round.")
    parser.add_argument("--serve", action="store_true", help="Be the receivers.")
    parser.add_argument("--port", type=int, default=0)
    return parser.parse_args(words)


if __name__ == "__main__":
    chosen = options_of()
    uvloop.run(receive(chosen.port) if chosen.serve else main(chosen))
