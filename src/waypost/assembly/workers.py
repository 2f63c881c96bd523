"""`waypost serve --workers N`: a supervisor that starts N worker processes, and restarts them.

The supervisor opens no store and serves no requests. It binds one socket for each worker, all to the same
port, and each worker inherits its descriptor: the kernel spreads new connections evenly over them, and
those in the backlog of a worker that has died are served by its successor (decision 0053).
"""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from waypost.assembly.http.sockets import bind_for_workers, port_of
from waypost.base.telemetry.logs import log
from waypost.config import Settings
from waypost.store.contract import EXIT_STORE_UNAVAILABLE

# fmt: off
RESTART_DELAYS_S: Final = (0.1, 0.5, 1, 2, 5)  # delay between the end of a worker and its restart; the last one repeats
MIN_LIFETIME_S: Final = 10                   # a worker that ends sooner after it was ready has failed
MAX_SHORT_LIVES: Final = 5              # the supervisor gives up after so many failures in a row
STOP_GRACE_S: Final = 10                    # on top of `stop_within_s`: for open requests, and to close the store
# fmt: on

READY_LINE: Final = b"ready"
"""The line that a worker prints once it serves requests."""

PrintLine = Callable[[str], None]


class WorkersFailed(Exception):
    """Workers did not start, or ended repeatedly. The text is empty if they have printed the reason themselves.

    Attributes:
        code: to exit with.
    """

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


@dataclass(slots=True)
class _WorkerSlot:
    """One worker over all its restarts."""

    number: int
    bound: socket.socket
    process: asyncio.subprocess.Process | None = None
    was_ready: asyncio.Event = field(default_factory=asyncio.Event)  # set once a process has been ready
    short_lives: int = 0  # number of failures in a row


class WorkerSupervisor:
    """The supervisor of the worker processes.

    Args:
        settings: with `workers`.
        command: starts a worker, without its number and its descriptor.
        restart_delays_s: delays between the end of a worker and its restart; the last one repeats.
    """

    def __init__(
        self,
        settings: Settings,
        command: Sequence[str],
        *,
        print_line: PrintLine,
        restart_delays_s: Sequence[float] = RESTART_DELAYS_S,
    ) -> None:
        self._settings = settings
        self._command = tuple(command)
        self._print_line = print_line
        self._restart_delays_s = restart_delays_s
        self._slots: list[_WorkerSlot] = []
        self._stopping = asyncio.Event()
        self._first_signal_s: float | None = None
        self._failed: WorkersFailed | None = None
        self._log = log("workers")

    async def run(self, *, ready: Callable[[str], None]) -> None:
        """Start the workers, keep them running until a signal, and stop them in order.

        Raises:
            PortInUse: the port is in use.
            WorkersFailed: the first did not start, or one ended repeatedly.
        """
        settings = self._settings
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._handle_signal, number)
        bound = bind_for_workers(settings.host, settings.port, settings.workers, option="--port")
        self._slots = [_WorkerSlot(number, each) for number, each in enumerate(bound, start=1)]
        tasks: list[asyncio.Task[None]] = []
        try:
            first, *others = self._slots
            # The first one starts alone: it creates or upgrades the store, and prints any error once.
            tasks.append(asyncio.create_task(self._keep_running(first)))
            await self._wait_until_ready(first)
            tasks += [asyncio.create_task(self._keep_running(slot)) for slot in others]
            for slot in others:
                await self._wait_until_ready(slot)
            if not self._stopping.is_set():
                ready(f"http://{settings.host}:{port_of(first.bound)}")
            await self._stopping.wait()
        finally:
            self._stopping.set()
            for slot in self._slots:
                slot.bound.close()  # our copy; new connections are rejected from now on instead of waiting
            await self._stop()
            await asyncio.gather(*tasks)
        if self._failed is not None:
            raise self._failed

    async def _wait_until_ready(self, slot: _WorkerSlot) -> None:
        waits = [asyncio.create_task(event.wait()) for event in (slot.was_ready, self._stopping)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def _keep_running(self, slot: _WorkerSlot) -> None:
        """Start a worker, and restart it whenever it ends."""
        while not self._stopping.is_set():
            lived_s, code = await self._run_worker(slot)
            if self._stopping.is_set():
                return
            self._count_failure(slot, lived_s, code)
            wait_s = self._restart_delays_s[min(slot.short_lives, len(self._restart_delays_s) - 1)]
            if not self._stopping.is_set():
                self._log.warning(
                    "a worker has ended and is restarted", worker=slot.number, ended=_describe_exit(code), in_s=wait_s
                )
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._stopping.wait()

    async def _run_worker(self, slot: _WorkerSlot) -> tuple[float | None, int]:
        """Run one worker process; return how long it was ready (None: never) and its exit code."""
        began_s = time.monotonic()
        descriptor = slot.bound.fileno()
        slot.process = process = await asyncio.create_subprocess_exec(
            *self._command,
            *("--worker", str(slot.number), "--socket", str(descriptor)),
            *("--port", str(port_of(slot.bound))),
            stdin=asyncio.subprocess.PIPE,  # it closes when this process ends, which stops the worker
            stdout=asyncio.subprocess.PIPE,
            pass_fds=(descriptor,),
            start_new_session=True,  # a terminal's signals reach this process only, which forwards them
        )
        if self._stopping.is_set():  # signalled while the worker was being started
            process.terminate()
        since_s: float | None = None
        output = process.stdout
        while output is not None and (line := await output.readline()):
            if line.strip() != READY_LINE:
                continue
            since_s = time.monotonic()
            slot.was_ready.set()
            size = _memory_mb(process.pid)
            self._print_line(
                f"worker {slot.number} is ready after {since_s - began_s:.1f} s" + (f", {size} MB" if size else "")
            )
        code = await process.wait()
        slot.process = None
        return None if since_s is None else time.monotonic() - since_s, code

    def _count_failure(self, slot: _WorkerSlot, ready_s: float | None, code: int) -> None:
        """Count failures, and give up if a restart would not help."""
        if ready_s is not None and ready_s >= MIN_LIFETIME_S:
            slot.short_lives = 0
            return
        if not slot.was_ready.is_set() and slot is self._slots[0]:
            # A process that exits by itself has printed the reason, in one line.
            self._give_up("" if code > 0 else f"the first worker ended {_describe_exit(code)}", code)
        elif code != EXIT_STORE_UNAVAILABLE:  # while the store is unavailable, keep retrying
            slot.short_lives += 1
        if slot.short_lives >= MAX_SHORT_LIVES:
            self._give_up(
                f"worker {slot.number} ended {slot.short_lives} times within {MIN_LIFETIME_S} s of its start, "
                f"the last time {_describe_exit(code)}; see the log",
                1,
            )

    def _give_up(self, text: str, code: int) -> None:
        self._failed = WorkersFailed(text, code if code > 0 else 1)
        if text:
            self._log.error(text)
        self._stopping.set()

    def _handle_signal(self, number: int) -> None:
        """Handle a signal: stop in order at the first, at once at a later one.

        A second one within a second is ignored: a terminal and a supervisor may both send it.
        """
        now_s = time.monotonic()
        if self._first_signal_s is not None and now_s - self._first_signal_s > 1:
            self._signal_all(signal.SIGKILL)
            os._exit(128 + number)
        self._first_signal_s = self._first_signal_s or now_s
        self._stopping.set()

    async def _stop(self) -> None:
        self._signal_all(signal.SIGTERM)
        until_s = time.monotonic() + self._settings.drain_s + self._settings.stop_within_s + STOP_GRACE_S
        while any(slot.process for slot in self._slots):
            if time.monotonic() > until_s:
                self._log.error("workers did not stop in time, and were killed")
                self._signal_all(signal.SIGKILL)
                until_s = float("inf")
            await asyncio.sleep(0.01)

    def _signal_all(self, number: signal.Signals) -> None:
        for slot in self._slots:
            if slot.process is not None:
                with contextlib.suppress(ProcessLookupError):
                    slot.process.send_signal(number)


def worker_command(options: Sequence[str]) -> list[str]:
    """Return the command of a worker: this program, with the options of this process."""
    return [sys.executable, "-m", "waypost", "serve", *options]


def _describe_exit(code: int) -> str:
    """Return how a process ended, as text."""
    if code >= 0:
        return f"with exit code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"


def _memory_mb(pid: int) -> int | None:
    """Return the resident memory of a process; None if the system does not report it."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") // 1_000_000
