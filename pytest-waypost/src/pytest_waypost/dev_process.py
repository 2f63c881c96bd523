"""Processes of Waypost: `waypost dev`, from another environment or an image too, and `waypost intercept`."""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import IO, Final

START_TIMEOUT_S: Final = 300
"""Longer than a tool such as uvx takes to download Waypost at its first run."""
_STOP_TIMEOUT_S: Final = 20
_SHOWN_LINES: Final = 60
_DEV: Final = ("dev", "--memory", "--port", "0", "--simulator-port", "0", "--env-file", "-", "--until-stdin-ends")
_NO_SETTINGS: Final = ("--config", os.devnull)  # not the `waypost.toml` of the folder
_SETTINGS: Final = ("rates=false",)
"""Of every service that tests start, unless theirs differ: a suite creates more than ten templates a minute."""
_INTERCEPT: Final = ("intercept", "--print-variables", "--until-stdin-ends")
_VARIABLE: Final = re.compile(r"([A-Za-z_]+)=(.*)")
_HOW_TO_START: Final = (
    "there is no command `waypost` beside this Python or on the PATH. Install waypost there, or set waypost_command "
    "to the one of another environment (/path/to/venv/bin/waypost), to `uvx --from WHEEL waypost`, or to an image "
    "(podman run --rm -i --network=host IMAGE)"
)


class NotStarted(Exception):
    """No service is available for the tests; the text has the reason and a fix hint."""


class WaypostProcess:
    """A command of Waypost that prints variables and an empty line, and runs until it is stopped.

    It ends with this process, however that happens. WAYPOST_ variables of the shell are ignored.

    Args:
        command: starts Waypost, as in a shell; empty: the `waypost` beside this Python, or on the PATH.
        arguments: what follows it.
        folder: relative paths of the command begin here.
        required_variable: one that it prints if it has started.
        settings: variables that it gets.

    Raises:
        NotStarted: the command cannot be run.
    """

    def __init__(
        self,
        command: str,
        arguments: Sequence[str],
        folder: Path,
        *,
        required_variable: str,
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._words = [*_split_command(command), *arguments]
        self._required_variable = required_variable
        self._variables: dict[str, str] = {}
        self._printed: deque[str] = deque(maxlen=_SHOWN_LINES)
        self._is_complete = False
        self._started = threading.Event()
        try:
            self._process = subprocess.Popen(  # noqa: S603  the command of the project's own configuration
                self._words,
                cwd=folder,
                env={
                    **{name: text for name, text in os.environ.items() if not name.startswith("WAYPOST_")},
                    **settings,
                },
                stdin=subprocess.PIPE,  # it closes when this process ends
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # Ctrl+C ends the tests first, which still use the service
            )
        except OSError as error:
            raise NotStarted(f"waypost_command: {self._words[0]} cannot be run: {error.strerror}") from error
        assert self._process.stdin is not None  # noqa: S101  both are pipes
        assert self._process.stdout is not None  # noqa: S101
        self._stdin: IO[str] = self._process.stdin
        self._reader = threading.Thread(
            target=self._read_output, args=(self._process.stdout,), name="waypost-output", daemon=True
        )
        self._reader.start()

    def wait_until_started(self) -> Mapping[str, str]:
        """Return the variables for other programs, once it serves.

        Raises:
            NotStarted: it has ended, or does not start in time; the text has its output.
        """
        self._started.wait(START_TIMEOUT_S)
        if self._is_complete:
            return self._variables
        self.stop()
        output = "".join(self._printed).strip()
        if not output and not self._process.returncode:
            output = "nothing, and ended in order: its standard input was closed. An image needs `-i`"
        raise NotStarted(f"`{shlex.join(self._words)}` did not start; it printed:\n{output}")

    def stop(self) -> None:
        """Close its standard input, which stops it in order, and wait for its end."""
        with contextlib.suppress(OSError):  # it has ended
            self._stdin.close()
        for end in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                end()
        self._process.wait()
        self._reader.join(_STOP_TIMEOUT_S)

    def _read_output(self, output: IO[str]) -> None:
        """Read until the end of the output, so that the process never waits for a full pipe."""
        with output:
            for line in output:
                variable = _VARIABLE.fullmatch(line.rstrip())
                if variable is not None and not self._is_complete:
                    self._variables[variable[1]] = variable[2]
                elif not line.strip() and self._required_variable in self._variables:  # an empty line ends them
                    self._is_complete = True
                    self._started.set()
                else:
                    self._printed.append(line)
        self._started.set()


def start_dev(command: str, settings: Sequence[str], folder: Path) -> WaypostProcess:
    """Start `waypost dev`; its addresses are in its variables, so it may run where it shares no files with us.

    A `waypost.toml` of the folder is ignored. The other arguments, and what it raises, are those of `WaypostProcess`.

    Args:
        settings: of the service, each such as `per_second=200`.
    """
    words = (word for setting in (*_SETTINGS, *settings) for word in ("--set", setting))
    return WaypostProcess(command, [*_DEV, *_NO_SETTINGS, *words], folder, required_variable="ADMIN_TOKEN")


def start_interception(command: str, service: Mapping[str, str], folder: Path) -> WaypostProcess:
    """Start `waypost intercept`, which writes files for programs of this machine; arguments as for `start_dev`.

    Args:
        service: the variables of a running `waypost dev`.
    """
    urls = ("--url", service["API_URL"], "--graph-url", service["GRAPH_URL"])
    settings = {"WAYPOST_ADMIN_TOKEN": service["ADMIN_TOKEN"], "WAYPOST_CONFIG": os.devnull}
    return WaypostProcess(command, [*_INTERCEPT, *urls], folder, required_variable="SSL_CERT_FILE", settings=settings)


def _split_command(command: str) -> list[str]:
    """Return the words of a command.

    Raises:
        NotStarted: it has an open quote, or is empty and there is no `waypost`.
    """
    try:
        words = shlex.split(command, posix=os.name == "posix")
    except ValueError as error:
        raise NotStarted(f"waypost_command: {command!r} is no command: {error}") from error
    if words:
        return words
    found = shutil.which("waypost", path=sysconfig.get_path("scripts")) or shutil.which("waypost")
    if found is None:
        raise NotStarted(_HOW_TO_START)
    return [found]
