"""The service as a child process: `waypost dev`, for tests that patch time or sockets."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from waypost.client.dev_variables import read_variables
from waypost.testing.runtime.contract import NotStarted

CHILD_START_TIMEOUT_S: Final = 60
_CHILD_STOP_TIMEOUT_S: Final = 20
_POLL_INTERVAL_S: Final = 0.01
_LAST_VARIABLE: Final = "ADMIN_TOKEN"


class ChildRuntime:
    """Runs `waypost dev --memory` until it is stopped.

    Args:
        settings: of the service; WAYPOST_ variables of the shell are ignored.

    Raises:
        NotStarted: it did not start; the text has its output.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="waypost-"))
        env_file = self._folder / "waypost-dev.env"
        shell = {name: text for name, text in os.environ.items() if not name.startswith("WAYPOST_")}
        chosen = {f"WAYPOST_{name.upper()}": text for name, text in settings.items()}
        command = [sys.executable, "-m", "waypost", "dev", "--memory", "--port", "0"]
        command += ["--simulator-port", "0", "--env-file", str(env_file), "--until-stdin-ends"]
        with (self._folder / "output.txt").open("w", encoding="utf-8") as output:
            self._process = subprocess.Popen(  # noqa: S603  our own interpreter, our own command
                command,
                cwd=self._folder,
                env=shell | chosen,
                stdin=subprocess.PIPE,  # it closes when this process ends, however that happens
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.variables = self._wait_until_started(env_file)

    def stop(self) -> None:
        """Stop it with a signal, wait for its end, and remove its folder."""
        self._process.terminate()
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_CHILD_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _wait_until_started(self, env_file: Path) -> Mapping[str, str]:
        until_s = time.monotonic() + CHILD_START_TIMEOUT_S
        while time.monotonic() < until_s and self._process.poll() is None:
            # The file exists before its last line is written.
            if env_file.exists() and env_file.read_text(encoding="utf-8").endswith("\n"):
                variables = read_variables(env_file)
                if _LAST_VARIABLE in variables:
                    return variables
            time.sleep(_POLL_INTERVAL_S)
        output = (self._folder / "output.txt").read_text(encoding="utf-8")
        self.stop()
        raise NotStarted(f"`waypost dev` did not start; it printed:\n{output}")
