"""Every make target that a page shows exists, and every command that an error names."""

import re
from typing import Final

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from tests.docs.repository import ROOT, name_of, pages, repository_files
from waypost.cli.command_tree import app as commands

TARGETS: Final = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
NAMED_COMMAND: Final = re.compile(r"`(waypost(?: [a-z][a-z-]*)+)")
MIN_NAMED_COMMANDS: Final = 20
FINDS_COMMAND: Final = 'export PATH="$PWD/.venv/bin:$PATH"'
SHOWN: Final = sorted(
    {
        (name_of(page), target)
        for page in pages()
        for target in re.findall(
            r"^\s*make (?:[A-Z]+=\S+ )*([a-z-]+)|`make (?:[A-Z]+=\S+ )*([a-z-]+)\b[^`]*`",
            page.read_text(encoding="utf-8"),
            re.MULTILINE,
        )
        for target in target
        if target
    }
)


@pytest.mark.parametrize(("page", "target"), SHOWN)
def test_make_target_that_a_page_shows_exists(page: str, target: str) -> None:
    assert target in TARGETS, page


def test_contributing_page_names_every_target_that_is_not_part_of_another() -> None:
    documented = {target for page, target in SHOWN if page == "CONTRIBUTING.md"}

    assert documented == TARGETS - {"lint"}


def test_only_the_first_pages_name_the_folder_of_a_checkout() -> None:
    """The others let the shell find the command, by a line that changes nothing where a package has it."""
    first = {
        "CONTRIBUTING.md",
        "README.md",
        "docs/how-to/use-the-simulator-alone.md",
        "docs/tutorial.md",
        "docs/how-to/point-an-existing-client.md",
    }

    texts = {name_of(page): page.read_text(encoding="utf-8") for page in pages()}

    assert {name for name, text in texts.items() if ".venv" in text.replace(FINDS_COMMAND, "")} <= first


def test_command_that_an_error_text_names_exists() -> None:
    """A reader of an error pastes what it names, such as `waypost app connect`."""
    shown = {
        (name_of(path), command)
        for path in repository_files()
        if path.suffix == ".py" and path.is_relative_to(ROOT / "src")
        for command in NAMED_COMMAND.findall(path.read_text(encoding="utf-8"))
    }

    group = get_command(commands)
    assert [(name, command) for name, command in sorted(shown) if not _exists(command.split()[1:], group)] == []
    assert len(shown) > MIN_NAMED_COMMANDS


def _exists(names: list[str], command: object) -> bool:
    """Return whether the names lead to a command; what follows a command without further ones is an argument."""
    for name in names:
        if not isinstance(command, TyperGroup):
            return True
        if name not in command.commands:
            return False
        command = command.commands[name]
    return True
