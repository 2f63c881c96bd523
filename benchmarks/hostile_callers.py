"""The cost of hostile callers for another partner: its response times, and the memory of the service.

    python -m benchmarks.hostile_callers                    # every attack on a new service each; about five minutes
    python -m benchmarks.hostile_callers --only pipelining --seconds 5

Everything is on loopback: the service is `waypost dev --memory` as a separate process with default settings, whose
address space is limited. Attackers connect from 127.1.0.0 and further networks, the other partner from 127.0.0.1. Each
attack is bounded in time and connections. The attacker that has a credential is a partner of its own.
"""

import argparse
import asyncio
import contextlib
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

from benchmarks.attacks import max_resident_mb, resident_mb, summary
from waypost.client.dev_variables import read_variables

ADDRESS_SPACE_BYTES: Final = 6_000_000_000
"""The service cannot take more than this, however the attack goes."""
DESCRIPTORS: Final = 20_000
IDLE_S: Final = 4.0
SETTLE_S: Final = 15.0
TIMEOUT_S: Final = 60.0
INTERVAL_S: Final = 0.05
CONNECTIONS: Final = 8
BATCH: Final = 20_000
SLOW_CONNECTIONS: Final = 4_500
SLOW_ADDRESSES: Final = 20
UNREAD_CONNECTIONS: Final = 2_000

Outcome = Counter[str]


@dataclass(frozen=True)
class Target:
    """The service under attack.

    Attributes:
        variables: of the demonstration.
        key: API key of the attacking partner.
        port: of the service; `simulator_port`: of the simulator.
    """

    variables: dict[str, str]
    key: str
    port: int
    simulator_port: int


@dataclass
class OtherPartner:
    """Response times of another partner, and how many of its requests failed."""

    took_s: list[float] = field(default_factory=list[float])
    failed: int = 0

    def row(self) -> str:
        if len(self.took_s) < 2:
            return f"- | - | {self.failed} of {self.failed + len(self.took_s)}"
        p99 = statistics.quantiles(self.took_s, n=100, method="inclusive")[98]
        p50, total = statistics.median(self.took_s), len(self.took_s) + self.failed
        return f"{p50 * 1000:,.1f} | {p99 * 1000:,.1f} | {self.failed} of {total}"


def post(path: str, kind: str, body: bytes, *headers: str) -> bytes:
    """Return a whole POST."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


FORM: Final = "application/x-www-form-urlencoded"
JSON: Final = "application/json"
FIELDS: Final = b"&".join(b"f%05d=1" % nth for nth in range(100_000))
BRACKETS: Final = b"[" * 400_000
LISTS: Final = b'{"a":[' + b"[]," * 400_000 + b"[]]}"
PARTS: Final = (
    b"".join(b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n' for _ in range(15_000)) + b"--b--\r\n"
)


async def repeat(port: int, request: bytes, seconds: float, *, connections: int = CONNECTIONS) -> Outcome:
    """Send one request again and again on some connections; return how many responses had which status."""
    outcome: Outcome = Counter()

    async def one(nth: int) -> None:
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(f"127.1.0.{nth + 2}", 0))
                try:
                    while True:
                        writer.write(request)
                        await writer.drain()
                        head = await reader.readuntil(b"\r\n\r\n")
                        outcome[head[9:12].decode()] += 1
                        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
                        await reader.readexactly(length)
                finally:
                    writer.close()
            await asyncio.sleep(0.01)

    await run_for([one(nth) for nth in range(connections)], seconds)
    return outcome


async def run_for(attackers: Sequence[Awaitable[None]], seconds: float) -> None:
    tasks = [asyncio.ensure_future(each) for each in attackers]
    await asyncio.wait(tasks, timeout=seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def pipelining(target: Target, seconds: float) -> Outcome:
    """Send bursts of requests without a credential; close each connection after 200 bytes of responses."""
    outcome: Outcome = Counter()
    burst = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * BATCH

    async def one(nth: int) -> None:
        while True:
            with contextlib.suppress(OSError):
                address = ("127.0.0.1", target.port)
                reader, writer = await asyncio.open_connection(*address, local_addr=(f"127.1.0.{nth + 2}", 0))
                writer.write(burst)
                await reader.read(200)
                outcome["burst"] += 1
                writer.transport.abort()
            await asyncio.sleep(0)

    await run_for([one(nth) for nth in range(CONNECTIONS)], seconds)
    return outcome


async def unread_pages(target: Target, seconds: float) -> Outcome:
    """Request a large page on many connections, and read none of it."""
    outcome: Outcome = Counter()

    async def one(nth: int) -> None:
        address = f"127.{nth % 10 + 1}.0.2"
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", target.port, local_addr=(address, 0), limit=1)
            cast("asyncio.Transport", writer.transport).pause_reading()
            try:
                writer.write(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
                outcome["unread"] += 1
                await asyncio.sleep(3600)
            finally:
                writer.transport.abort()

    await run_for([one(nth) for nth in range(UNREAD_CONNECTIONS)], seconds)
    return outcome


async def slow_headers(target: Target, seconds: float) -> Outcome:
    """Send one header line a second on thousands of connections."""
    outcome: Outcome = Counter()

    async def one(nth: int) -> None:
        address = f"127.{nth % SLOW_ADDRESSES + 1}.0.2"
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", target.port, local_addr=(address, 0))
                try:
                    writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
                    while not reader.at_eof():
                        with contextlib.suppress(TimeoutError):
                            async with asyncio.timeout(1):
                                outcome[(await reader.read(4096))[9:12].decode() or "closed"] += 1
                        writer.write(b"X-Slow: a\r\n")
                        await writer.drain()
                finally:
                    writer.transport.abort()
            await asyncio.sleep(1)

    await run_for([one(nth) for nth in range(SLOW_CONNECTIONS)], seconds)
    return outcome


def many_fields(path: str, *, kind: str = FORM, body: bytes = FIELDS) -> "Attack":
    """Return the attack of a partner whose requests end in 400."""

    def attack(target: Target, seconds: float) -> Awaitable[Outcome]:
        return repeat(target.port, post(path, kind, body, f"apikey: {target.key}"), seconds)

    return attack


def at_simulator(path: str, kind: str, body: bytes) -> "Attack":
    """Return the attack of a caller of the simulator."""

    def attack(target: Target, seconds: float) -> Awaitable[Outcome]:
        token = f"Authorization: Bearer {target.variables['GRAPH_TOKEN']}"
        return repeat(target.simulator_port, post(path, kind, body, token), seconds)

    return attack


def page(path: str) -> "Attack":
    """Return the attack of somebody who requests a page without a credential."""
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()

    def attack(target: Target, seconds: float) -> Awaitable[Outcome]:
        return repeat(target.port, request, seconds, connections=4)

    return attack


async def nothing(_target: Target, seconds: float) -> Outcome:
    await asyncio.sleep(seconds)
    return Counter()


Attack = Callable[[Target, float], Awaitable[Outcome]]

# fmt: off
ATTACKS: Final[dict[str, Attack]] = {
    "nothing":              nothing,
    "form of 100,000":      many_fields("/wa/api/v1/msg"),
    "brackets":             many_fields("/wa/api/v1/msg", body=b"message=" + BRACKETS),
    "JSON brackets":        many_fields("/wa/api/v1/msg", kind=JSON, body=BRACKETS),
    "multipart of 15,000":  many_fields("/wa/api/v1/msg", kind="multipart/form-data; boundary=b", body=PARTS),
    "login without key":    many_fields("/partner/account/login"),
    "admin without token":  many_fields("/admin/partners", kind=JSON, body=BRACKETS),
    "simulator form":       at_simulator("/v25.0/1000000000000002/messages", FORM, FIELDS),
    "simulator brackets":   at_simulator("/v25.0/1000000000000002/messages", JSON, BRACKETS),
    "simulator lists":      at_simulator("/v25.0/1000000000000002/messages", JSON, LISTS),
    "control lists":        at_simulator("/control/faults", JSON, LISTS),
    "pipelining":           pipelining,
    "page /openapi.json":   page("/openapi.json"),
    "page /docs":           page("/docs"),
    "page /sign-in":        page("/sign-in"),
    "page /readyz":         page("/readyz"),
    "page /metrics":        page("/metrics"),
    "unread pages":         unread_pages,
    "slow headers":         slow_headers,
}
# fmt: on


def call_admin(variables: dict[str, str], path: str, content: Any) -> dict[str, Any]:
    request = urllib.request.Request(
        f"{variables['ADMIN_URL']}{path}",
        json.dumps(content).encode(),
        {"Authorization": f"Bearer {variables['ADMIN_TOKEN']}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)


@contextlib.asynccontextmanager
async def running_service() -> AsyncGenerator[tuple[Target, int]]:
    """Start the service; return it with its process id."""
    with tempfile.TemporaryDirectory() as folder:
        env_file = Path(folder) / "dev.env"
        command = [sys.executable, "-c", "from waypost.cli.main import main; main()", "dev", "--memory"]
        command += ["--port", "0", "--simulator-port", "0", "--env-file", str(env_file), "--until-stdin-ends"]
        service = subprocess.Popen(  # noqa: ASYNC220  once, before anything is measured
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES)),
        )
        try:
            while not env_file.exists():  # noqa: ASYNC110  another process writes it
                await asyncio.sleep(0.1)
            await asyncio.sleep(1)
            variables = read_variables(env_file)
            ports = [urlsplit(variables[name]).port or 80 for name in ("PARTNER_URL", "GRAPH_URL")]
            partner = call_admin(variables, "/partners", {"email": "attacker@waypost.test", "name": "Attacker"})
            key = call_admin(variables, f"/partners/{partner['id']}/api-keys", {})
            yield Target(variables, key["api_key"] if "api_key" in key else key["key"], *ports), service.pid
        finally:
            service.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                service.wait(10)
            service.kill()
            service.wait()


async def send_message(target: Target) -> None:
    """Send one message of the other partner on a new connection."""
    variables = target.variables
    body = (
        f"channel=whatsapp&source={variables['SOURCE']}&destination={variables['DESTINATION']}"
        f"&src.name={variables['SRC_NAME']}&message=%7B%22type%22%3A%22text%22%2C%22text%22%3A%22hi%22%7D"
    ).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    try:
        writer.write(post("/wa/api/v1/msg", FORM, body, f"apikey: {variables['API_KEY']}", "Connection: close"))
        response = await reader.read()
        if not response.startswith(b"HTTP/1.1 200 "):
            raise ConnectionError(response[:80].decode())
    finally:
        writer.close()


async def run_other_partner(target: Target, done: asyncio.Event) -> OtherPartner:
    """Send messages one after the other until the attack has ended."""
    other = OtherPartner()
    while not done.is_set():
        began_s = time.monotonic()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await send_message(target)
            other.took_s.append(time.monotonic() - began_s)
        except (OSError, TimeoutError):
            other.failed += 1
        await asyncio.sleep(INTERVAL_S)
    return other


async def measure(name: str, seconds: float) -> str:
    """Run one attack against a new service; return a row of the table."""
    async with running_service() as (target, pid):
        await send_message(target)
        idle_done, done = asyncio.Event(), asyncio.Event()
        idle_partner = asyncio.create_task(run_other_partner(target, idle_done))
        await asyncio.sleep(IDLE_S)
        idle_done.set()
        idle = await idle_partner
        before_mb = resident_mb(pid)
        memory = asyncio.create_task(max_resident_mb(pid, done))
        partner = asyncio.create_task(run_other_partner(target, done))
        # The attack has a process of its own: it may not take the time of the partner that is measured.
        attack = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "benchmarks.hostile_callers", "--attack", name, "--seconds", str(seconds),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        content = json.dumps([target.variables, target.key, target.port, target.simulator_port]).encode()
        output, _ = await attack.communicate(content)
        done.set()
        other, max_mb = await partner, await memory
        if os.path.exists(f"/proc/{pid}/statm"):  # noqa: ASYNC240, PTH110
            await asyncio.sleep(SETTLE_S)
            after = f"{resident_mb(pid):.0f}"
        else:
            after = "dead"
        outcome = output.decode().strip()
        return f"| {name} | {idle.row()} | {other.row()} | {before_mb:.0f} | {max_mb:.0f} | {after} | {outcome} |"


async def attack_from_here(name: str, seconds: float) -> None:
    """Run an attack on the service that standard input describes."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    target = Target(*json.loads(sys.stdin.read()))
    print(summary(await ATTACKS[name](target, seconds)))


async def main(names: Sequence[str], seconds: float) -> None:
    print(
        "| Attack | Idle: p50, ms | p99 | failed | During: p50, ms | p99 | failed | MB before | peak | after | Outcome |"
    )
    print("|" + "---|" * 11)
    for name in names:
        print(await measure(name, seconds), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=list(ATTACKS), default=list(ATTACKS))
    parser.add_argument("--seconds", type=float, default=10, help="Of each attack.")
    parser.add_argument("--attack", choices=list(ATTACKS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attack:
        asyncio.run(attack_from_here(options.attack, options.seconds))
    else:
        asyncio.run(main(options.only, options.seconds))
