"""A pytest run inside a test: as another project starts it, in its own process."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tests.support.polling import HANGS_AFTER_S

_NOT_OURS: Final = ("PYTEST_", "PYTHON", "WAYPOST_", "COV_")


@dataclass(frozen=True)
class InnerRun:
    """The result of a run.

    Attributes:
        outcomes: `passed`, `failed`, `error` or `skipped`, by the test's name.
        report_texts: the report's text of each test.
        output: everything that was printed.
    """

    code: int
    outcomes: dict[str, str]
    report_texts: dict[str, str]
    output: str


def run_pytest(
    folder: Path,
    report: Path,
    *options: str,
    plugin: str = "waypost",
    python: str = sys.executable,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> InnerRun:
    """Run the tests of a folder with one plugin.

    Args:
        folder: where the other project is.
        report: a file for the report.
        options: for pytest.
        plugin: the name of its entry point, or its module.
        python: the interpreter of an environment.
        variables: of the environment, in place of those of this process.
    """
    command = [python, "-m", "pytest", "-p", plugin, "-p", "no:cacheprovider"]
    command += [f"--junitxml={report}", *options]
    completed = subprocess.run(
        command,
        cwd=folder,
        env={**clean_environment(), **variables},
        capture_output=True,
        text=True,
        timeout=2 * HANGS_AFTER_S,
        check=False,
    )
    outcomes: dict[str, str] = {}
    texts: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():
        name = case.get("name", "")
        problems = [element for element in case if element.tag in ("failure", "error", "skipped")]
        outcomes[name] = problems[0].tag.replace("failure", "failed") if problems else "passed"
        texts[name] = "\n".join(element.text or "" for element in case)
    return InnerRun(completed.returncode, outcomes, texts, completed.stdout + completed.stderr)


def clean_environment() -> dict[str, str]:
    """Return this process's environment without the variables of its own tests and settings."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith(_NOT_OURS)}
    return environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
