"""The end of each command's help: an example that parses, and a page that exists and names the command."""

import re
import shlex
from collections.abc import Iterator
from typing import Any, Final

import pytest
import typer.main
from typer.testing import CliRunner

from tests.docs.repository import ROOT
from waypost.cli.command_group import EXAMPLES
from waypost.cli.command_tree import app

ROOT_COMMAND: Final[Any] = typer.main.get_command(app)


def find_commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    yield " ".join(path), command
    for name, inner in getattr(command, "commands", {}).items():
        yield from find_commands(inner, (*path, name))


COMMANDS: Final = dict(find_commands(ROOT_COMMAND))


def test_table_has_every_command_and_no_other() -> None:
    assert set(EXAMPLES) == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_with_an_example_and_the_page(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYPOST_CONTROL_TOKEN", "a token of at least 32 characters, of a test")
    monkeypatch.setenv("WAYPOST_PARTNER_PASSWORD", "Demo-password-1")

    shown = CliRunner().invoke(app, [*command.split(), "--help"])

    ending = re.search(r"\n  Example: (waypost.*)\n  Page:    (docs/\S+\.md)\n$", shown.stdout)
    assert shown.exit_code == 0
    assert ending, shown.stdout
    page = (ROOT / ending[2]).read_text(encoding="utf-8")
    assert f"waypost {command.split(' ')[0]}".strip() in page, f"{ending[2]} does not name the command"
    parse(shlex.split(ending[1])[1:])


def parse(arguments: list[str]) -> None:
    """Parse a command line as the program does, and run nothing."""
    command, context = ROOT_COMMAND, None
    while True:
        context = command.make_context("waypost", list(arguments), parent=context)
        rest = [*context._protected_args, *context.args]
        if not rest:
            return
        _, command, arguments = command.resolve_command(context, rest)
