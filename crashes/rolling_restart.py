"""`python -m crashes.rolling_restart`: restarts two machines in turn behind a proxy, under load, and counts.

Two `serve` processes on one PostgreSQL are behind nginx or Caddy, with the files of `deploy/` and TLS. Clients send
messages, read templates and upload files; none repeats a request. Every response of 5xx, every connection without a
response, every message that is lost or sent twice counts.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp

from crashes.cluster import ClusterUnderTest
from crashes.layout import ClusterLayout
from crashes.partner import APP_NAME, SOURCE
from crashes.postgres import Postgres
from crashes.processes import NotInTime
from crashes.proxies import HOST, PROXIES, ProxyUnderTest
from crashes.run import temporary_folder

DRAIN_S: Final = 10
"""Longer than the proxies keep idle connections: 5 s in the files."""
SETTLE_S: Final = 3
"""From the readiness of one machine to the stop of the next: longer than a proxy avoids a machine that has failed."""
FILE_BYTES: Final = 1_000_000

# fmt: off
CLIENTS: Final = {  # kind of request: number of clients, pause between two requests of one in seconds
    "messages": (16, 0.05),
    "reads":    ( 8, 0.05),
    "uploads":  ( 2, 0.3),
}
# fmt: on


@dataclass
class Counts:
    """The counts of one run.

    Attributes:
        requests: by kind.
        errors: responses of 5xx, by kind, status and text.
        broken: requests without a response, by kind and error.
        longest_s: the longest response time, by kind.
        acknowledged: ids of messages that were accepted.
        restarts: of one machine.
        lost: acknowledged messages that no phone received.
        twice: messages that a phone received more than once, or that were accepted without a 200.
    """

    requests: Counter[str] = field(default_factory=Counter[str])
    errors: Counter[str] = field(default_factory=Counter[str])
    broken: Counter[str] = field(default_factory=Counter[str])
    longest_s: dict[str, float] = field(default_factory=dict[str, float])
    acknowledged: set[str] = field(default_factory=set[str])
    restarts: int = 0
    lost: int = 0
    twice: int = 0

    @property
    def is_flawless(self) -> bool:
        """True if every request got a response below 500, and every message arrived once."""
        return not (self.errors or self.broken or self.lost or self.twice)


class ProxiedLoad:
    """Clients that send through a proxy until `stop`; none repeats a request.

    Args:
        cluster: with the credentials of the partner.
        proxy: receives the requests.
    """

    def __init__(self, cluster: ClusterUnderTest, proxy: ProxyUnderTest) -> None:
        self._partner = cluster.partner
        self._proxy = proxy
        self._stopped = asyncio.Event()
        self._numbers = itertools.count()
        self.counts = Counts()

    async def run(self) -> None:
        """Return when it was stopped and every request has ended."""
        async with self._proxy.session() as http, asyncio.TaskGroup() as clients:
            for kind, (count, pause_s) in CLIENTS.items():
                for _ in range(count):
                    clients.create_task(self._client(http, kind, pause_s))

    def stop(self) -> None:
        """Send no further request."""
        self._stopped.set()

    async def _client(self, http: aiohttp.ClientSession, kind: str, pause_s: float) -> None:
        while not self._stopped.is_set():
            await self._send(http, kind)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), pause_s)

    async def _send(self, http: aiohttp.ClientSession, kind: str) -> None:
        counts, began_s = self.counts, time.monotonic()
        method, path, options = self._request(kind, next(self._numbers))
        counts.requests[kind] += 1
        try:
            async with http.request(method, self._proxy.url + path, **options) as response:
                text = await response.text()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            counts.broken[f"{kind} {type(error).__name__}"] += 1
            return
        finally:
            counts.longest_s[kind] = max(counts.longest_s.get(kind, 0), time.monotonic() - began_s)
        if response.status >= 500:
            counts.errors[f"{kind} {response.status} {text[:200]}"] += 1
            return
        assert response.status == 200, f"{kind}: {response.status} {text}"
        if kind == "messages":
            counts.acknowledged.add(json.loads(text)["messageId"])

    def _request(self, kind: str, number: int) -> tuple[str, str, dict[str, Any]]:
        partner = self._partner
        app = {"Authorization": partner.app_token}
        if kind == "reads":
            return "GET", f"/partner/app/{partner.app_id}/templates", {"headers": app}
        if kind == "uploads":
            form = aiohttp.FormData()
            form.add_field("file_type", "text/plain")
            form.add_field(
                "file", f"{number:09} ".encode() * (FILE_BYTES // 10), filename="a.txt", content_type="text/plain"
            )
            return "POST", f"/partner/app/{partner.app_id}/media", {"headers": app, "data": form}
        data = {"channel": "whatsapp", "source": SOURCE, "src.name": APP_NAME}
        data |= {"destination": f"1555{number % 1000:07}"}
        data |= {"template": json.dumps({"id": partner.template_id, "params": [str(number)]})}
        return "POST", "/wa/api/v1/template/msg", {"headers": {"apikey": partner.api_key}, "data": data}


@contextlib.asynccontextmanager
async def open_cluster(
    folder: Path, database_url: str, *, drain_s: float, workers: int = 1
) -> AsyncGenerator[ClusterUnderTest]:
    """Yield a cluster of two services on one database, to be restarted behind a proxy."""
    settings = {
        "WAYPOST_DRAIN_S": str(drain_s),
        "WAYPOST_TRUSTED_PROXIES": "127.0.0.1/32",
        "WAYPOST_PUBLIC_URL": f"https://{HOST}",
    }
    layout = ClusterLayout(
        settings=settings,
        database_url=database_url,
        reader_url=database_url.replace("postgresql://", "postgresql+psycopg://"),
        services=2,
        workers=workers,
    )
    cluster = ClusterUnderTest(folder, layout)
    try:
        await cluster.open()
        yield cluster
    finally:
        for service in cluster.services:
            service.kill()  # otherwise it drains
        await cluster.close()


async def restart_in_turn(
    cluster: ClusterUnderTest, proxy: ProxyUnderTest, *, rounds: int, settle_s: float = SETTLE_S
) -> Counts:
    """Restart every service of a cluster in turn, under load; return what was counted.

    Raises:
        NotInTime: a service did not end or start, or the queues do not become empty.
    """
    earlier = {delivery["callback_data"] for delivery in await cluster.deliveries()}
    load = ProxiedLoad(cluster, proxy)
    running = asyncio.create_task(load.run())
    counts = load.counts
    for _ in range(rounds):
        for service in cluster.services:
            await asyncio.sleep(settle_s)
            service.terminate()
            status = await service.wait_ended()
            if status:
                raise NotInTime(f"exit status {status} of a service that was stopped\n{service.last_lines()}")
            service.start()
            await cluster.wait_ready(service)
            counts.restarts += 1
    await asyncio.sleep(settle_s)
    load.stop()
    await running
    await cluster.wait_idle()
    deliveries = (delivery["callback_data"] for delivery in await cluster.deliveries())
    received = Counter(message_id for message_id in deliveries if message_id not in earlier)
    counts.lost = len(counts.acknowledged - received.keys())
    counts.twice = sum(count - 1 for count in received.values()) + len(received.keys() - counts.acknowledged)
    return counts


async def run(proxy: str, *, rounds: int, drain_s: float, workers: int) -> Counts:
    """Restart with a server and a cluster of its own, and one proxy."""
    with temporary_folder() as folder:
        server = Postgres(folder / "server")
        try:
            await asyncio.to_thread(server.initialize)
            await asyncio.to_thread(server.start)
            server.create_database()
            async with open_cluster(folder, server.url, drain_s=drain_s, workers=workers) as cluster:
                opened = ProxyUnderTest(proxy, folder, cluster.base_urls)
                try:
                    await opened.open()
                    counts = await restart_in_turn(cluster, opened, rounds=rounds)
                    if not counts.is_flawless:
                        print(*(child.last_lines() for child in (opened.child, *cluster.services)), sep="\n")
                    return counts
                finally:
                    await opened.close()
        finally:
            await asyncio.to_thread(server.close)


def format_row(proxy: str, drain_s: float, counts: Counts) -> str:
    """Return one row of the table."""
    kinds = [f"{counts.requests[kind]:,}" for kind in CLIENTS]
    longest = ", ".join(f"{counts.longest_s[kind]:.1f}" for kind in CLIENTS)
    errors, broken = counts.errors.total(), counts.broken.total()
    cells = (proxy, f"{drain_s:g}", counts.restarts, *kinds, errors, broken, counts.lost, counts.twice, longest)
    return f"| {' | '.join(map(str, cells))} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if a run with a drain had an error."""
    parser = argparse.ArgumentParser(prog="python -m crashes.rolling_restart", description=__doc__)
    parser.add_argument("--proxies", default=",".join(PROXIES), help="which, separated by commas")
    parser.add_argument("--rounds", type=int, default=5, help="restarts of each machine")
    parser.add_argument("--drains", default=f"{DRAIN_S}", help="values of drain_s, separated by commas")
    parser.add_argument("--workers", type=int, default=1, help="worker processes of each machine")
    options = parser.parse_args(arguments)
    rows: list[str] = []
    failed = False
    for proxy in options.proxies.split(","):
        for drain_s in map(float, options.drains.split(",")):
            counts = asyncio.run(run(proxy, rounds=options.rounds, drain_s=drain_s, workers=options.workers))
            failed |= drain_s > 0 and not counts.is_flawless
            rows.append(format_row(proxy, drain_s, counts))
            print(rows[-1], dict(counts.errors), dict(counts.broken), flush=True)
    print(
        "\n| Proxy | `drain_s` | Restarts | Messages | Reads | Uploads | 5xx | No response | Lost | Twice | Longest, s |"
    )
    print(f"|{'---|' * 11}", *rows, sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
