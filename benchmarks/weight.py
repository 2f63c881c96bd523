"""T7: how soon `waypost dev` answers, and what it holds in memory when nobody asks."""

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure
from benchmarks.processes import free_port

FIRST_S = 1.5  # Source: decision 0087, T7
IDLE_MB = 120
SETTLED_S = 3
WITHIN_S = 30


async def measure(at: Path, options: argparse.Namespace) -> tuple[list[Figure], dict[str, Any]]:
    """Starts on empty folders; the median of the first answers, and the memory of the last."""
    firsts: list[float] = []
    memory = 0.0
    for nth in range(max(3, options.rounds)):
        took_s, memory = _start(at / f"dev-{nth}")
        firsts.append(took_s)
    return [
        Figure(
            "T7", "", "waypost dev: first answer after its start", statistics.median(firsts), "s", FIRST_S,
            lower_is_better=True, note=f"{min(firsts):.2f} to {max(firsts):.2f}",
        ),
        Figure("T7", "", "waypost dev: memory when idle", memory, "MB", IDLE_MB, lower_is_better=True),
    ], {"first_s": firsts, "idle_mb": memory}  # fmt: skip


def _start(folder: Path) -> tuple[float, float]:
    folder.mkdir()
    port = free_port()
    command = [
        *(sys.executable, "-m", "waypost", "dev", "--data", str(folder), "--port", str(port)),
        *("--simulator-port", str(free_port())),
    ]
    began_s = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        while not _answers(port):
            if time.monotonic() - began_s > WITHIN_S or process.poll() is not None:
                raise RuntimeError("waypost dev does not answer")
            time.sleep(0.005)
        took_s = time.monotonic() - began_s
        time.sleep(SETTLED_S)
        status = Path(f"/proc/{process.pid}/status").read_text()
        [kb] = re.findall(r"VmRSS:\s+(\d+) kB", status)
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.wait(30)
    return took_s, int(kb) / 1024


def _answers(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10).close()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False
    return True
