"""Where a command takes a secret from: an option, a file, an environment variable, or a question.

What stands in a command line is seen by everybody on the machine, so the option is for secrets that
are none.
"""

import sys
from pathlib import Path

import typer

STDIN = Path("-")


def take_secret(given: str | None, file: Path | None, *, name: str, wanted: bool) -> str | None:
    """The secret: as given, else a line of the file, else the answer to a question.

    Args:
        given: by option or environment.
        file: whose first line it is; `-` is standard input, of which every secret takes a line.
        name: of the secret, for the question and for complaints.
        wanted: whether to ask when it comes from nowhere else and somebody sits there.

    Raises:
        typer.BadParameter: the file cannot be read, or has no such line.
    """
    if given:
        return given
    if file is not None:
        secret = _line_of(file, name)
        if not secret:
            raise typer.BadParameter(f"{file} has no line for the {name}")
        return secret
    if wanted and sys.stdin.isatty():
        return typer.prompt(name.capitalize(), hide_input=True)
    return None


def _line_of(file: Path, name: str) -> str:
    if file == STDIN:
        return sys.stdin.readline().strip()
    try:
        return file.read_text(encoding="utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeError) as error:
        raise typer.BadParameter(f"{file} cannot be read for the {name}: {error}") from error
