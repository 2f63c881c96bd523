"""`waypost serve --workers N`: one process that starts N others, and keeps them.

The supervisor opens no store and answers nobody. It binds one socket for each worker, all to the same
port, and hands it down by its descriptor: the kernel spreads new connections evenly over them, and
those that wait in the queue of a worker that has died are answered by the next one (decision 0053).
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

# fmt: off
AGAIN_S: Final = (0.1, 0.5, 1, 2, 5)  # how long after the end of a worker the next one is started; the last repeats
YOUNG_S: Final = 10                   # one that ends sooner after it was ready did not live
GIVE_UP_AFTER: Final = 5              # so many in a row that did not live
LEFT_S: Final = 10                    # beyond `stop_within_s`: to answer what is being answered, and to close the store
STORE_AWAY: Final = 75                # the exit code of what found no store: EX_TEMPFAIL of sysexits.h
# fmt: on

READY: Final = b"ready"
"""The line by which a worker says that it answers requests."""

Say = Callable[[str], None]


class WorkersFailed(Exception):
    """Workers did not start, or ended again and again; the text says it, unless they have said it themselves.

    Attributes:
        code: to exit with.
    """

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


@dataclass(slots=True)
class _Seat:
    """One worker's place, over all its lives.

    Attributes:
        lived: set once one has been ready.
        short_lives: how many in a row did not live.
    """

    number: int
    bound: socket.socket
    process: asyncio.subprocess.Process | None = None
    lived: asyncio.Event = field(default_factory=asyncio.Event)
    short_lives: int = 0


class Workers:
    """The supervisor.

    Args:
        settings: with `workers`.
        command: what starts a worker, but for its number and its descriptor.
        say: takes a line for whoever has started this.
        again_s: how long after the end of a worker the next one is started; the last repeats.
    """

    def __init__(
        self, settings: Settings, command: Sequence[str], *, say: Say, again_s: Sequence[float] = AGAIN_S
    ) -> None:
        self._settings = settings
        self._command = tuple(command)
        self._say = say
        self._again_s = again_s
        self._seats: list[_Seat] = []
        self._stopping = asyncio.Event()
        self._first_signal_s: float | None = None
        self._failed: WorkersFailed | None = None
        self._log = log("workers")

    async def run(self, *, ready: Callable[[str], None]) -> None:
        """Start them, keep them until a signal, stop them in order.

        Raises:
            PortInUse: somebody else listens there.
            WorkersFailed: the first did not start, or one ended again and again.
        """
        settings = self._settings
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._hear, number)
        bound = bind_for_workers(settings.host, settings.port, settings.workers, option="--port")
        self._seats = [_Seat(number, one) for number, one in enumerate(bound, start=1)]
        keepers: list[asyncio.Task[None]] = []
        try:
            first, *others = self._seats
            # One alone at first: it makes or upgrades the store, and says what is wrong once.
            keepers.append(asyncio.create_task(self._keep(first)))
            await self._is_ready(first)
            keepers += [asyncio.create_task(self._keep(seat)) for seat in others]
            for seat in others:
                await self._is_ready(seat)
            if not self._stopping.is_set():
                ready(f"http://{settings.host}:{port_of(first.bound)}")
            await self._stopping.wait()
        finally:
            self._stopping.set()
            for seat in self._seats:
                seat.bound.close()  # ours; whoever connects from now on is refused, and not left waiting
            await self._stop()
            await asyncio.gather(*keepers)
        if self._failed is not None:
            raise self._failed

    async def _is_ready(self, seat: _Seat) -> None:
        waits = [asyncio.create_task(one.wait()) for one in (seat.lived, self._stopping)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for one in waits:
            one.cancel()

    async def _keep(self, seat: _Seat) -> None:
        """Start a worker, and another one after its end."""
        while not self._stopping.is_set():
            lived_s, code = await self._live(seat)
            if self._stopping.is_set():
                return
            self._judge(seat, lived_s, code)
            wait_s = self._again_s[min(seat.short_lives, len(self._again_s) - 1)]
            if not self._stopping.is_set():
                self._log.warning(
                    "a worker has ended; another takes its place", worker=seat.number, ended=_how(code), in_s=wait_s
                )
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._stopping.wait()

    async def _live(self, seat: _Seat) -> tuple[float | None, int]:
        """One worker's life: for how long it was ready, None for never, and how it ended."""
        began_s = time.monotonic()
        descriptor = seat.bound.fileno()
        seat.process = process = await asyncio.create_subprocess_exec(
            *self._command,
            *("--worker", str(seat.number), "--socket", str(descriptor)),
            *("--port", str(port_of(seat.bound))),
            stdin=asyncio.subprocess.PIPE,  # its end tells a worker that this process is no more
            stdout=asyncio.subprocess.PIPE,
            pass_fds=(descriptor,),
            start_new_session=True,  # a terminal's signals come to this process, which passes them on
        )
        if self._stopping.is_set():  # told while it was being started
            process.terminate()
        since_s: float | None = None
        said = process.stdout
        while said is not None and (line := await said.readline()):
            if line.strip() != READY:
                continue
            since_s = time.monotonic()
            seat.lived.set()
            size = _size_mb(process.pid)
            self._say(
                f"worker {seat.number} is ready after {since_s - began_s:.1f} s" + (f", {size} MB" if size else "")
            )
        code = await process.wait()
        seat.process = None
        return None if since_s is None else time.monotonic() - since_s, code

    def _judge(self, seat: _Seat, lived_s: float | None, code: int) -> None:
        """Give up where starting another one would not help."""
        if lived_s is not None and lived_s >= YOUNG_S:
            seat.short_lives = 0
            return
        if not seat.lived.is_set() and seat is self._seats[0]:
            # What exits by itself has said why, in one line.
            self._give_up("" if code > 0 else f"the first worker ended {_how(code)}", code)
        elif code != STORE_AWAY:  # for a store that is away there is only waiting
            seat.short_lives += 1
        if seat.short_lives >= GIVE_UP_AFTER:
            self._give_up(
                f"worker {seat.number} ended {seat.short_lives} times within {YOUNG_S} s of its start, "
                f"the last time {_how(code)}; the log says why",
                1,
            )

    def _give_up(self, text: str, code: int) -> None:
        self._failed = WorkersFailed(text, code if code > 0 else 1)
        if text:
            self._log.error(text)
        self._stopping.set()

    def _hear(self, number: int) -> None:
        """A signal: stop in order at the first, at once at a later one.

        One within the same second does not count: a terminal and a supervisor may send the same twice.
        """
        now_s = time.monotonic()
        if self._first_signal_s is not None and now_s - self._first_signal_s > 1:
            self._signal_all(signal.SIGKILL)
            os._exit(128 + number)
        self._first_signal_s = self._first_signal_s or now_s
        self._stopping.set()

    async def _stop(self) -> None:
        self._signal_all(signal.SIGTERM)
        until_s = time.monotonic() + self._settings.stop_within_s + LEFT_S
        while any(seat.process for seat in self._seats):
            if time.monotonic() > until_s:
                self._log.error("workers did not stop in time, and were ended by force")
                self._signal_all(signal.SIGKILL)
                until_s = float("inf")
            await asyncio.sleep(0.01)

    def _signal_all(self, number: signal.Signals) -> None:
        for seat in self._seats:
            if seat.process is not None:
                with contextlib.suppress(ProcessLookupError):
                    seat.process.send_signal(number)


def worker_command(options: Sequence[str]) -> list[str]:
    """What starts a worker: this very program, with the options that this process was given."""
    return [sys.executable, "-m", "waypost", "serve", *options]


def _how(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"with exit code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"


def _size_mb(pid: int) -> int | None:
    """How much memory a process takes, where the system says it."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") // 1_000_000
