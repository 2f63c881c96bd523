"""`make test` draws the same examples each time and `make fuzz` new ones; both print the seed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.docs.repository import ROOT

DRAWS = """
import random
from hypothesis import given, strategies as st

def test_a() -> None:
    print("random", random.random())

@given(st.binary(min_size=32, max_size=32))
def test_b(drawn: bytes) -> None:
    print("drawn", drawn.hex())
"""


def printed_commands(*arguments: str) -> str:
    """Return what `make` would run, with `.venv` taken as up to date."""
    return subprocess.run(
        ["make", "-n", "-o", ".venv/dev.stamp", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


def drawn_with(options: list[str], folder: Path, ci: dict[str, str]) -> list[str]:
    (folder / "test_draws.py").write_text(DRAWS)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-s", "-p", "tests.support.examples", *options, "test_draws.py"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), **ci},
        check=True,
        capture_output=True,
        text=True,
    )
    return [line for line in re.findall(r"(?:random|drawn) \S+", run.stdout) if not line.endswith("00" * 32)]


def seed_options(commands: str) -> list[str]:
    return re.findall(r"--(?:hypothesis|randomly)-seed=\d+", commands)


@pytest.mark.parametrize("target", ["test", "dates"])
def test_the_suite_has_one_seed(target: str) -> None:
    assert seed_options(printed_commands(target)) == ["--hypothesis-seed=1", "--randomly-seed=1"]


def test_fuzz_draws_a_seed_prints_it_and_uses_it_everywhere() -> None:
    runs = {printed_commands("fuzz") for _ in range(3)}

    assert len(runs) > 1
    for commands in runs:
        assert len(set(re.findall(r"(?:seed |-seed=|_SEED=)(\d+)", commands))) == 1


@pytest.mark.parametrize("target", ["test", "fuzz"])
def test_a_seed_may_be_given_to_repeat_a_run(target: str) -> None:
    commands = printed_commands(target, "SEED=271828")

    assert 'echo "seed 271828"' in commands
    assert seed_options(commands) == ["--hypothesis-seed=271828", "--randomly-seed=271828"]


@pytest.mark.parametrize("ci", [{}, {"CI": "true"}], ids=["as here", "in CI"])
def test_runs_with_one_seed_draw_the_same_and_with_another_others(tmp_path: Path, ci: dict[str, str]) -> None:
    options, others = (seed_options(printed_commands("test", f"SEED={seed}")) for seed in (1, 2))
    folders = [tmp_path / name for name in "abc"]
    for folder in folders:
        folder.mkdir()

    first, again, other = (
        drawn_with(seed, folder, ci) for seed, folder in zip((options, options, others), folders, strict=True)
    )

    assert first == again
    assert first
    assert not set(first) & set(other)


def test_examples_of_the_suite_have_no_deadline() -> None:
    assert settings().deadline is None
