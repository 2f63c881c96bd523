"""Processes of our own: each with a log of its own, and ended by its handle, never by a name."""

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
_MOST_WORKERS: Final = 16
_recent_ports: Final = deque[int](maxlen=400)
SETTLES_WITHIN_S: Final = 180
"""What is waited for comes sooner, however busy the machine is, or does not come."""


class NotInTime(AssertionError):
    """What was waited for did not come; the text says what, and what was seen instead."""


class Child:
    """One process, which may be started again after its end.

    Args:
        name: for failures.
        command: what to run.
        variables: of its environment, beside those of ours that are not Waypost's.
        log: takes what it prints, over all its starts.
    """

    def __init__(self, name: str, command: Sequence[str], variables: dict[str, str], log: Path) -> None:
        self.name = name
        self._command = list(command)
        ours = {key: text for key, text in os.environ.items() if not key.startswith("WAYPOST_")}
        self._variables = {**ours, "PYTHONPATH": str(SOURCES), **variables}
        self._log = log
        self._running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        with self._log.open("ab") as log:
            self._running = subprocess.Popen(
                self._command,
                env=self._variables,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                preexec_fn=end_with_parent,  # one thread starts everything, before it has others
            )

    @property
    def status(self) -> int | None:
        """How it ended; None while it runs."""
        return self._running.poll() if self._running is not None else None

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self._running is not None, f"{self.name} was never started"
        return self._running.pid

    def kill(self) -> None:
        """End it between any two instructions."""
        if self._running is not None:
            self._running.send_signal(signal.SIGKILL)
            self._running.wait(SETTLES_WITHIN_S)

    def pause(self) -> None:
        """Let it do nothing more, its connections open, until `resume`."""
        if self._running is not None:
            self._running.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Go on after `pause`."""
        if self._running is not None:
            self._running.send_signal(signal.SIGCONT)

    def ask_to_stop(self) -> None:
        """Send SIGTERM."""
        if self._running is not None:
            self._running.send_signal(signal.SIGTERM)

    async def ended(self, *, within_s: float = SETTLES_WITHIN_S) -> int:
        """Its exit status."""
        until_s = time.monotonic() + within_s
        while (status := self.status) is None:
            if time.monotonic() > until_s:
                raise NotInTime(f"{self.name} did not end within {within_s} s\n{self.last_lines()}")
            await asyncio.sleep(0.005)
        return status

    def close(self) -> None:
        """End it if it runs, politely first."""
        if self._running is None or self.status is not None:
            return
        self.resume()
        self.ask_to_stop()
        try:
            self._running.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()

    def lines(self) -> list[str]:
        """Everything it printed."""
        return self._log.read_text(errors="replace").splitlines() if self._log.exists() else []

    def last_lines(self, count: int = 25) -> str:
        """The end of what it printed, for failures."""
        shown = "\n    ".join(self.lines()[-count:]) or "(nothing)"
        return f"{self.name}, status {self.status}, printed last:\n    {shown}"


def end_with_parent() -> None:
    """On Linux a child is killed when whoever started it ends, so that none is ever left behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port() -> int:
    """A loopback port that nobody listens on, and that no outgoing connection is given.

    It lies below the range of outgoing ports: while a killed process is away, a client's own
    connection could otherwise be given its port, and keep it from coming back. Chance is the
    system's: the seed of the tests is the same in every worker. Each worker of the tests has ports
    of its own, and none is given twice in a row, so that two that ask before they listen do not meet.
    """
    chance = random.SystemRandom()
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _MOST_WORKERS
    for _ in range(200):
        port = chance.randrange(12_000 + worker, 31_000, _MOST_WORKERS)
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
    raise NotInTime("no free port was found in 200 tries")
