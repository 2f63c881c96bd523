"""The README's journey, copied line by line into a shell beside a running `waypost dev`."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.repository import ROOT

MOST_LINES = 10


def journey() -> list[str]:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"<!-- journey -->\n```sh\n(.*?)```", readme, re.DOTALL)
    assert block is not None, "README.md has no journey"
    return block[1].splitlines()


@pytest.fixture
def newcomers_folder(tmp_path: Path) -> Path:
    """A folder that has `.venv/bin/waypost`, as a clone has after `make run`."""
    command = tmp_path / ".venv" / "bin" / "waypost"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m waypost "$@"\n')
    command.chmod(0o755)
    return tmp_path


@pytest.fixture
def running(newcomers_folder: Path) -> Iterator[Path]:
    ports = [str(free_port()) for _ in range(2)]
    command = [
        ".venv/bin/waypost",
        "dev",
        "--memory",
        "--port",
        ports[0],
        "--simulator-port",
        ports[1],
    ]
    with subprocess.Popen(
        command, cwd=newcomers_folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        wait_for(lambda: (newcomers_folder / "waypost-dev.env").exists(), process)
        yield newcomers_folder
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0


@pytest.mark.timeout(60)
def test_journey_ends_with_the_tapped_buttons_postback_text(running: Path) -> None:
    lines = journey()
    shell = "\n".join([*lines, "sleep 2", "kill %1", "wait"])

    done = subprocess.run(
        ["bash", "-m", "-c", shell],
        cwd=running,
        capture_output=True,
        text=True,
        timeout=45,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(running)},
    )

    told: list[dict[str, Any]] = [
        json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"app": ')
    ]
    assert told, done.stdout + done.stderr
    assert told[-1]["payload"]["payload"] == {
        "text": "Yes please",
        "type": "button",
        "postbackText": "bring-today",
    }, done.stdout + done.stderr
    kinds = [one["payload"]["type"] for one in told if one["type"] == "message-event"]
    assert kinds == ["enqueued", "sent", "delivered", "read"]


def test_journey_has_at_most_ten_lines() -> None:
    assert 0 < len(journey()) <= MOST_LINES


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def wait_for(is_there: Any, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 15
    while not is_there():
        assert process.poll() is None, process.stdout.read() if process.stdout else ""
        assert time.monotonic() < until, "waypost dev did not start in 15 s"
        time.sleep(0.02)
    time.sleep(0.2)
