"""`waypost flow check`: what the operator would say of a file of Flow JSON, without a service."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waypost.cli.errors import EXIT_FAILURE, EXIT_USAGE, fail
from waypost.cli.output import AsJson, print_json

if TYPE_CHECKING:
    from waypost.flow_json.validator import CheckedFlow

flow = typer.Typer(help="Flows: check their JSON.", no_args_is_help=True)

STANDARD_INPUT = Path("-")


@flow.command("check")
def check_files(
    files: Annotated[list[Path], typer.Argument(help="Files of Flow JSON; - reads standard input.")],
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail for warnings, too: what a handset would cut off or leave out.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check files of Flow JSON as the operator does; exit code 1 if it would reject one.

    Each error is a line with file, line and column, which editors and CI services can follow.
    """
    from waypost.flow_json.validator import check_flow_json  # its tables take a seventh of the start of any command

    checked = {str(file): check_flow_json(_read(file)) for file in files}
    if as_json:
        print_json({name: {"validation_errors": one.errors, "warnings": one.warnings} for name, one in checked.items()})
    else:
        for name, one in checked.items():
            for line in _output_lines(name, one):
                typer.echo(line)
    if any(one.errors or (strict and one.warnings) for one in checked.values()):
        raise typer.Exit(EXIT_FAILURE)


def _read(file: Path) -> str:
    try:
        content = sys.stdin.buffer.read() if file == STANDARD_INPUT else file.read_bytes()
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}", code=EXIT_USAGE)
    return content.decode("utf-8-sig", errors="replace")


def _output_lines(name: str, checked: "CheckedFlow") -> Iterator[str]:
    found = [("error", one) for one in checked.errors] + [("warning", one) for one in checked.warnings]
    if not found:
        yield f"{name}: valid"
    for kind, one in sorted(found, key=_position_of):
        yield f"{name}:{one['line_start']}:{one['column_start']}: {kind}: {one['message']} [{one['error']}]"


def _position_of(kind_and_error: tuple[str, dict[str, Any]]) -> tuple[int, int]:
    _, one = kind_and_error
    return one["line_start"], one["column_start"]
