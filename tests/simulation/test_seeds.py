"""The whole server under seeds: each repeats step by step, no promise is broken, and a mistake is found and told."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from simulation.environment import NO_PYTHON
from simulation.planted import SOURCE, plant, read_faults
from tests.docs.repository import ROOT

SEEDS: Final = 20
WITHIN_S: Final = 600
PROGRAM: Final = ("-m", "simulation")
PROGRAM_WITH_OTHER_ADDRESSES: Final = (
    "-c",
    "import email.parser, runpy, waypost.callbacks.batch, waypost.simulator\n"
    "runpy.run_module('simulation', run_name='__main__', alter_sys=True)",
)
"""What is imported first lies elsewhere, and all that comes later too: the order of a set of objects follows from that."""
pytestmark = pytest.mark.timeout(2 * WITHIN_S)


@pytest.fixture(scope="module")
def python() -> str:
    """Return the interpreter of the simulation."""
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
    return made.stdout.strip()


def simulate(
    python: str, *arguments: str, environment: Mapping[str, str] | None = None, program: Sequence[str] = PROGRAM
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, *program, *arguments],
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=WITHIN_S,
    )


def test_twenty_seeds_repeat_and_break_no_promise(python: str) -> None:
    ran = simulate(python, "--seeds", f"1-{SEEDS}", "--messages", "4", "--twice", "--quiet")

    assert ran.returncode == 0, ran.stdout
    assert f"same seed, same steps: {SEEDS} of {SEEDS}\n" in ran.stdout


def test_seed_repeats_in_another_process_with_other_hashes_and_addresses(python: str) -> None:
    arguments = ("--seeds", "3", "--verbose", "--quiet")
    outputs = [
        simulate(python, *arguments, environment={"PYTHONHASHSEED": seed}, program=program).stdout
        for seed, program in (("1", PROGRAM), ("2", PROGRAM_WITH_OTHER_ADDRESSES))
    ]

    first, second = (re.search(r"^seed 3: .*? ([0-9a-f]{16})$", output, re.MULTILINE) for output in outputs)
    assert first is not None, outputs[0]
    assert second is not None, outputs[1]
    assert first[1] == second[1]


def test_seeds_repeat_on_postgresql_with_two_processes_other_hashes_and_real_delays(python: str) -> None:
    seeds = ("--seeds", "4-6", "--messages", "4")  # in 6 a process stands still after so many waits for the server
    arguments = (*seeds, "--postgresql", "--processes", "2", "--verbose", "--quiet", "--jobs", "1")
    with ThreadPoolExecutor(2) as threads:
        runs = [
            threads.submit(simulate, python, *arguments, "--delays", delays, environment={"PYTHONHASHSEED": seed})
            for seed, delays in (("1", "0"), ("2", "8"))
        ]
    first, second = (run.result() for run in runs)

    digests = re.findall(r"^seed (\d): .*? ([0-9a-f]{16})$", first.stdout, re.MULTILINE)
    assert first.returncode == 0, first.stdout
    assert len(digests) == 3, first.stdout
    assert digests == re.findall(r"^seed (\d): .*? ([0-9a-f]{16})$", second.stdout, re.MULTILINE)


def test_no_regression_breaks_a_promise(python: str) -> None:
    ran = simulate(python, "--regressions", "--quiet", "--no-shrink")

    assert ran.returncode == 0, ran.stdout


def test_mistake_is_found_shrunk_told_and_repeated(python: str, tmp_path: Path) -> None:
    fault = next(fault for fault in read_faults() if fault.name == "order by arrival")
    plant(fault, SOURCE.parent, tmp_path)
    environment = {"PYTHONPATH": str(tmp_path)}

    ran = simulate(python, "--seeds", "1-20", "--until-failure", "--quiet", environment=environment)

    assert ran.returncode == 1, ran.stdout
    shrunk = re.search(r"shrunk to (\d+) decisions", ran.stdout)
    assert shrunk is not None, ran.stdout
    assert int(shrunk[1]) <= 30
    story, _, end = ran.stdout[shrunk.start() :].partition("   BROKEN ")
    assert re.search(r"^ *\d+\.\d{3} ", story, re.MULTILINE)
    command = re.search(r'ARGS="(.*)"$', end, re.MULTILINE)
    assert command is not None, end
    again = simulate(python, *shlex.split(command[1]), "--no-shrink", environment=environment)
    assert again.returncode == 1, again.stdout
    assert "   BROKEN " in again.stdout
