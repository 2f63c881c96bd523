"""Fairness: how long a healthy source waits for a slot while others are slow, hang, or have much queued.

The wait is the time from the commit of a message until the operator has its request. The operator is a server
of its own, which responds to each source after the source's own time.
"""

import argparse
import asyncio
import itertools
import json
import signal
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import uvloop
from sqlalchemy import Connection

from benchmarks.processes import Child, describe_machine, temporary_folder, write_result
from benchmarks.stores import Store, open_stores
from waypost.admin import provisioning
from waypost.admin.apps import NewApp, add_app
from waypost.assembly.dev import demo
from waypost.assembly.service import Waypost
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.base.telemetry.logs import set_up_logs
from waypost.config import Settings
from waypost.domain.app import BusinessAccount
from waypost.domain.callbacks import Subscription
from waypost.domain.message import Message
from waypost.domain.session_messages.plain import SessionText
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.store.accounts.partners import add_partner, app_by_id
from waypost.store.callbacks.subscriptions import add_subscription
from waypost.store.messages.messages import record_messages

HEALTHY_MS: Final = 50
HANG_MS: Final = 900_000
SETTLE_S: Final = 3
BATCH: Final = 500
MAX_WAIT_MS: Final = 1000
"""What is promised of the longest wait."""


@dataclass(frozen=True, slots=True)
class FairnessCase:
    """One case: who else is there besides the healthy source.

    Attributes:
        accounts: number of other operator accounts.
        sources: number of sources of each.
        responds_ms: after how long the operator responds to them.
        queued: messages that each of their sources has queued.
        same_account: the sources belong to the healthy source's own operator account.
        turns: the operator responds quickly to them at first, and turns slow once all are busy.
        receivers: number of callback receivers that respond after `responds_ms`, each with `queued` callbacks.
        per_second: throughput of each of the other sources.
    """

    accounts: int = 0
    sources: int = 1
    responds_ms: int = HEALTHY_MS
    queued: int = 3000
    same_account: bool = False
    turns: bool = False
    receivers: int = 0
    per_second: int = 80


# fmt: off
CASES: Final = {
    "alone":                                                 FairnessCase(),
    "1 account at 16 s":                                     FairnessCase(1, responds_ms=16_000),
    "2 accounts at 16 s":                                    FairnessCase(2, responds_ms=16_000),
    "10 accounts at 16 s":                                   FairnessCase(10, responds_ms=16_000, queued=1000),
    "40 accounts at 16 s":                                   FairnessCase(40, responds_ms=16_000, queued=200),
    "2 accounts at 1.5 s":                                   FairnessCase(2, responds_ms=1_500),
    "2 accounts that hang until the timeout":                FairnessCase(2, responds_ms=HANG_MS),
    "1 account of 50 sources at 16 s":                       FairnessCase(1, sources=50, responds_ms=16_000, queued=200),
    "2 busy accounts that turn to 16 s at once":             FairnessCase(2, sources=4, responds_ms=16_000, queued=8000, turns=True, per_second=1000),
    "10 busy accounts that turn to 16 s at once":            FairnessCase(10, responds_ms=16_000, queued=6000, turns=True, per_second=1000),
    "a slow source of its own account at 16 s":              FairnessCase(1, responds_ms=16_000, same_account=True),
    "5 slow sources of its own account at 16 s":             FairnessCase(1, sources=5, responds_ms=16_000, same_account=True),
    "one partner with 30,000 queued":                        FairnessCase(1, queued=30_000),
    "one partner with 30,000 queued by 10 sources":          FairnessCase(1, sources=10, queued=3_000, per_second=1000),
    "40 callback receivers at 9 s with 250 callbacks each":  FairnessCase(receivers=40, responds_ms=9_000, queued=250),
}
# fmt: on


class OperatorServer:
    """An operator, and a receiver of callbacks: the path says after how long it responds.

    A number's id begins with 1 and the time in ms, in six digits, or with 2 if that begins with `/turn`.

    Attributes:
        received_s: when each message was received first, by its text.
        calls: number of messages without a response.
    """

    def __init__(self) -> None:
        self.received_s: dict[str, float] = {}
        self.calls = 0
        self._is_turned = False
        self._numbers = itertools.count(1)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = int(head.partition("content-length:")[2].split("\r\n")[0] or 0)
                body = await reader.readexactly(length)
                content = json.dumps(await self._respond(head.split()[1], body)).encode()
                fields = f"Content-Type: application/json\r\nContent-Length: {len(content)}"
                writer.write(f"HTTP/1.1 200 OK\r\n{fields}\r\n\r\n".encode() + content)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()

    async def _respond(self, path: str, body: bytes) -> dict[str, Any]:
        match path.strip("/").split("/"):
            case ["received"]:
                return self.received_s
            case ["turn", is_turned]:
                self._is_turned = is_turned == "on"
                return {}
            case ["callbacks", responds_ms]:
                await asyncio.sleep(int(responds_ms) / 1000)
                return {}
            case [*_, number_id, "messages"]:
                if text := json.loads(body).get("text", {}).get("body"):
                    self.received_s[text] = time.monotonic()
                is_slow = number_id[0] == "1" or self._is_turned
                self.calls += 1
                await asyncio.sleep((int(number_id[1:7]) if is_slow else HEALTHY_MS) / 1000)
                self.calls -= 1
                return {"messages": [{"id": f"wamid.{next(self._numbers)}"}]}
            case _:
                return {}


async def serve_operator(port: int) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    server = await asyncio.start_server(OperatorServer().serve, "127.0.0.1", port, backlog=2048)
    await stop.wait()
    server.close()


@dataclass(frozen=True, slots=True)
class BenchSource:
    """An app with its source."""

    app_id: str
    partner_id: int
    number: str


class BenchSources:
    """Accounts, sources and messages of a service.

    Args:
        waypost: the service, open.
        port: of the operator.
    """

    def __init__(self, waypost: Waypost, port: int) -> None:
        self._waypost = waypost
        self._url = f"http://127.0.0.1:{port}"
        self._ids = RandomIds(SystemClock())
        self._count = 0
        self._partners: set[int] = set()
        self._destinations = itertools.count(16_000_000_000)

    async def add_account(self, name: str) -> None:
        """Add an operator account."""
        account = replace(demo.operator_account(self._url), id=name)
        await provisioning.put_operator_account(self._waypost.admin_context, account)

    async def add_source(
        self, account: str, responds_ms: int, *, partner_id: int, turns: bool = False, per_second: int = 80
    ) -> BenchSource:
        """Add an app with its source, to which the operator responds after a time."""
        self._count += 1
        number, business_id = str(15_550_000_000 + self._count), str(10**12 + self._count)
        context = self._waypost.admin_context
        if partner_id not in self._partners:
            self._partners.add(partner_id)
            partner = replace(demo.PARTNER, id=partner_id, email=f"bench{partner_id}@waypost.test")
            await self._waypost.database.write(add_partner, partner, "no password", 0)
        business_account = BusinessAccount(business_id, partner_id, demo.NAMESPACE, account)
        await provisioning.add_business_account(context, business_account)
        number_id = f"{2 if turns else 1}{responds_ms:06d}{self._count:08d}"
        new_app = NewApp(partner_id, f"BenchSource{self._count}", number, number_id, business_id, per_second)
        return BenchSource((await add_app(context, new_app)).id, partner_id, number)

    async def send(self, source: BenchSource, text: str) -> float:
        """Accept a message as the API does, and return when it was on disk."""
        await self._waypost.database.join_from_request(record_messages, self._message(source, text))
        return time.monotonic()

    async def queue_messages(self, source: BenchSource, count: int) -> None:
        """Accept many messages."""
        messages = [self._message(source, f"{source.number} {nth}") for nth in range(count)]
        for first in range(0, count, BATCH):
            await self._waypost.database.write(record_messages, messages[first : first + BATCH])

    async def queue_callbacks(self, source: BenchSource, responds_ms: int, count: int) -> None:
        """Subscribe a receiver that responds after a time, and enqueue callbacks to it."""
        url = f"{self._url}/callbacks/{responds_ms}"
        subscription = Subscription("", source.partner_id, source.app_id, "bench", url, 2, ("MESSAGE",), 0, 0)
        await self._waypost.database.write(add_subscription, subscription, self._waypost.directory.seal, 5)
        await self._waypost.database.write(_enqueue_callbacks, self._ids, source.app_id, count)

    def _message(self, source: BenchSource, text: str) -> Message:
        return Message(
            id=self._ids.new(),
            partner_id=source.partner_id,
            app_id=source.app_id,
            source=source.number,
            destination=str(next(self._destinations)),
            content=SessionText(text),
            accepted_on_ms=SystemClock().now_ms(),
        )


class FairnessRun:
    """The service of one case, and its operator."""

    def __init__(self, waypost: Waypost, operator: Child, options: argparse.Namespace) -> None:
        self._waypost = waypost
        self._operator = operator
        self._options = options
        self._sources = BenchSources(waypost, operator.port)

    async def measure(self, case: FairnessCase) -> dict[str, Any]:
        """Return the healthy source's waits while the others work."""
        await self._sources.add_account("healthy")
        healthy = await self._sources.add_source("healthy", HEALTHY_MS, partner_id=1)
        await self._add_others(case)
        self._waypost.start()
        await self._sources.send(healthy, "warm")
        await asyncio.sleep(SETTLE_S)
        turning = asyncio.create_task(self._turn(case))
        committed_s: dict[str, float] = {}
        began_s = time.monotonic()
        for nth in range(int(self._options.seconds / self._options.interval)):
            await asyncio.sleep(max(0.0, began_s + nth * self._options.interval - time.monotonic()))
            committed_s[f"h{nth}"] = await self._sources.send(healthy, f"h{nth}")
        await turning
        await asyncio.sleep(0.5)
        received_s: dict[str, float] = await asyncio.to_thread(self._operator.get, "/received")
        now_s = time.monotonic()
        waits_ms = sorted(1000 * max(0.0, received_s.get(text, now_s) - at_s) for text, at_s in committed_s.items())
        return {
            "messages": len(waits_ms),
            "p50_ms": round(statistics.median(waits_ms), 1),
            "p99_ms": round(waits_ms[len(waits_ms) * 99 // 100], 1),
            "max_ms": round(waits_ms[-1], 1),
            "not_received": len(committed_s.keys() - received_s.keys()),
            "others_received": len(received_s.keys() - committed_s.keys()) - ("warm" in received_s),
        }

    async def _add_others(self, case: FairnessCase) -> None:
        for nth in range(case.accounts):
            account = "healthy" if case.same_account else f"other{nth}"
            if not case.same_account:
                await self._sources.add_account(account)
            for _ in range(case.sources):
                source = await self._sources.add_source(
                    account, case.responds_ms, partner_id=2 + nth, turns=case.turns, per_second=case.per_second
                )
                await self._sources.queue_messages(source, case.queued)
        for _ in range(case.receivers):
            source = await self._sources.add_source("healthy", HEALTHY_MS, partner_id=2)
            await self._sources.queue_callbacks(source, case.responds_ms, case.queued)

    async def _turn(self, case: FairnessCase) -> None:
        """Let the operator turn slow after a while."""
        if case.turns:
            await asyncio.sleep(2)
            await asyncio.to_thread(self._operator.get, "/turn/on")


def _enqueue_callbacks(connection: Connection, ids: RandomIds, app_id: str, count: int) -> None:
    app = app_by_id(connection, app_id)
    if app is None:
        raise LookupError(app_id)
    recorder = StateChangeRecorder(connection, ids, SystemClock().now_ms())
    render: Callable[[int], bytes] = lambda _: b"{}"  # noqa: E731
    for nth in range(count):
        recorder.emit_callback(app, mode="MESSAGE", subject=str(nth), message_id=None, event_name="text", render=render)
    recorder.write()


async def measure_case(case: FairnessCase, store: Store, options: argparse.Namespace) -> dict[str, Any]:
    """Measure one case in a store of its own."""
    clock = SystemClock()
    operator = Child("benchmarks.fairness", "--serve")
    settings = Settings(
        data=store.folder,
        database_url=store.url,
        secret_key="benchmarks only, known to everybody",
        rates=False,
        in_flight=options.in_flight,
        allowed_networks=("127.0.0.0/8",),
        stop_within_s=0.1,
    )
    waypost = Waypost(settings, clock, RandomIds(clock))
    await waypost.open()
    try:
        operator.wait_ready()
        return await FairnessRun(waypost, operator, options).measure(case)
    finally:
        await waypost.drain()
        await waypost.close()
        operator.end()


async def main(options: argparse.Namespace) -> dict[str, Any]:
    """Measure, print, and write the result."""
    set_up_logs(SystemClock(), as_json=False, level="error")
    rows: list[dict[str, Any]] = []
    with temporary_folder() as at:
        machine = describe_machine(at)
        for engine in options.engines.split(","):
            (at / engine).mkdir()
            with open_stores(engine, at / engine) as stores:
                print(
                    f"\nWait of a healthy source for a slot on {stores.version}, one message each {options.interval} s"
                )
                for name, case in CASES.items():
                    if options.only and not any(part in name for part in options.only.split(",")):
                        continue
                    row = {"name": name, "engine": engine, **await measure_case(case, stores.new(), options)}
                    rows.append(row)
                    print(format_row(row), flush=True)
    result = {"benchmark": "fairness", "machine": machine, "rows": rows}
    print(f"\nwritten to {write_result('fairness', result)}")
    return result


def format_row(row: dict[str, Any]) -> str:
    """Return the line of one case."""
    verdict = "" if row["max_ms"] <= MAX_WAIT_MS and not row["not_received"] else f"   over {MAX_WAIT_MS} ms"
    return (
        f"  {row['name']:<48} p50 {row['p50_ms']:8.1f} ms   p99 {row['p99_ms']:8.1f} ms   max {row['max_ms']:8.1f} ms   "
        f"of {row['messages']}; others' messages sent {row['others_received']}{verdict}"
    )


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the command's options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30, help="Length of each case.")
    parser.add_argument("--interval", type=float, default=0.25, help="Seconds between two messages.")
    parser.add_argument("--in-flight", type=int, default=64, help="The setting `in_flight`.")
    parser.add_argument("--engines", default="sqlite,postgresql")
    parser.add_argument("--only", default="", help="Cases whose names contain one of these, separated by commas.")
    parser.add_argument("--serve", action="store_true", help="Run the operator only.")
    parser.add_argument("--port", type=int, default=0)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    options = parse_options()
    uvloop.run(serve_operator(options.port) if options.serve else main(options))
