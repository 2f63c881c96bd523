"""The page about simulating failures: its commands and its scenario are accepted."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tests.docs.repository import ROOT, samples_of
from tests.support.polling import HANGS_AFTER_S
from waypost.simulator import read_scenario

PAGE: Final = ROOT / "docs" / "how-to" / "simulate-failures.md"


def test_shown_commands_arm_list_and_disarm_faults(tmp_path: Path) -> None:
    shell = "\necho\n".join(samples_of(PAGE, "sh")).replace("curl -s ", "echo; curl -sS ")
    command = [sys.executable, "-m", "waypost", "dev", "--memory", "--port", "0"]

    with subprocess.Popen(
        [*command, "--simulator-port", "0"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            wait_until_running(process)
            completed = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", shell],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=HANGS_AFTER_S,
                check=False,
                env={"PATH": os.environ["PATH"]},
            )
        finally:
            process.send_signal(signal.SIGTERM)

    assert completed.returncode == 0, completed.stderr
    *armed, every, first, disarmed, rest = parse_responses(completed.stdout)
    assert [response["faults"][0]["id"] for response in armed] == [1, 2, 3, 4]
    assert every["faults"] == [response["faults"][0] for response in armed]
    assert first == {**armed[0]["faults"][0], "firings": []}
    assert (disarmed, rest) == ({"disarmed": [1]}, {"disarmed": [2, 3, 4]})


def test_shown_scenario_can_be_read(tmp_path: Path) -> None:
    (content,) = samples_of(PAGE, "toml")
    path = tmp_path / "scenario.toml"
    path.write_text(content, encoding="utf-8")

    scenario = read_scenario(path)

    assert [fault["seed"] for fault in scenario.faults] == [20, 20]


def wait_until_running(process: subprocess.Popen[str]) -> None:
    """Return once `waypost dev` has printed all its start messages."""
    assert process.stdout is not None
    for line in process.stdout:
        if "README" in line:
            return
    raise AssertionError("waypost dev has ended")


def parse_responses(output: str) -> list[dict[str, Any]]:
    """Return the responses of the API, one per line."""
    return [json.loads(line) for line in output.splitlines() if line]
