"""The group of commands: its help by subject, and errors that name the most similar option."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, Final, Protocol, cast

import typer
from typer.core import TyperGroup

CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 120}
"""Settings of the outermost group; its commands inherit them."""
OTHER_SUBJECT: Final = "Commands"
_UNCUT: Final = 1000
"""Characters of a help in a list of commands; the default cuts it to one line of the terminal."""
_USAGE_ERROR: Final = cast("type[Exception]", typer.BadParameter.__bases__[0])
"""The error of which the one about an unknown option is a kind; the library does not name it."""


class _UnknownOption(Protocol):
    """The error about an unknown option."""

    message: str
    option_name: str
    possibilities: list[str] | None


class SubjectGroup(TyperGroup):
    """Commands listed by subject, in the order in which the subjects first occur.

    The subject of a command is its `rich_help_panel`. Help is plain text, so that it needs no further module.
    """

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Write a section for each subject, with the first sentence of each command, uncut."""
        rows: dict[str, list[tuple[str, str]]] = {subject: [] for subject in SUBJECTS}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                subject = getattr(command, "rich_help_panel", None)
                subject = subject if isinstance(subject, str) else OTHER_SUBJECT
                rows.setdefault(subject, []).append((name, command.get_short_help_str(_UNCUT)))
        for subject, commands in rows.items():
            if commands:
                with formatter.section(subject):
                    formatter.write_dl(commands)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options of the group."""
        with _suggest_option():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command of the group; its options are parsed here."""
        with _suggest_option():
            return super().invoke(ctx)


SUBJECTS: Final = (
    RUN := "Run",
    EXCHANGE := "Send and receive",
    SIMULATE := "Simulate",
    SET_UP := "Set up",
    INSPECT := "Inspect",
    STORE := "Store and personal data",
    OTHER := "This program",
)
"""Subjects of the commands, in the order of the help."""


_LIBRARY_TEXTS: Final = (  # texts of the library that checks values, and ours
    (re.compile(r"Value error, "), ""),
    (re.compile(r"Input should be a valid integer.*"), "must be a whole number"),
    (re.compile(r"Input should be a valid number.*"), "must be a number"),
    (re.compile(r"Input should be a valid boolean.*"), "must be true or false"),
    (re.compile(r"Input should be greater than or equal to (\S+)"), r"must be at least \1"),
    (re.compile(r"Input should be less than or equal to (\S+)"), r"must be at most \1"),
    (re.compile(r"Input should be "), "must be "),
    (re.compile(r"Got unexpected extra argument\(s\) \((.*)\)"), r"There is nothing to do with: \1"),
)


def _translate(text: str) -> str:
    for library_text, ours in _LIBRARY_TEXTS:
        text = library_text.sub(ours, text)
    return text


@contextmanager
def _suggest_option() -> Generator[None]:
    """Say an error of usage in our words; that about an unknown option has the most similar one."""
    try:
        yield
    except _USAGE_ERROR as error:
        unknown = cast("_UnknownOption", error)
        unknown.message = _translate(unknown.message)
        similar: list[str] | None = getattr(unknown, "possibilities", None)
        if similar:
            best = get_close_matches(unknown.option_name, similar, n=1) or similar[:1]
            unknown.message = f"{unknown.message.rstrip('.')}. Did you mean {best[0]}?"
            unknown.possibilities = None
        raise
