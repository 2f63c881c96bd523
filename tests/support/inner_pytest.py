"""A test run inside a test: pytest as another project starts it, in a process of its own."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.waiting import HANGS_AFTER_S

_NOT_OURS: Final = ("PYTEST_", "PYTHON", "WAYPOST_", "COV_")


@dataclass(frozen=True)
class InnerRun:
    """What became of it.

    Attributes:
        outcomes: `passed`, `failed`, `error` or `skipped` by the test's own name.
        told: what was said of each that failed.
        output: all that was printed.
    """

    code: int
    outcomes: dict[str, str]
    told: dict[str, str]
    output: str


def run_pytest(folder: Path, report: Path, *options: str) -> InnerRun:
    """Run the tests of a folder with one plugin, found by the name of its entry point.

    Args:
        folder: where the other project is.
        report: a file for the report.
        options: for pytest.
    """
    command = [sys.executable, "-m", "pytest", "-p", "waypost", "-p", "no:cacheprovider"]
    command += [f"--junitxml={report}", *options]
    done = subprocess.run(
        command,
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=2 * HANGS_AFTER_S,
        check=False,
    )
    outcomes: dict[str, str] = {}
    told: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():
        name = case.get("name", "")
        found = [one for one in case if one.tag in ("failure", "error", "skipped")]
        outcomes[name] = found[0].tag.replace("failure", "failed") if found else "passed"
        told[name] = "\n".join(one.text or "" for one in case)
    return InnerRun(done.returncode, outcomes, told, done.stdout + done.stderr)


def clean_environment() -> dict[str, str]:
    """This process's environment without anything that is meant for its own tests or settings."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(_NOT_OURS)}
    return kept | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
