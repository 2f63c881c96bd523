"""What a command says in one line when it cannot do what it was asked, and the exit code it ends with."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from pydantic import ValidationError

from waypost.client.api_client import ApiResponseError, NotReached
from waypost.client.dev_variables import MissingVariable
from waypost.config import Settings

FAILED = 1
MISUSED = 2
_UNAUTHORIZED = 401


def complain(text: str, *, code: int = FAILED) -> NoReturn:
    """Say one line where errors go, and end."""
    typer.echo(f"waypost: {text}", err=True)
    raise typer.Exit(code)


def settings_of(**given: Any) -> Settings:
    """The settings of the environment, and those that a command was given; a wrong one ends it.

    Args:
        given: by name; None is not given.
    """
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        wrong = error.errors()[0]
        name = ".".join(map(str, wrong["loc"]))
        why = wrong["msg"].removeprefix("Value error, ")
        complain(f"the setting {name} is wrong: {why}", code=MISUSED)


@contextmanager
def one_line(*foreseen: type[Exception], address: str, credential: str = "") -> Generator[None]:
    """Turn what keeps a command from a door into one line with its remedy.

    Args:
        foreseen: what else may happen, and says its own remedy.
        address: what tells the command where the door is.
        credential: what tells it the credential; empty where nothing does.
    """
    try:
        yield
    except NotReached as error:
        complain(f"{error}; start what should answer there, or see that {address} is right")
    except ApiResponseError as error:
        is_unknown = credential and error.status == _UNAUTHORIZED
        complain(f"{error}; see that {credential} is right" if is_unknown else str(error))
    except (MissingVariable, *foreseen) as error:
        complain(str(error))
