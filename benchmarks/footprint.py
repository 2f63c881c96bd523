"""T7: seconds until the first response of `waypost dev`, and its memory when idle."""

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
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.bare_speed import average_speed, measure_bare_speed
from benchmarks.measurements import Measurement
from benchmarks.processes import free_port

FIRST_RESPONSE_S = 1.5  # at the reference speed of the bare server. Source: decision 0087, T7
IDLE_MB = 120
IDLE_AFTER_S = 3
WITHIN_S = 30


async def measure(at: Path, options: argparse.Namespace) -> tuple[list[Measurement], dict[str, Any]]:
    """Start it on empty folders; measure the median time to the first response, and the memory of the last start."""
    first_responses_s: list[float] = []
    memory = 0.0
    _start(at / "dev-first")  # compiles the modules that have changed
    bare_before = await measure_bare_speed(options.seconds)
    for nth in range(max(3, options.rounds)):
        took_s, memory = _start(at / f"dev-{nth}")
        first_responses_s.append(took_s)
    bare = average_speed(bare_before, await measure_bare_speed(options.seconds))
    return [
        Measurement(
            "T7", "", "waypost dev: first response after its start", statistics.median(first_responses_s), "s",
            FIRST_RESPONSE_S / bare.factor, lower_is_better=True,
            note=f"{min(first_responses_s):.2f} to {max(first_responses_s):.2f}; bare {bare.per_s:,.0f}/s",
        ),
        Measurement("T7", "", "waypost dev: memory when idle", memory, "MB", IDLE_MB, lower_is_better=True),
    ], {"first_s": first_responses_s, "idle_mb": memory, "bare": asdict(bare)}  # fmt: skip


def _start(folder: Path) -> tuple[float, float]:
    """Return the time to the first response, and the memory. Modules are compiled, as those of an installed package."""
    folder.mkdir()
    port = free_port()
    command = [
        *(sys.executable, "-m", "waypost", "dev", "--data", str(folder), "--port", str(port)),
        *("--simulator-port", str(free_port())),
    ]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began_s = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, env=environment)
    try:
        while not _responds(port):
            if time.monotonic() - began_s > WITHIN_S or process.poll() is not None:
                raise RuntimeError("waypost dev does not respond")
            time.sleep(0.005)
        took_s = time.monotonic() - began_s
        time.sleep(IDLE_AFTER_S)
        status = Path(f"/proc/{process.pid}/status").read_text()
        [kb] = re.findall(r"VmRSS:\s+(\d+) kB", status)
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.wait(30)
    return took_s, int(kb) / 1024


def _responds(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10).close()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False
    return True
