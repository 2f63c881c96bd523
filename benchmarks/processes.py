"""The other processes of a measurement: started, watched, profiled, ended; and the machine they run on."""

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
    """One Python process of a measurement, listening on a port of its own on loopback."""

    def __init__(self, module: str, *options: str, port: int | None = None) -> None:
        self.module = module
        self.port = port or free_port()
        command = [sys.executable, "-m", module, "--port", str(self.port), *options]
        self._process = subprocess.Popen(command, preexec_fn=_end_with_parent)
        self.pid = self._process.pid

    def wait_ready(self, *, within_s: float = 20) -> None:
        """Return once it takes connections."""
        until_s = time.monotonic() + within_s
        while time.monotonic() < until_s:
            if self._process.poll() is not None:
                raise RuntimeError(f"{self.module} ended with {self._process.returncode}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise TimeoutError(f"{self.module} does not listen")

    def cpu_s(self) -> float:
        """Processor time it has used, in its own and the system's code."""
        return cpu_s(self.pid)

    def get(self, path: str) -> Any:
        """The JSON it answers."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as answer:
            return json.loads(answer.read())

    def wait_answering(self, path: str = "/healthz", *, within_s: float = 30) -> None:
        """Return once it answers: it listens before it has opened what it needs."""
        self.wait_ready(within_s=within_s)
        address = f"http://127.0.0.1:{self.port}{path}"
        urllib.request.urlopen(address, timeout=within_s).close()

    def wait_ended(self, *, within_s: float) -> None:
        """Return once it has ended by itself.

        Raises:
            TimeoutExpired: it has not.
        """
        if self._process.wait(within_s):
            raise RuntimeError(f"{self.module} ended with {self._process.returncode}")

    def rss_mb(self) -> float:
        """Memory of its own that it has in use."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        [kb] = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
        return int(kb) / 1024

    def end(self) -> None:
        """Ask it to stop, and wait."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _end_with_parent() -> None:
    """On Linux a child is told to stop when the measurement is killed, so that none is left behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def cpu_s(pid: int) -> float:
    """Processor time of a process, all its threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def folder() -> Generator[Path]:
    """A folder for stores, on the disk of the checkout (`/tmp` may be memory), gone at the end."""
    LOCAL.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="stores-", dir=LOCAL, ignore_cleanup_errors=True) as at:
        yield Path(at)


def flush_us(at: Path, *, times: int = 200) -> float:
    """How long the disk takes to flush an append of 4 KiB, the median."""
    took: list[float] = []
    with (at / "flush").open("wb") as file:
        for _ in range(times):
            file.write(os.urandom(4096))
            file.flush()
            began_s = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - began_s)
    return round(statistics.median(took) * 1e6)


def machine(at: Path) -> dict[str, Any]:
    """What the figures were taken on."""
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


def keep(name: str, result: dict[str, Any]) -> Path:
    """Write a result; it stays local until somebody moves it into `results/`."""
    LOCAL.mkdir(parents=True, exist_ok=True)
    path = LOCAL / f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    return path


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    return done.stdout.strip()
