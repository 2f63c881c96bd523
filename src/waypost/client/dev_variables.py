"""The environment file that `waypost dev` writes for other programs."""

from pathlib import Path
from typing import Final

from waypost.base.error_texts import error_text

ENV_FILE: Final = Path("waypost-dev.env")
"""Its name, in the working folder."""


class MissingVariable(Exception):
    """A variable is missing from the environment file; the text has its source."""


def read_variables(path: Path) -> dict[str, str]:
    """Return the variables that `waypost dev` has written.

    Raises:
        MissingVariable: the file is missing or cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        raise MissingVariable(
            f"{path} is not there: start `waypost dev` first, or name its file with --env-file"
        ) from error
    except (OSError, UnicodeError) as error:
        raise MissingVariable(f"{path} is no file of variables: {error_text(error)}") from error
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def dev_variables(env_file: Path) -> dict[str, str]:
    """Return the variables of the `waypost dev` that has written a file; none if there is no such file."""
    try:
        return read_variables(env_file)
    except MissingVariable:
        return {}
