"""The output of the commands: JSON for programs, tables for people, progress on a terminal."""

import json
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Annotated, Any, Final, TextIO

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def print_json(view: Any) -> None:
    """Print a value as indented JSON."""
    typer.echo(json.dumps(view, indent=2, ensure_ascii=False))


def print_view(view: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a response: the complete JSON for programs, or tables for people."""
    if as_json:
        print_json(view)
        return
    from waypost.cli.tables import format_view

    for line in format_view(view):
        typer.echo(line)


INTERVAL_S: Final = 0.1
"""Least time between two writings of the line."""
REWRITE: Final = "\r\x1b[K"
"""Return to the beginning of the line, and delete it."""


class ProgressLine:
    """The line; without a terminal it writes nothing."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_shown = stream.isatty()
        self._next_s = 0.0

    def show(self, text: str, *, at_once: bool = False) -> None:
        """Replace the line, unless it has just been written and need not be replaced at once."""
        if not self._is_shown or (monotonic() < self._next_s and not at_once):
            return
        self._next_s = monotonic() + INTERVAL_S
        self._stream.write(f"{REWRITE}{text}")
        self._stream.flush()

    def clear(self) -> None:
        """Delete the line."""
        if self._is_shown:
            self._stream.write(REWRITE)
            self._stream.flush()


@contextmanager
def show_progress(text: str = "") -> Generator[ProgressLine]:
    """Show progress on standard error, and delete the line at the end."""
    progress = ProgressLine(sys.stderr)
    if text:
        progress.show(text, at_once=True)
    try:
        yield progress
    finally:
        progress.clear()
