"""Child processes: each has its own log and is ended by its handle, never by name."""

import asyncio
import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).parents[1] / "src"
_PR_SET_PDEATHSIG: Final = 1
_MAX_WORKERS: Final = 16
_recent_ports: Final = deque[int](maxlen=400)
TIMEOUT_S: Final = 180
"""A condition that is not true by then will not become true, however busy the machine is."""


class NotInTime(AssertionError):
    """A condition was not true in time; the text names it and shows the state instead."""


class Child:
    """A process that can be started again after it has ended.

    Args:
        name: used in failure messages.
        command: the command to run.
        variables: environment variables in addition to ours, without Waypost's.
        log: the file that receives its output, over all its starts.
    """

    def __init__(self, name: str, command: Sequence[str], variables: dict[str, str], log: Path) -> None:
        self.name = name
        self._command = list(command)
        inherited = {key: text for key, text in os.environ.items() if not key.startswith("WAYPOST_")}
        self._variables = {**inherited, "PYTHONPATH": str(SOURCES), **variables}
        self._log = log
        self._running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process."""
        with self._log.open("ab") as log:
            self._running = subprocess.Popen(
                self._command,
                env=self._variables,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                preexec_fn=end_with_parent,  # safe: no other thread runs yet
            )

    @property
    def status(self) -> int | None:
        """The exit status; None while it runs."""
        return self._running.poll() if self._running is not None else None

    @property
    def pid(self) -> int:
        """The pid of the running process."""
        assert self._running is not None, f"{self.name} was never started"
        return self._running.pid

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        if self._running is not None:
            self._running.send_signal(signal.SIGKILL)
            self._running.wait(TIMEOUT_S)

    def pause(self) -> None:
        """Stop it with its connections open, until `resume`."""
        if self._running is not None:
            self._running.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue after `pause`."""
        if self._running is not None:
            self._running.send_signal(signal.SIGCONT)

    def terminate(self) -> None:
        """Send SIGTERM."""
        if self._running is not None:
            self._running.send_signal(signal.SIGTERM)

    async def wait_ended(self, *, within_s: float = TIMEOUT_S) -> int:
        """Wait until it has ended; return its exit status."""
        deadline_s = time.monotonic() + within_s
        while (status := self.status) is None:
            if time.monotonic() > deadline_s:
                raise NotInTime(f"{self.name} did not end within {within_s} s\n{self.last_lines()}")
            await asyncio.sleep(0.005)
        return status

    def close(self) -> None:
        """End it if it runs: SIGTERM first, then SIGKILL."""
        if self._running is None or self.status is not None:
            return
        self.resume()
        self.terminate()
        try:
            self._running.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()

    def lines(self) -> list[str]:
        """Return everything it printed."""
        return self._log.read_text(errors="replace").splitlines() if self._log.exists() else []

    def last_lines(self, count: int = 25) -> str:
        """Return the last lines it printed, for failure messages."""
        lines = "\n    ".join(self.lines()[-count:]) or "(nothing)"
        return f"{self.name}, status {self.status}, last output:\n    {lines}"


def end_with_parent() -> None:
    """Kill the child when its parent ends, on Linux, so that none is left behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port() -> int:
    """Return a free loopback port that no outgoing connection can be assigned.

    It is below the range of outgoing ports: while a killed process is down, a client's connection could
    otherwise be assigned its port and block its restart. The random source is the system's, because
    the seed of the tests is the same in every worker. Each test worker has its own ports, and none is
    returned twice in a row, so that two callers that do not listen yet do not collide.
    """
    rng = random.SystemRandom()
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _MAX_WORKERS
    for _ in range(200):
        port = rng.randrange(12_000 + worker, 31_000, _MAX_WORKERS)
        if port in _recent_ports:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            _recent_ports.append(port)
            return port
    raise NotInTime("no free port in 200 attempts")
