"""The cost of hostile connections for other clients: their response times during an attack, and its memory.

    python -m benchmarks.attacks            # prints a table; about a minute and a half

Everything is on loopback: the service is `waypost dev --memory` as a separate process with 1,024
descriptors, the attacker connects from 127.0.0.2, the other clients from 127.0.0.1. Each attack is
bounded in bytes, connections and time.
"""

import argparse
import asyncio
import contextlib
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from waypost.client.dev_variables import read_variables

ATTACKER = ("127.0.0.2", 0)
DESCRIPTORS = 1024
TIMEOUT_S = 10.0
HEADER_MB = 60
HALF_REQUESTS = 1_002
INTERVAL_S = 0.05

Attack = Callable[[str, int, float], Awaitable[str]]


@dataclass
class ClientResults:
    """The responses to the other clients.

    Attributes:
        took_s: response time of each request that succeeded.
        failed: requests that were rejected, reset, or timed out.
    """

    took_s: list[float] = field(default_factory=list[float])
    failed: int = 0

    def format_row(self) -> str:
        if not self.took_s:
            return f"- | - | {self.failed} of {self.failed}"
        median, worst = statistics.median(self.took_s), max(self.took_s)
        total = len(self.took_s) + self.failed
        return f"{median * 1000:,.1f} ms | {worst * 1000:,.0f} ms | {self.failed} of {total}"


async def no_attack(_host: str, _port: int, seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "nothing"


async def large_headers(host: str, port: int, seconds: float) -> str:
    """Send one header of 60 MB on one connection; repeat when it has ended."""
    ends: Counter[str] = Counter()

    async def large() -> str:
        reader, writer = await asyncio.open_connection(host, port, local_addr=ATTACKER)
        try:
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nX-Large: ")
            with contextlib.suppress(ConnectionError):
                for _ in range(HEADER_MB * 16):
                    writer.write(b"a" * 62_500)
                    await writer.drain()
                writer.write(b"\r\n\r\n")
            return (await reader.read(4096))[9:12].decode() or "closed"
        except ConnectionError:
            return "reset"
        finally:
            writer.close()

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                ends[await large()] += 1
    return summary(ends)


def summary(ends: Counter[str]) -> str:
    """Return the number of connections by how they ended."""
    return ", ".join(f"{count} times {outcome}" for outcome, count in sorted(ends.items())) or "nothing"


async def half_requests(host: str, port: int, seconds: float) -> str:
    """Send the first half of a request from many clients and wait; a client that is disconnected reconnects."""
    responses: Counter[str] = Counter()

    async def half() -> None:
        reader, writer = await asyncio.open_connection(host, port, local_addr=ATTACKER)
        try:
            writer.write(b"POST /wa/api/v1/msg HTTP/1.1\r\nHost: a\r\nContent-")
            response = await reader.read(4096)
            responses[response[9:12].decode() or "no response"] += 1
        finally:
            writer.close()

    async def halves() -> None:
        while True:
            with contextlib.suppress(OSError):
                await half()
            await asyncio.sleep(1)

    clients = [asyncio.create_task(halves()) for _ in range(HALF_REQUESTS)]
    await asyncio.sleep(seconds)
    for client in clients:
        client.cancel()
    await asyncio.gather(*clients, return_exceptions=True)
    return ", ".join(f"{count} times {outcome}" for outcome, count in sorted(responses.items())) or "nothing"


async def send_message(host: str, port: int, key: str, variables: dict[str, str]) -> None:
    """Send one message on a new connection."""
    body = (
        f"channel=whatsapp&source={variables['SOURCE']}&destination={variables['DESTINATION']}"
        f"&src.name={variables['SRC_NAME']}&message=%7B%22type%22%3A%22text%22%2C%22text%22%3A%22hi%22%7D"
    ).encode()
    head = (
        f"POST /wa/api/v1/msg HTTP/1.1\r\nHost: {host}:{port}\r\napikey: {key}\r\n"
        f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    ).encode()
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(head + body)
        response = await reader.read()
        if not response.startswith(b"HTTP/1.1 200 "):
            raise ConnectionError(response[:80].decode())
    finally:
        writer.close()


async def run_other_clients(host: str, port: int, variables: dict[str, str], done: asyncio.Event) -> ClientResults:
    """Send messages one after the other until the attack has ended."""
    results = ClientResults()
    while not done.is_set():
        began_s = time.monotonic()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await send_message(host, port, variables["API_KEY"], variables)
            results.took_s.append(time.monotonic() - began_s)
        except (OSError, TimeoutError):
            results.failed += 1
        await asyncio.sleep(INTERVAL_S)
    return results


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1_000_000


async def max_resident_mb(pid: int, done: asyncio.Event) -> float:
    """Return the maximum memory of a process until the attack has ended."""
    max_mb = resident_mb(pid)
    while not done.is_set():
        await asyncio.sleep(0.05)
        max_mb = max(max_mb, resident_mb(pid))
    return max_mb


ATTACKS: dict[str, tuple[Attack, float]] = {
    "no attack": (no_attack, 5),
    f"one header of {HEADER_MB} MB": (large_headers, 20),
    f"{HALF_REQUESTS:,} half-sent requests": (half_requests, 30),
}


@asynccontextmanager
async def start_service(folder: Path) -> AsyncGenerator[tuple[int, dict[str, str]]]:
    """Yield the process id of a new `waypost dev`, and its variables."""
    env_file = folder / "dev.env"
    command = [sys.executable, "-c", "from waypost.cli.main import main; main()", "dev", "--memory"]
    command += ["--port", "0", "--simulator-port", "0", "--env-file", str(env_file)]
    command += ["--until-stdin-ends"]
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS * 4, DESCRIPTORS * 4))
    service = subprocess.Popen(  # noqa: ASYNC220  once, before anything is measured
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "WAYPOST_RATES": "false", "WAYPOST_PER_SECOND": "1000"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS)),
    )
    try:
        while not env_file.exists():  # noqa: ASYNC110  another process writes it
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        yield service.pid, dict(read_variables(env_file))
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(30)


async def measure(name: str, folder: Path) -> str:
    """Run one attack against a new service; return a row of the table."""
    attack, seconds = ATTACKS[name]
    async with start_service(folder) as (pid, variables):
        url = urlsplit(variables["PARTNER_URL"])
        host, port = url.hostname or "127.0.0.1", url.port or 80
        await send_message(host, port, variables["API_KEY"], variables)
        before_mb, done = resident_mb(pid), asyncio.Event()
        memory = asyncio.create_task(max_resident_mb(pid, done))
        clients = asyncio.create_task(run_other_clients(host, port, variables, done))
        outcome = await attack(host, port, seconds)
        done.set()
        results, max_mb = await clients, await memory
        return f"| {name} | {results.format_row()} | {before_mb:.0f} to {max_mb:.0f} MB | {outcome} |"


async def main(names: list[str]) -> None:
    print("| Attack | Others: median | worst | failed | Memory | Outcome |")
    print("|---|---|---|---|---|---|")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            print(await measure(name, Path(folder)), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=list(ATTACKS), default=list(ATTACKS))
    asyncio.run(main(parser.parse_args().only))
