"""What `waypost intercept` does before its program runs: it reads its arguments, loads little, and changes little."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pytest
import typer
from typer.main import get_command

from tests.interception.test_programs import arguments, clean_environment, run_intercepted, variables
from tests.support.polling import HANGS_AFTER_S
from waypost.cli.commands.intercept import intercept
from waypost.cli.intercept import read_plain_arguments

__all__ = ["variables"]  # the fixture
NOT_LOADED: Final = ("typer", "pydantic", "rich", "sqlalchemy", "starlette", "uvicorn", "aiohttp", "structlog")
_IMPORTED: Final = re.compile(r"^import time:.*\| +([\w.]+)$", re.MULTILINE)
URL: Final = "http://127.0.0.1:8080"


def test_start_loads_neither_the_library_of_commands_nor_what_serves(
    variables: Mapping[str, str], tmp_path: Path
) -> None:
    """These took more than half of the time of a start."""
    command = [sys.executable, "-X", "importtime", "-m", "waypost", *arguments(variables)[1:], "true"]

    run = subprocess.run(
        command,
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_S,
        check=True,
    )

    loaded = {name.partition(".")[0] for name in _IMPORTED.findall(run.stderr)}
    assert {"asyncio", "cryptography"} <= loaded
    assert loaded.isdisjoint(NOT_LOADED)


def test_files_of_the_program_are_as_open_as_without_us(variables: Mapping[str, str], tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        run = run_intercepted(variables, tmp_path, ["sh", "-c", "umask; touch made"])
    finally:
        os.umask(before)

    assert run.stdout.split() == ["0027"]
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("given", "changes"),
    [
        (["--"], {}),
        (["--by", "names", "--"], {"by": "names"}),
        (["--by=proxy", "--block-others", "--"], {"by": "proxy", "block_others": True}),
        (["--env-file", "dev.env", "--"], {"env_file": Path("dev.env")}),
        (["--url", URL, "--"], {"url": URL}),
        (["--graph-url=" + URL, "--url=" + URL, "--"], {"url": URL, "graph_url": URL}),
        (["--print-variables"], {}),
        (["--print-variables", "--until-stdin-ends", "--by", "proxy"], {"by": "proxy", "until_stdin_ends": True}),
    ],
)
def test_arguments_are_read_as_by_the_library(given: list[str], changes: dict[str, Any]) -> None:
    program = ["python", "--url", "app.py", "--", "-x"] if given[-1] == "--" else []
    app = typer.Typer()
    app.command()(intercept)

    plain = read_plain_arguments([*given, *program])
    by_library = get_command(app).make_context("intercept", [*given, *program]).params

    assert plain is not None
    usual = {"url": None, "graph_url": None, "env_file": Path("waypost-dev.env"), "by": "auto", "block_others": False}
    assert asdict(plain) == {"command": program, "until_stdin_ends": False, **usual, **changes}
    assert {**by_library, "command": list(by_library["command"] or [])} == {
        **asdict(plain),
        "print_variables": not program,
    }


@pytest.mark.parametrize(
    "given",
    [
        [],
        ["--"],
        ["--help"],
        ["python", "app.py"],
        ["--by", "magic", "--", "true"],
        ["--by"],
        ["--print-variables", "--", "true"],
        ["--print-variables", "--by", "names"],
        ["--until-stdin-ends", "--", "true"],
        ["--graph-url", URL, "--", "true"],
        ["--block-others=yes", "--", "true"],
        ["--unknown", "--", "true"],
    ],
)
def test_other_arguments_are_left_to_the_library(given: list[str]) -> None:
    assert read_plain_arguments(given) is None
