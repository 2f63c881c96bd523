"""Processes of programs that are not ours: started without privileges, observed as trees, ended by their ids."""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.processes import cpu_s

USER, GROUP = "nobody", "nogroup"
_PR_SET_PDEATHSIG = 1


class NotInstalled(Exception):
    """A product cannot run here; the text says what to install."""


def require_programs(programs: Iterable[str], *, install: str) -> None:
    """Raise `NotInstalled` unless all programs are there."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        raise NotInstalled(f"{', '.join(missing)} not found; install with: {install}")


def make_folder(path: Path) -> Path:
    """Create a folder that the user of external programs owns."""
    path.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        shutil.chown(path, USER)
    return path


class External:
    """One running program; its output goes to a file in its folder.

    Args:
        name: of the file.
        command: the program and its arguments.
        folder: where it runs.
        environment: besides path, home and language.
        drops_privileges: whether a run as root starts it as `nobody`.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        drops_privileges: bool = True,
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.out"
        drops = drops_privileges and os.geteuid() == 0
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                [str(part) for part in command],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", **(environment or {})},
                preexec_fn=_end_with_parent,
                user=USER if drops else None,
                group=GROUP if drops else None,
                extra_groups=[] if drops else None,
            )
        self.pid = self._process.pid

    def wait_for(self, is_ready: Callable[[], bool], *, within_s: float = 60) -> None:
        """Return once a condition is true.

        Raises:
            RuntimeError: the program has ended, or the condition is still false; with the end of its output.
        """
        deadline_s = time.monotonic() + within_s
        while not is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                ended = (
                    f"ended with {self._process.returncode}" if self._process.returncode is not None else "not ready"
                )
                raise RuntimeError(f"{self.name} {ended}: {self.log.read_text(errors='replace')[-600:]}")
            time.sleep(0.05)

    def wait_listening(self, port: int, *, within_s: float = 60) -> None:
        """Return once it accepts connections."""
        self.wait_for(lambda: is_listening(port), within_s=within_s)

    def end(self, number: int = signal.SIGTERM, *, within_s: float = 10) -> None:
        """Send a signal to it and wait; kill its tree if it does not end."""
        if self._process.poll() is None:
            self._process.send_signal(number)
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill it and all its descendants."""
        kill_tree(self.pid)
        self._process.wait()


def is_listening(port: int) -> bool:
    """True if something accepts connections on a loopback port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def tree_of(pid: int) -> list[int]:
    """Return a process and its descendants."""
    pids = [pid]
    for parent in pids:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                pids += [int(child) for child in (task / "children").read_text().split()]
    return pids


def kill_tree(pid: int) -> None:
    """Kill a process and its descendants; stop it first, so that it starts no more."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    for each in reversed(tree_of(pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


class TreeCpu:
    """The processor time of process trees; what ended keeps its last value."""

    def __init__(self) -> None:
        self._cpu_s_by_pid: dict[int, float] = {}

    def read_s(self, roots: Iterable[int]) -> float:
        """Return the sum of the trees."""
        pids = [pid for root in roots for pid in tree_of(root)]
        for pid in pids:
            with contextlib.suppress(OSError):
                self._cpu_s_by_pid[pid] = cpu_s(pid)
        return sum(self._cpu_s_by_pid.get(pid, 0.0) for pid in self._cpu_s_by_pid)


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
