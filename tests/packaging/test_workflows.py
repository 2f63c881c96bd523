"""The workflows of the repository: what they name exists, and no job may do more than it needs."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.docs.repository import ROOT, name_of
from tests.docs.test_commands import TARGETS
from tests.resolutions import LEFT_OUT, PARTS, PYTHONS

WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RELEASE: Final = ROOT / ".github" / "workflows" / "release.yml"
MAY_WRITE: Final = {  # jobs, and what they may change
    "distributions": {"id-token", "attestations"},
    "publish": {"id-token"},
    "image": {"packages", "id-token", "attestations"},
    "announce": {"contents"},
}


def read(path: Path) -> dict[str, Any]:
    """Return a workflow; `on` is the key `True` in YAML."""
    workflow: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return workflow


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=name_of)
def test_commands_and_files_that_a_workflow_names_exist(path: Path) -> None:
    commands = [step["run"] for step in steps(read(path)) if "run" in step]
    targets = {
        word
        for command in commands
        for arguments in re.findall(r"\bmake ([^\n]+)", command)
        for word in re.sub(r'\S+=("[^"]*"|\S+)', "", arguments).split()
    }
    files = {file for command in commands for file in re.findall(r"(?:^|\s)(\.ci/\S+|[A-Z]\w+\.md)", command)}
    files |= {step["with"]["file"] for step in steps(read(path)) if "file" in step.get("with", {})}

    assert targets <= TARGETS
    assert {file for file in files if file != "notes.md" and not (ROOT / file).is_file()} == set()


@pytest.mark.parametrize("path", WORKFLOWS, ids=name_of)
def test_jobs_write_only_what_they_need_and_store_no_credentials(path: Path) -> None:
    workflow = read(path)
    written = {
        name: {scope for scope, access in job.get("permissions", {}).items() if access == "write"}
        for name, job in workflow["jobs"].items()
    }

    assert workflow["permissions"] == {"contents": "read"}
    assert {name: scopes for name, scopes in written.items() if scopes} == (MAY_WRITE if path == RELEASE else {})
    for step in steps(workflow):
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+|[0-9a-f]{40})", step["uses"])
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_release_begins_with_a_tag_and_publishes_after_every_check() -> None:
    release = read(RELEASE)
    jobs = release["jobs"]

    assert release[True] == {"push": {"tags": ["v*"]}}  # pyright: ignore[reportArgumentType] (YAML reads `on` as true)
    assert set(jobs["distributions"]["needs"]) == {"check", "resolutions"}
    assert jobs["publish"]["needs"] == jobs["image"]["needs"] == "distributions"
    assert tuple(jobs["resolutions"]["strategy"]["matrix"]["python"]) == PYTHONS


def test_parts_of_the_suite_that_resolutions_run_exist() -> None:
    assert [part for part in (*PARTS, LEFT_OUT) if not (ROOT / part).exists()] == []
