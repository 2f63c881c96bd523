"""The service as a child: `waypost dev` in a process of its own, for tests that patch time or sockets."""

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
from waypost.testing.runtime.engine import NotStarted

START_WITHIN_S: Final = 60
_STOP_WITHIN_S: Final = 20
_LOOK_AGAIN_S: Final = 0.01
_LAST: Final = "ADMIN_TOKEN"


class ChildEngine:
    """Runs `waypost dev --memory` until it is stopped.

    Args:
        settings: of the service; variables of the shell that begin with WAYPOST_ do not count.

    Raises:
        NotStarted: it did not start; the text has what it printed.
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
                stdin=subprocess.PIPE,  # ends with this process, however this one ends
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.variables = self._started(env_file)

    def stop(self) -> None:
        """Stop it by a signal, wait for its end, and remove its folder."""
        self._process.terminate()
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _started(self, env_file: Path) -> Mapping[str, str]:
        until_s = time.monotonic() + START_WITHIN_S
        while time.monotonic() < until_s and self._process.poll() is None:
            # The file is there before its last line is.
            if env_file.exists() and env_file.read_text(encoding="utf-8").endswith("\n"):
                variables = read_variables(env_file)
                if _LAST in variables:
                    return variables
            time.sleep(_LOOK_AGAIN_S)
        told = (self._folder / "output.txt").read_text(encoding="utf-8")
        self.stop()
        raise NotStarted(f"`waypost dev` did not start; it printed:\n{told}")
