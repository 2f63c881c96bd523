"""The files in `deploy/` and the Containerfile name settings, commands, files and ports that exist."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.docs.repository import ROOT, name_of, repository_files
from waypost.cli.command_tree import app
from waypost.config import SETTINGS, STAGES

COMPOSE: Final = ROOT / "deploy" / "compose.yaml"
FILES: Final = [
    path for path in repository_files() if (ROOT / "deploy") in path.parents or path.name == "Containerfile"
]
SECRETS: Final = {"database_url", "secret_key", "admin_token", "metrics_token", "simulator_token"}
_VARIABLE: Final = re.compile(r"\bWAYPOST_[A-Z][A-Z_0-9]*")


def variables_of(path: Path) -> set[str]:
    return set(_VARIABLE.findall(path.read_text(encoding="utf-8")))


def settings_of(variable: str) -> str:
    """Return the setting that a variable sets; `_FILE` is for secrets."""
    name = variable.removeprefix("WAYPOST_").lower()
    of_file = name.removesuffix("_file")
    return of_file if name.endswith("_file") and of_file in SECRETS else name


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_variable_is_a_setting(path: Path) -> None:
    assert {name for name in variables_of(path) if settings_of(name) not in SETTINGS} == set()


def test_the_variables_are_found() -> None:
    assert "WAYPOST_SECRET_KEY_FILE" in variables_of(COMPOSE)
    assert "WAYPOST_DATA" in variables_of(ROOT / "Containerfile")


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("Containerfile", r'^(?:CMD|HEALTHCHECK .*CMD) \[(?:"waypost", )?"(\w+)"'),
        ("deploy/systemd/waypost.service", r"^ExecStart=/opt/waypost/bin/waypost (\w+)$"),
        ("deploy/helm/waypost/templates/deployment.yaml", r"^ +args: \[(\w+)\]$"),
        ("deploy/helm/waypost/templates/NOTES.txt", r" -- waypost (\w+)$"),
    ],
)
def test_every_command_exists(path: str, pattern: str) -> None:
    named = set(re.findall(pattern, (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE))

    assert named
    assert named <= {
        command.name or command.callback.__name__ for command in app.registered_commands if command.callback
    }


def test_compose_is_complete() -> None:
    compose: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    services, secrets = compose["services"], compose["secrets"]

    processes = [services[name] for name in ("waypost-1", "waypost-2")]
    assert all(process["read_only"] and process["cap_drop"] == ["ALL"] for process in processes)
    assert {name for service in services.values() for name in service.get("secrets", ())} == set(secrets)
    named = {volume.split(":")[0] for service in services.values() for volume in service.get("volumes", ())}
    assert {name for name in named if not name.startswith("./")} == set(compose["volumes"])
    assert [name for name in named if name.startswith("./") and not (COMPOSE.parent / name).is_file()] == []
    needed = {name for service in services.values() for name in service.get("depends_on", ())}
    assert needed <= set(services)


def test_chart_offers_every_stage() -> None:
    chart = ROOT / "deploy" / "helm" / "waypost"
    values: dict[str, Any] = yaml.safe_load((chart / "values.yaml").read_text(encoding="utf-8"))

    assert values["roles"]["all"]["stages"] == list(STAGES)
    assert values["drainSeconds"] == 10
    assert values["stopSeconds"] == SETTINGS["stop_within_s"].default


def test_image_copies_only_what_the_ignore_files_let_through() -> None:
    """Docker reads the one, Podman the other."""
    container, docker = ((ROOT / name).read_text(encoding="utf-8") for name in (".containerignore", ".dockerignore"))
    let_through = {line[1:] for line in container.splitlines() if line.startswith("!")}
    copied = re.findall(
        r"^COPY (?!--from)(.+) \S+$", (ROOT / "Containerfile").read_text(encoding="utf-8"), re.MULTILINE
    )

    assert container == docker
    assert {name for names in copied for name in names.split()} == let_through
