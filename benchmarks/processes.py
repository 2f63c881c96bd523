"""The other processes of a measurement: started, observed, profiled, ended; and the machine they run on."""

import ctypes
import json
import os
import platform
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
LOCAL = RESULTS / "local"
_PR_SET_PDEATHSIG = 1
_TICKS = os.sysconf("SC_CLK_TCK")


class Child:
    """A Python process of a measurement that listens on its own loopback port."""

    def __init__(self, module: str, *options: str, port: int | None = None) -> None:
        self.module = module
        self.port = port or free_port()
        command = [sys.executable, "-m", module, "--port", str(self.port), *options]
        self._process = subprocess.Popen(command, preexec_fn=_end_with_parent)
        self.pid = self._process.pid

    def wait_ready(self, *, within_s: float = 20) -> None:
        """Return once it accepts connections."""
        deadline_s = time.monotonic() + within_s
        while time.monotonic() < deadline_s:
            if self._process.poll() is not None:
                raise RuntimeError(f"{self.module} ended with {self._process.returncode}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise TimeoutError(f"{self.module} does not accept connections")

    def cpu_s(self) -> float:
        """Return the processor time it has used, in user and system mode."""
        return cpu_s(self.pid)

    def get(self, path: str) -> Any:
        """Return the JSON of the response."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as response:
            return json.loads(response.read())

    def wait_responding(self, path: str = "/healthz", *, within_s: float = 30) -> None:
        """Return once it responds: it listens before it has opened its store."""
        self.wait_ready(within_s=within_s)
        url = f"http://127.0.0.1:{self.port}{path}"
        urllib.request.urlopen(url, timeout=within_s).close()

    def wait_ended(self, *, within_s: float) -> None:
        """Return once it has ended by itself.

        Raises:
            TimeoutExpired: it has not ended.
        """
        if self._process.wait(within_s):
            raise RuntimeError(f"{self.module} ended with {self._process.returncode}")

    def rss_mb(self) -> float:
        """Return its resident memory."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        [kb] = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
        return int(kb) / 1024

    def end(self) -> None:
        """Send SIGTERM and wait; kill it if it does not end."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _end_with_parent() -> None:
    """Stop the child when its parent is killed, on Linux, so that none is left behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def cpu_s(pid: int) -> float:
    """Return the processor time of a process, all threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def temporary_folder() -> Generator[Path]:
    """Yield a folder for stores, on the disk of the checkout (`/tmp` may be memory); deleted at the end."""
    LOCAL.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="stores-", dir=LOCAL, ignore_cleanup_errors=True) as at:
        yield Path(at)


def flush_us(at: Path, *, times: int = 200) -> float:
    """Return the median time of a flush of an append of 4 KiB."""
    took_s: list[float] = []
    with (at / "flush").open("wb") as file:
        for _ in range(times):
            file.write(os.urandom(4096))
            file.flush()
            began_s = time.perf_counter()
            os.fdatasync(file.fileno())
            took_s.append(time.perf_counter() - began_s)
    return round(statistics.median(took_s) * 1e6)


def describe_machine(at: Path) -> dict[str, Any]:
    """Return a description of the machine and the revision."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if "model name" in line), "?")
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "flush_us": flush_us(at),
        "load_before": os.getloadavg()[0],
        "revision": _git("rev-parse", "--short", "HEAD"),
        "changed_files": len(_git("status", "--porcelain", "--", "src", "benchmarks").splitlines()),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def write_result(name: str, result: dict[str, Any]) -> Path:
    """Write a result to `results/local/`; return its path."""
    LOCAL.mkdir(parents=True, exist_ok=True)
    path = LOCAL / f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    return path


def _git(*arguments: str) -> str:
    completed_process = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    return completed_process.stdout.strip()
