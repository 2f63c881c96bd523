"""Until the first test has its partner, as a multiple of the start of `waypost dev`; both measured in turn."""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from benchmarks.processes import describe_machine, temporary_folder
from tests.support.inner_pytest import clean_environment

MAX_RATIO: Final = 1.5
DEV: Final = ("-m", "waypost", "dev", "--memory", "--port", "0", "--simulator-port", "0", "--env-file", "-")
CONFTEST: Final = """
import time
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    before_s = time.monotonic()
    result = yield
    if fixturedef.argname in ("waypost_service", "waypost"):
        print(f"\\nTOOK {fixturedef.argname} {time.monotonic() - before_s}")
    return result
"""


def main() -> int:
    """Measure, print, and return 1 if the ratio is too high."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    starts_s: list[float] = []
    fixtures_s: list[float] = []
    with temporary_folder() as folder:
        (folder / "conftest.py").write_text(CONFTEST)
        (folder / "pytest.ini").write_text("[pytest]\n")
        (folder / "test_one.py").write_text("def test_one(waypost): pass\n")
        for nth in range(rounds + 1):  # the first compiles modules
            start_s, fixture_s = start_dev(), start_fixture(folder)
            if nth:
                starts_s.append(start_s)
                fixtures_s.append(fixture_s)
        machine = describe_machine(folder)
    ratios = [fixture / start for start, fixture in zip(starts_s, fixtures_s, strict=True)]
    ratio = statistics.median(ratios)
    print(f"{machine}\n")
    print(f"`waypost dev` serves after      {statistics.median(starts_s):.2f} s, the fastest {min(starts_s):.2f} s")
    print(f"the first test has its partner  {statistics.median(fixtures_s):.2f} s, the fastest {min(fixtures_s):.2f} s")
    print(f"ratio                           {ratio:.2f}, target at most {MAX_RATIO}")
    return int(ratio > MAX_RATIO)


def start_dev() -> float:
    """Return the seconds from the start of the process until it serves."""
    before_s = time.monotonic()
    with subprocess.Popen([sys.executable, *DEV], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while process.stdout.readline().strip():
            pass  # the variables, up to the empty line
        took_s = time.monotonic() - before_s
        process.terminate()
    return took_s


def start_fixture(folder: Path) -> float:
    """Return the seconds from the setup of the first fixture until the test has its partner."""
    command = [sys.executable, "-m", "pytest", "-s", "-q", "-p", "waypost", "-p", "no:cacheprovider"]
    environment = clean_environment()  # with this plugin alone
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    rows = [line.split() for line in run.stdout.splitlines() if line.startswith("TOOK ")]
    assert [name for _, name, _ in rows] == ["waypost_service", "waypost"], run.stdout
    return sum(float(seconds) for _, _, seconds in rows)


if __name__ == "__main__":
    sys.exit(main())
