"""A fast receiver of callbacks beside others that are slow, unreachable, or have ten thousand callbacks queued.

The service runs in this process with its stages; callbacks are enqueued as the stages do it. The
receivers are a separate process. The measured time is from the request to commit a callback until it
reaches the fast receiver, which responds after 5 ms.
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

from benchmarks.processes import Child, describe_machine, temporary_folder, write_result
from waypost.admin import provisioning
from waypost.assembly.dev import demo
from waypost.assembly.service import Waypost
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.base.telemetry.logs import set_up_logs
from waypost.config import Settings
from waypost.domain.app import App
from waypost.domain.callbacks import Subscription
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.store.accounts.partners import add_app, add_partner
from waypost.store.callbacks.subscriptions import add_subscription

QUICK_S = 0.005
PER_S = 100
WAITING = 10_000
RECIPIENTS = 200


class ReceiverServer:
    """Responds by path: `/quick` after 5 ms, `/slow/<seconds>` after that time, `/refused` with 503."""

    def __init__(self) -> None:
        self.took_ms: list[float] = []
        self.attempts: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = int(head.partition("content-length:")[2].split("\r\n")[0] or 0)
                body = await reader.readexactly(length)
                await self._respond(head.split()[1], body, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()

    async def _respond(self, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        if path == "/statistics":
            counts = json.dumps({"took_ms": self.took_ms, "tries": self.attempts}).encode()
            self.took_ms = []
            self.attempts.clear()
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(counts) + counts)
            writer.close()
            return
        kind, _, seconds = path.strip("/").partition("/")
        self.attempts[kind] += 1
        if kind == "quick":
            self.took_ms.append(1000 * (time.monotonic() - json.loads(body)["at_s"]))
        await asyncio.sleep(QUICK_S if kind == "quick" else float(seconds or 0))
        status = b"503 No" if kind == "refused" else b"200 OK"
        writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")


async def receive(port: int) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    server = await asyncio.start_server(ReceiverServer().serve, "127.0.0.1", port, backlog=2048)
    await stop.wait()
    server.close()


class ReceiverScenario:
    """The service, its receivers, and a subscription for each app: here an app stands for one receiver."""

    def __init__(self, waypost: Waypost, receivers: Child, *, seconds: float) -> None:
        self._waypost = waypost
        self._receivers = receivers
        self._seconds = seconds
        self._ids = RandomIds(SystemClock())
        self._count = 0

    async def subscribe(self, url: str) -> App:
        """Create an app whose callbacks are sent to the URL."""
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

    def receiver_url(self, path: str) -> str:
        """Return a URL of the receivers' process."""
        return f"http://127.0.0.1:{self._receivers.port}/{path}"

    async def enqueue_callbacks(self, app: App, count: int, *, first: int = 0) -> None:
        """Enqueue one callback for each of `count` recipients of an app."""
        now_ms = SystemClock().now_ms()
        await self._waypost.database.write(_enqueue, self._ids, now_ms, app, count, first)

    async def enqueue_steadily(self, app: App, *, per_s: float) -> None:
        """Enqueue callbacks one at a time, at a rate, for the length of a measurement."""
        began_s, nth = time.monotonic(), 0
        tasks: list[asyncio.Task[None]] = []
        while (now_s := time.monotonic()) - began_s < self._seconds:
            while nth <= (now_s - began_s) * per_s:
                tasks.append(asyncio.create_task(self.enqueue_callbacks(app, 1, first=nth % RECIPIENTS)))
                nth += 1
            await asyncio.sleep(0.002)
        await asyncio.gather(*tasks)

    async def measure(self, name: str, quick: App, other_apps: Sequence[App], *, per_s: float) -> dict[str, Any]:
        """Measure the fast receiver's times while callbacks are sent to others too."""
        await asyncio.to_thread(self._receivers.get, "/statistics")
        began_s, used_s = time.monotonic(), time.process_time()
        others = [asyncio.create_task(self.enqueue_steadily(app, per_s=per_s)) for app in other_apps]
        await self.enqueue_steadily(quick, per_s=PER_S)
        await asyncio.gather(*others)
        await asyncio.sleep(0.5)
        counts = await asyncio.to_thread(self._receivers.get, "/statistics")
        took_ms = sorted(counts["took_ms"])
        share = (time.process_time() - used_s) / (time.monotonic() - began_s)
        measurements = {
            "name": name,
            "processor": round(share, 3),
            "callbacks": len(took_ms),
            "p50_ms": round(statistics.median(took_ms), 2),
            "p99_ms": round(took_ms[len(took_ms) * 99 // 100], 2),
            "max_ms": round(took_ms[-1], 2),
            "tries_of_others": {kind: count for kind, count in counts["tries"].items() if kind != "quick"},
        }
        print(
            f"  {name:<52} p50 {measurements['p50_ms']:7.2f} ms   p99 {measurements['p99_ms']:7.2f} ms   "
            f"max {measurements['max_ms']:8.2f} ms   {share:4.0%} of a core; others' attempts {measurements['tries_of_others']}",
            flush=True,
        )
        return measurements


def _enqueue(connection: Connection, ids: RandomIds, at_ms: int, app: App, count: int, first: int) -> None:
    recorder = StateChangeRecorder(connection, ids, at_ms)
    body = json.dumps({"at_s": time.monotonic(), "text": "a" * 200}).encode()
    for nth in range(first, first + count):
        render: Callable[[int], bytes] = lambda _: body  # noqa: E731
        recorder.emit_callback(app, mode="MESSAGE", subject=str(nth), message_id=None, event_name="text", render=render)
    recorder.write()


def open_unresponsive_port() -> list[socket.socket]:
    """Return sockets of a port that neither accepts nor refuses connections, because its queue is full; the listener last."""
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(0)
    clients: list[socket.socket] = []
    for _ in range(4):
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(server.getsockname())
        clients.append(client)
    return [*clients, server]


async def main(options: argparse.Namespace) -> dict[str, Any]:
    """Measure, print, and write the result."""
    clock = SystemClock()
    set_up_logs(clock, as_json=False, level="error")
    unresponsive = open_unresponsive_port()
    with temporary_folder() as at:
        machine = describe_machine(at)
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
            rows = await _rounds(
                ReceiverScenario(waypost, receivers, seconds=options.seconds), unresponsive[-1].getsockname()[1]
            )
        finally:
            await waypost.drain()
            await waypost.close()
            receivers.end()
            for sock in unresponsive:
                sock.close()
    result = {"benchmark": "receivers", "machine": machine, "rounds": rows}
    print(f"written to {write_result('receivers', result)}")
    return result


async def _rounds(scenario: ReceiverScenario, unresponsive: int) -> list[dict[str, Any]]:
    print(f"Time from the commit to a receiver that responds in 5 ms, {PER_S} callbacks a second:")
    quick = await scenario.subscribe(scenario.receiver_url("quick"))
    await scenario.measure("(first second, not counted)", quick, [], per_s=0)
    rows = [await scenario.measure("alone", quick, [], per_s=0)]
    slow = await scenario.subscribe(scenario.receiver_url("slow/9"))
    rows.append(await scenario.measure("beside one of 9 s", quick, [slow], per_s=20))
    refused_app = await scenario.subscribe("http://127.0.0.1:9/")
    rows.append(await scenario.measure("beside one whose connection is refused", quick, [refused_app], per_s=50))
    unresponsive_app = await scenario.subscribe(f"http://127.0.0.1:{unresponsive}/")
    rows.append(await scenario.measure("beside one that accepts no connection", quick, [unresponsive_app], per_s=50))
    many = [await scenario.subscribe(scenario.receiver_url("slow/9")) for _ in range(40)]
    rows.append(await scenario.measure("beside forty of 9 s", quick, many, per_s=2))
    failing = await scenario.subscribe(scenario.receiver_url("refused"))
    await scenario.enqueue_callbacks(failing, WAITING)
    rows.append(
        await scenario.measure(f"beside a failing one with {WAITING} recipients queued", quick, [failing], per_s=10)
    )
    backlog = await scenario.subscribe(scenario.receiver_url("slow/0.05"))
    await scenario.enqueue_callbacks(backlog, WAITING)
    rows.append(
        await scenario.measure(f"beside a busy one with {WAITING} recipients queued", quick, [backlog], per_s=10)
    )
    rows.append(await scenario.measure("alone with all of these still queued", quick, [], per_s=0))
    return rows


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the command's options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=12, help="Length of each round.")
    parser.add_argument("--serve", action="store_true", help="Run the receivers only.")
    parser.add_argument("--port", type=int, default=0)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    options = parse_options()
    uvloop.run(receive(options.port) if options.serve else main(options))
