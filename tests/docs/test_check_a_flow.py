"""The page about checking a Flow: its file, its command and its output."""

import re
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from tests.docs.repository import ROOT
from waypost.cli.command_tree import app
from waypost.simulator.flows.publishing import CHECKED_BEFORE_PUBLISHING

PAGE: Final = (ROOT / "docs" / "how-to" / "check-a-flow.md").read_text(encoding="utf-8")


def test_page_shows_what_the_command_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [flow] = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    [command] = re.findall(r"```sh\n(?:export .*\n)?waypost (.*?)\n```", PAGE)
    [output] = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "booking.json").write_text(flow, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    result = CliRunner().invoke(app, command.split())

    assert (result.exit_code, result.stdout) == (1, output)


def test_page_has_every_check_before_publishing() -> None:
    rows = re.findall(r"^\| [^|-]+ \| (.+?) \|$", PAGE, re.MULTILINE)

    assert [*(check.title for check in CHECKED_BEFORE_PUBLISHING), "Endpoint Not Available"] == rows[1:]
