"""A new user's folder, and a `waypost dev` that runs in it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.polling import HANGS_AFTER_S


@pytest.fixture
def newcomers_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder; `waypost` is on the path, as with an installed package."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    return tmp_path


@pytest.fixture
def running(newcomers_folder: Path) -> Iterator[Path]:
    """A folder in which `waypost dev` is running."""
    yield from run_dev(newcomers_folder)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the `.venv` that `make run` makes; `waypost` is not on the path."""
    (tmp_path / ".venv").symlink_to(sys.prefix)
    return tmp_path


@pytest.fixture
def running_checkout(checkout: Path) -> Iterator[Path]:
    """A checkout in which `make run` is running."""
    yield from run_dev(checkout)


def run_dev(folder: Path) -> Iterator[Path]:
    """Run `waypost dev` on free ports in a folder, until it is used no more."""
    command = [sys.executable, "-m", "waypost", "dev", "--memory", "--port", "0", "--simulator-port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        written = folder / "waypost-dev.env"
        wait_for(lambda: written.exists() and written.read_text().endswith("\n"), process)
        yield folder
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANGS_AFTER_S) == 0


def wait_for(is_ready: Any, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + HANGS_AFTER_S
    while not is_ready():
        assert process.poll() is None, process.stdout.read() if process.stdout else ""
        assert time.monotonic() < until, "waypost dev did not start"
        time.sleep(0.02)
