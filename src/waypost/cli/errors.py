"""Errors of the commands: one line on standard error, and an exit code."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from waypost.client.dev_variables import MissingVariable
from waypost.client.responses import ApiResponseError, ApiUnreachable

if TYPE_CHECKING:  # slow to import, and the help needs no settings
    from waypost.config import Settings

EXIT_FAILURE = 1
EXIT_USAGE = 2
_UNAUTHORIZED = 401


def fail(text: str, *, code: int = EXIT_FAILURE) -> NoReturn:
    """Print one line to standard error, and exit."""
    typer.echo(f"waypost: {text}", err=True)
    raise typer.Exit(code)


def load_settings(**overrides: Any) -> "Settings":
    """Return the settings from the environment and from a command's options; exit if one is invalid.

    Args:
        overrides: settings by name; None is not set.
    """
    from pydantic import ValidationError

    from waypost.config import Settings

    try:
        return Settings(**{name: value for name, value in overrides.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        rule = first["msg"].removeprefix("Value error, ")
        fail(f"the setting {name} is invalid: {rule}", code=EXIT_USAGE)


@contextmanager
def report_api_errors(*foreseen: type[Exception], address: str, credential: str = "") -> Generator[None]:
    """Print errors of API calls as one line with a fix hint, and exit.

    Args:
        foreseen: further exceptions; their texts have a fix hint already.
        address: names the setting that has the API's address.
        credential: names the setting that has the credential; empty if there is none.
    """
    try:
        yield
    except ApiUnreachable as error:
        fail(f"{error}; start the service, or check that {address} is right")
    except ApiResponseError as error:
        is_unknown = credential and error.status == _UNAUTHORIZED
        fail(f"{error}; check that {credential} is right" if is_unknown else str(error))
    except (MissingVariable, *foreseen) as error:
        fail(str(error))
