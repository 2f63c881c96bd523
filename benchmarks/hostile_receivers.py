"""The cost of a partner's hostile receiver, or operator, for another partner: its response times, and the memory.

    python -m benchmarks.hostile_receivers            # prints a table; about four minutes

Everything is on loopback: the service is `waypost dev --memory` as a separate process, new for each row, and so is
the responder. The hostile partner sends three messages, whose callbacks, or which themselves, get a response of
`benchmarks/hostile_responses.py`; the other partner sends one message after the other, 50 ms apart. On a busy machine the share of a processor
that the service uses says more than the times.
"""

import argparse
import asyncio
import signal
import statistics
import tempfile
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from benchmarks.attacks import (
    ClientResults,
    max_resident_mb,
    resident_mb,
    run_other_clients,
    send_message,
    start_service,
)
from benchmarks.hostile_responses import HOSTILE_RESPONSES, HostileResponder
from benchmarks.processes import Child, cpu_s
from waypost.assembly.dev.partners.partner import DerivedNames, PartnerApiClients, create_partner
from waypost.assembly.dev.service_and_simulator import BaseUrls
from waypost.base.clock import SystemClock
from waypost.client.api_client import ApiClient, HttpTransport

SECONDS: Final = 6
RECIPIENTS: Final = ("15550009001", "15550009002", "15550009003")
IDLE: Final = "idle"
WITHOUT_END: Final = tuple(name for name, row in HOSTILE_RESPONSES.items() if row.repeats and not row.drips)
OTHERS: Final = ("a gzip bomb", "one byte of a header at a time", "half a status line")


async def measure(name: str, role: str, folder: Path) -> str:
    """Measure one row in one role; return the columns of its table."""
    async with start_service(folder) as (pid, variables):
        url = urlsplit(variables["PARTNER_URL"])
        host, port = url.hostname or "127.0.0.1", url.port or 80
        hostile = await create_hostile_partner(variables)
        responder = None
        if name != IDLE:
            responder = Child("benchmarks.hostile_receivers", "--respond", name)
            responder.wait_ready()
            await connect(hostile, f"http://127.0.0.1:{responder.port}", role)
        await send_message(host, port, variables["API_KEY"], variables)
        before_mb, before_cpu_s, done = resident_mb(pid), cpu_s(pid), asyncio.Event()
        memory = asyncio.create_task(max_resident_mb(pid, done))
        clients = asyncio.create_task(run_other_clients(host, port, variables, done))
        for recipient in RECIPIENTS:
            await send_message(host, port, hostile["API_KEY"], hostile | {"DESTINATION": recipient})
        await asyncio.sleep(SECONDS)
        done.set()
        results, max_mb = await clients, await memory
        used = (cpu_s(pid) - before_cpu_s) / SECONDS
        if responder is not None:
            responder.end()
        await asyncio.sleep(1)
        return f"{format_times(results)} | {used:.0%} | {before_mb:.0f} / {max_mb:.0f} / {resident_mb(pid):.0f}"


def format_times(results: ClientResults) -> str:
    """Return median and 99th percentile, and the requests that failed, if any."""
    took_ms = sorted(1000 * took_s for took_s in results.took_s)
    failed = f", {results.failed} failed" if results.failed else ""
    return f"{statistics.median(took_ms):.1f} | {took_ms[len(took_ms) * 99 // 100]:.1f}{failed}"


async def create_hostile_partner(variables: dict[str, str]) -> dict[str, str]:
    """Create a partner beside that of the demonstration; return its variables, with those of the administrator."""
    transport = HttpTransport(variables["ADMIN_URL"].removesuffix("/admin"))
    clients = PartnerApiClients(
        ApiClient(transport, {"Authorization": f"Bearer {variables['ADMIN_TOKEN']}"}),
        ApiClient(HttpTransport(variables["CONTROL_URL"].removesuffix("/control")), {}),
        transport,
    )
    urls = BaseUrls(variables["PARTNER_URL"], variables["GRAPH_URL"])
    partner = await create_partner(
        clients, urls, urls, name="hostile", seed="hostile", now_ms=SystemClock().now_ms(), in_creation=set()
    )
    return {**variables, **partner.variables}


async def connect(hostile: dict[str, str], url: str, role: str) -> None:
    """Make the responder the receiver of the partner's callbacks, or its operator."""
    transport = HttpTransport(hostile["PARTNER_URL"])
    if role == "receiver":
        partner = ApiClient(transport, {"Authorization": hostile["APP_TOKEN"]})
        fields = {"tag": "hostile", "url": url, "version": "3", "modes": "ALL", "doCheck": "false"}
        await partner.form("POST", f"/partner/app/{hostile['APP_ID']}/subscription", fields)
        return
    names = DerivedNames("hostile")
    admin = ApiClient(transport, {"Authorization": f"Bearer {hostile['ADMIN_TOKEN']}"})
    account = {
        "base_url": url,
        "version": "v25.0",
        "token": hostile["GRAPH_TOKEN"],
        "app_id": names.graph_app_id,
        "app_secret": names.secret("app secret"),
        "verify_token": names.secret("verify token"),
    }
    await admin.json("PUT", f"/admin/operator-accounts/{hostile['WABA_ID']}", account)


async def respond(name: str, port: int) -> None:
    """Serve one hostile response until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with HostileResponder(HOSTILE_RESPONSES[name], port=port):
        await stop.wait()


async def main(names: list[str], roles: list[str]) -> None:
    columns = [f"{role}: p50 ms | p99 ms | processor | MB before / peak / after" for role in roles]
    print(f"| Response | {' | '.join(columns)} |")
    print("|---" * (1 + 4 * len(roles)) + "|")
    for name in [IDLE, *names]:
        cells: list[str] = []
        for role in roles:
            with tempfile.TemporaryDirectory() as folder:
                cells.append(await measure(name, role, Path(folder)))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=list(HOSTILE_RESPONSES), default=[*WITHOUT_END, *OTHERS])
    parser.add_argument("--roles", nargs="*", choices=("receiver", "operator"), default=["receiver", "operator"])
    parser.add_argument("--respond", choices=list(HOSTILE_RESPONSES), help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    asyncio.run(respond(options.respond, options.port) if options.respond else main(options.only, options.roles))
