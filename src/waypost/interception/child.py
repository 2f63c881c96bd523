"""Starts the intercepted program through `launcher`, passes signals on to it, and waits for its end."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from waypost.base.files import InheritedUmask

PASSED_SIGNALS: Final = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCONT,
)  # fmt: skip
_LAUNCHER: Final = str(Path(__file__).with_name("launcher.py"))
_OUTCOME_BYTES: Final = 65_536


class NamesUnavailable(Exception):
    """This machine does not let the child have a name map; the text says what is not allowed."""


@dataclass(frozen=True, slots=True)
class NameMap:
    """The name map that the launcher puts in place for the child.

    Attributes:
        binds: file of ours, file in its place.
        host: one that must lead to `address` then.
    """

    binds: Sequence[tuple[str, str]]
    host: str
    address: str


class SignalReceiver:
    """Takes the signals of this process from now on, in a thread; created before any other thread.

    Attributes:
        previous_mask: of blocked signals, which the program gets.
        deliver: called from the thread with a signal, and whether a process has sent it; otherwise the terminal has,
            to the program as well.
    """

    def __init__(self, deliver: Callable[[int, bool], object]) -> None:
        self.previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_SIGNALS)
        self.deliver = deliver
        threading.Thread(target=self._receive, name="signals", daemon=True).start()

    def _receive(self) -> None:
        while True:
            received = signal.sigwaitinfo(PASSED_SIGNALS)
            self.deliver(received.si_signo, received.si_code <= 0)


class InterceptedChild:
    """The program, from its launcher on, which starts beside us and waits for `prepare`.

    Attributes:
        redirected: the descriptor for `ConnectRedirection`; None without a name map.

    Args:
        command: the program and its arguments.
        blocked: the signals that the program blocks at its start.
    """

    def __init__(self, command: Sequence[str], blocked: Iterable[int]) -> None:
        self.command, self.blocked = command, tuple(blocked)
        self.redirected: int | None = None
        ours, theirs = socket.socketpair()
        self._control = ours
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  the user's own command
                [sys.executable, "-I", "-S", _LAUNCHER, str(theirs.fileno()), *command], pass_fds=(theirs.fileno(),)
            )

    def prepare(self, name_map: NameMap | None) -> None:
        """Give it the name map, if there is one.

        Raises:
            NamesUnavailable: the machine does not allow the name map; the launcher has ended.
        """
        blocked = [int(number) for number in self.blocked]
        task: dict[str, Any] = {"binds": [], "blocked_signals": blocked, "umask": InheritedUmask.value}
        if name_map is not None:
            task |= {"binds": list(name_map.binds), "host": name_map.host, "address": name_map.address}
        self._control.sendall(json.dumps(task).encode() + b"\n")
        outcome, descriptors, _, _ = socket.recv_fds(self._control, _OUTCOME_BYTES, 1)
        self.redirected = descriptors[0] if descriptors else None
        error: str = json.loads(outcome or '{"error": "the launcher has ended"}').get("error", "")
        if error:
            self._control.close()
            self._process.wait()
            raise NamesUnavailable(error)

    @property
    def process_id(self) -> int:
        """Id of the program's process."""
        return self._process.pid

    def run(self, environment: Mapping[str, str]) -> None:
        """Let the launcher become the program."""
        self._control.sendall(json.dumps(dict(environment)).encode() + b"\n")
        self._control.close()

    def pass_signal(self, number: int, is_from_process: bool) -> None:
        """Send the program a signal that a process has sent us; those of a terminal it has already."""
        if is_from_process:
            self._process.send_signal(number)

    async def wait(self) -> int:
        """Return its exit code, or minus the number of the signal that ended it."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        descriptor = os.pidfd_open(self._process.pid)
        loop.add_reader(descriptor, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
        return self._process.wait()

    def kill(self) -> None:
        """End it, if we cannot go on."""
        self._control.close()
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def exit_as(status: int) -> int:
    """Return the exit code of a program; one that a signal ended ends us by the same signal.

    Args:
        status: as `InterceptedChild.wait` returns it.
    """
    if status >= 0:
        return status
    number = -status
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program's is enough
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    sys.stdout.flush()
    os.kill(os.getpid(), number)
    return 128 + number
