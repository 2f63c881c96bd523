"""The commands of the README's quick start, pasted into a shell beside a running `waypost dev`."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

from tests.docs.repository import ROOT
from tests.support.polling import HANGS_AFTER_S

MAX_LINES = 10
BACKEND = """
import pathlib

def build_wheel(*_):
    raise AssertionError

def build_editable(*_):
    raise AssertionError

def prepare_metadata_for_build_editable(folder, settings=None):
    info = pathlib.Path(folder) / "one-1.dist-info"
    info.mkdir()
    requires = "Requires-Dist: no-such-thing-9"
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\\nName: one\\nVersion: 1\\n{requires}\\n")
    return info.name
"""


def journey() -> list[str]:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"<!-- journey -->\n```sh\n(.*?)```", readme, re.DOTALL)
    assert block is not None, "README.md has no journey"
    return block[1].splitlines()


def test_journey_pasted_as_a_whole_ends_with_the_tapped_buttons_postback_text(running: Path) -> None:
    """A paste sends all lines to the shell at once: no command may need a pause before it."""
    with (running / "errors").open("w+") as errors:
        shell = subprocess.Popen(
            ["bash", "-m"],
            cwd=running,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={"PATH": os.environ["PATH"], "HOME": str(running)},
        )
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write("".join(f"{line}\n" for line in journey()))
        shell.stdin.close()
        output: list[str] = []
        for line in shell.stdout:
            output.append(line)
            if '"postbackText": "' in line:
                break
        listener = re.search(r"stop the listener with: kill (\d+)", "".join(output))
        if listener is not None:
            os.kill(int(listener[1]), signal.SIGTERM)
        output += shell.stdout.read().splitlines()
        shell.wait(timeout=HANGS_AFTER_S)
        shell.stdout.close()
        errors.seek(0)
        transcript = "\n".join([*output, errors.read()])

    assert listener is not None, transcript
    assert output.index(next(line for line in output if "listening at" in line)) == 0, transcript
    callbacks: list[dict[str, Any]] = [json.loads(line) for line in output if line.startswith('{"app": ')]
    assert callbacks, transcript
    assert callbacks[-1]["payload"]["payload"] == {
        "text": "Yes please",
        "type": "button",
        "postbackText": "bring-today",
    }, transcript
    kinds = [callback["payload"]["type"] for callback in callbacks if callback["type"] == "message-event"]
    assert kinds == ["enqueued", "sent", "delivered", "read"]


def test_installation_prints_no_warnings_and_all_errors(tmp_path: Path) -> None:
    """Index settings of a machine make pip warn; `make run` must not print those warnings."""
    (tmp_path / "pytest-waypost").mkdir()
    for name in ("Makefile", "constraints.txt", "pytest-waypost/pyproject.toml"):
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"))
    (tmp_path / "pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
    )
    (tmp_path / "backend.py").write_text(BACKEND)
    environment = {**os.environ, "PIP_FIND_LINKS": "file:///no/such/folder", "PIP_NO_INDEX": "1"}

    completed = subprocess.run(
        ["make", "run"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    assert completed.returncode != 0
    assert "WARNING" not in completed.stderr
    assert "ERROR: " in completed.stderr
    assert "about a minute" in completed.stdout


def test_journey_has_at_most_ten_lines() -> None:
    assert 0 < len(journey()) <= MAX_LINES
