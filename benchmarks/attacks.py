"""What hostile connections cost everybody else: answers of others during an attack, and the memory it takes.

    python -m benchmarks.attacks            # prints a table; about a minute and a half

Everything is loopback: the service is `waypost dev --memory` in a process of its own with 1,024
descriptors, the attacker connects from 127.0.0.2, the others from 127.0.0.1. Each attack is bounded in
bytes, connections and time.
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
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from waypost.client.dev_variables import read_variables

ATTACKER = ("127.0.0.2", 0)
DESCRIPTORS = 1024
PATIENCE_S = 10.0
HEADER_MB = 60
HALVES = 1_002
EVERY_S = 0.05

Attack = Callable[[str, int, float], Awaitable[str]]


@dataclass
class Answers:
    """What the others got.

    Attributes:
        took_s: of each request that was answered.
        failed: requests that were refused, reset, or not answered in time.
    """

    took_s: list[float] = field(default_factory=list[float])
    failed: int = 0

    def row(self) -> str:
        if not self.took_s:
            return f"- | - | {self.failed} of {self.failed}"
        median, worst = statistics.median(self.took_s), max(self.took_s)
        total = len(self.took_s) + self.failed
        return f"{median * 1000:,.1f} ms | {worst * 1000:,.0f} ms | {self.failed} of {total}"


async def nobody(_host: str, _port: int, seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "nothing"


async def large_headers(host: str, port: int, seconds: float) -> str:
    """One connection with one header of 60 MB; when it is over, the next one."""
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
    """How often an attack ended in which way."""
    return ", ".join(f"{count} times {end}" for end, count in sorted(ends.items())) or "nothing"


async def half_requests(host: str, port: int, seconds: float) -> str:
    """Many clients that send the first half of a request and wait; whoever is put out comes again."""
    refused: Counter[str] = Counter()

    async def half() -> None:
        reader, writer = await asyncio.open_connection(host, port, local_addr=ATTACKER)
        try:
            writer.write(b"POST /wa/api/v1/msg HTTP/1.1\r\nHost: a\r\nContent-")
            answer = await reader.read(4096)
            refused[answer[9:12].decode() or "no answer"] += 1
        finally:
            writer.close()

    async def halves() -> None:
        while True:
            with contextlib.suppress(OSError):
                await half()
            await asyncio.sleep(1)

    clients = [asyncio.create_task(halves()) for _ in range(HALVES)]
    await asyncio.sleep(seconds)
    for client in clients:
        client.cancel()
    await asyncio.gather(*clients, return_exceptions=True)
    return ", ".join(f"{count} times {what}" for what, count in sorted(refused.items())) or "nothing"


async def ask(host: str, port: int, key: str, known: dict[str, str]) -> None:
    """Send one message on a connection of its own."""
    body = (
        f"channel=whatsapp&source={known['SOURCE']}&destination={known['DESTINATION']}"
        f"&src.name={known['SRC_NAME']}&message=%7B%22type%22%3A%22text%22%2C%22text%22%3A%22hi%22%7D"
    ).encode()
    head = (
        f"POST /wa/api/v1/msg HTTP/1.1\r\nHost: {host}:{port}\r\napikey: {key}\r\n"
        f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    ).encode()
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(head + body)
        answer = await reader.read()
        if not answer.startswith(b"HTTP/1.1 200 "):
            raise ConnectionError(answer[:80].decode())
    finally:
        writer.close()


async def others(host: str, port: int, known: dict[str, str], done: asyncio.Event) -> Answers:
    """Send messages one after the other until the attack is over."""
    answers = Answers()
    while not done.is_set():
        began_s = time.monotonic()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await ask(host, port, known["API_KEY"], known)
            answers.took_s.append(time.monotonic() - began_s)
        except (OSError, TimeoutError):
            answers.failed += 1
        await asyncio.sleep(EVERY_S)
    return answers


def resident_mb(pid: int) -> float:
    """The process's memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1_000_000


async def highest_mb(pid: int, done: asyncio.Event) -> float:
    """The most memory it had until the attack is over."""
    most = resident_mb(pid)
    while not done.is_set():
        await asyncio.sleep(0.05)
        most = max(most, resident_mb(pid))
    return most


ATTACKS: dict[str, tuple[Attack, float]] = {
    "nobody attacks": (nobody, 5),
    f"one header of {HEADER_MB} MB": (large_headers, 20),
    f"{HALVES:,} requests sent by half": (half_requests, 30),
}


async def measure(name: str, folder: Path) -> str:
    """One attack against a service of its own; gives a row of the table."""
    attack, seconds = ATTACKS[name]
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
        known = read_variables(env_file)
        where = urlsplit(known["PARTNER_URL"])
        host, port = where.hostname or "127.0.0.1", where.port or 80
        await ask(host, port, known["API_KEY"], known)
        before_mb, done = resident_mb(service.pid), asyncio.Event()
        watching = asyncio.create_task(highest_mb(service.pid, done))
        asking = asyncio.create_task(others(host, port, known, done))
        end = await attack(host, port, seconds)
        done.set()
        answers, most_mb = await asking, await watching
        return f"| {name} | {answers.row()} | {before_mb:.0f} to {most_mb:.0f} MB | {end} |"
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(30)


async def main(names: list[str]) -> None:
    print("| Attack | Others: median | worst | failed | Memory | What became of it |")
    print("|---|---|---|---|---|---|")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            print(await measure(name, Path(folder)), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=list(ATTACKS), default=list(ATTACKS))
    asyncio.run(main(parser.parse_args().only))
