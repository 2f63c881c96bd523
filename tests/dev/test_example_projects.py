"""The example projects in Node and Go, run as their authors would: their tests start `waypost dev` themselves."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.docs.repository import ROOT
from tests.support.polling import HANGS_AFTER_S
from waypost.config import SETTINGS

WAYPOST: Final = Path(sys.executable).with_name("waypost")


def run(program: str, *args: str, folder: Path, status: int = 0) -> str:
    """Run a program of the project in its folder, and return its output; skip if the program is missing."""
    found = shutil.which(program)
    if found is None and not os.environ.get("CI"):
        pytest.skip(f"{program} is not installed")
    environment = {**os.environ, "WAYPOST": str(WAYPOST), "WAIT_MS": "60000", "GOFLAGS": "-mod=mod", "GOPROXY": "off"}
    completed = subprocess.run(
        [found or program, *args],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=HANGS_AFTER_S,
        check=False,
    )
    assert completed.returncode == status, completed.stdout
    return completed.stdout


@pytest.mark.timeout(HANGS_AFTER_S + 10)
def test_node_projects_tests_pass_with_the_package(tmp_path: Path) -> None:
    project = tmp_path / "node-shop"
    shutil.copytree(ROOT / "examples" / "node-shop", project, ignore=shutil.ignore_patterns("node_modules"))
    (project / "node_modules" / "@waypost").mkdir(parents=True)
    (project / "node_modules" / "@waypost" / "dev").symlink_to(ROOT / "npm" / "waypost-dev")

    output = run("node", "--test", "test/", folder=project)

    assert "# pass 3" in output


@pytest.mark.timeout(HANGS_AFTER_S + 10)
def test_go_projects_tests_pass() -> None:
    output = run("go", "test", "-count=1", "-v", "./...", folder=ROOT / "examples" / "go-shop")

    assert [line.split()[2] for line in output.splitlines() if line.startswith("--- PASS")] == [
        "TestOrderIsConfirmedByAMessage",
        "TestCustomerCancelsTheOrder",
    ]


@pytest.mark.parametrize("name", ["github-actions.yml", "gitlab-ci.yml", "testcontainers.js", "WaypostContainer.java"])
def test_ci_files_start_the_server_with_options_and_settings_that_exist(name: str) -> None:
    text = (ROOT / "examples" / "ci" / name).read_text()

    settings = {match.lower() for match in re.findall(r"\bWAYPOST_([A-Z_]+)\b", text)}

    assert settings
    assert settings <= set(SETTINGS)
    assert re.search(r'dev["\', ]+--memory', text)
    assert "readyz" in text or "waypost health" in text


def test_java_container_compiles_except_for_the_missing_testcontainers(tmp_path: Path) -> None:
    output = run("javac", "-d", str(tmp_path), "WaypostContainer.java", folder=ROOT / "examples" / "ci", status=1)

    errors = re.findall(r" error: (.*)", output)
    missing = re.findall(r"symbol: +\w+ (\w+)", output)
    assert {re.sub(r"org\.testcontainers[.\w]*", "testcontainers", error) for error in errors} == {
        "package testcontainers does not exist", "cannot find symbol",
    }  # fmt: skip
    assert set(missing) == {
        "GenericContainer", "Wait", "getHost", "getMappedPort", "withCommand", "withEnv", "withExposedPorts",
    }  # fmt: skip
