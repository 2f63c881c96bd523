"""`waypost completion`: the script that completes commands and options in a shell."""

import os
from enum import StrEnum
from typing import Annotated, Final

import typer

PROGRAM: Final = "waypost"
_VARIABLE: Final = "_WAYPOST_COMPLETE"


class Shell(StrEnum):
    """A shell."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print the script that completes commands and options in a shell: eval "$(waypost completion bash)"."""
    from typer.completion import get_completion_script  # pyright: ignore[reportPrivateImportUsage]

    typer.echo(get_completion_script(prog_name=PROGRAM, complete_var=_VARIABLE, shell=shell.value))


def prepare_completion() -> None:
    """Register the shells if a shell requests completions in this call."""
    if _VARIABLE in os.environ:
        from typer.completion import completion_init  # pyright: ignore[reportPrivateImportUsage]

        completion_init()
