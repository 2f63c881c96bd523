"""`--json`, and the printing of a response for the reader that it chooses."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

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
