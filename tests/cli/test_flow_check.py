"""`waypost flow check`: output, exit codes, standard input."""

import json
from pathlib import Path

from typer.testing import CliRunner

from tests.support.flow_json import one_screen_flow
from waypost.cli.command_tree import app

LONG_LABEL = json.dumps(one_screen_flow(label="Reserve this table now, and pay later"))


def test_valid_file_is_named_and_the_exit_code_is_0(tmp_path: Path) -> None:
    file = tmp_path / "f.json"
    file.write_text(json.dumps(one_screen_flow()), encoding="utf-8")

    result = CliRunner().invoke(app, ["flow", "check", str(file)])

    assert (result.exit_code, result.stdout) == (0, f"{file}: valid\n")


def test_standard_input_is_checked_and_reported_as_json() -> None:
    result = CliRunner().invoke(app, ["flow", "check", "-", "--json"], input='{"version": "7.3"}')

    errors = json.loads(result.stdout)["-"]["validation_errors"]
    assert result.exit_code == 1
    assert errors[0]["message"] == "Required property 'screens' is missing."


def test_warning_fails_only_when_strict() -> None:
    lenient = CliRunner().invoke(app, ["flow", "check", "-"], input=LONG_LABEL)
    strict = CliRunner().invoke(app, ["flow", "check", "-", "--strict"], input=LONG_LABEL)

    assert (lenient.exit_code, strict.exit_code) == (0, 1)
    assert lenient.stdout == strict.stdout
    assert "warning: Property 'label' should have at most 35 characters" in lenient.stdout


def test_file_that_cannot_be_read_is_wrong_usage(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["flow", "check", str(tmp_path / "nothing.json")])

    assert result.exit_code == 2
    assert "cannot be read" in result.stderr
