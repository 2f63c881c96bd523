"""Errors of the commands: one line on standard error, and an exit code."""

import json
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from waypost.base.error_texts import error_text, json_error_text
from waypost.cli.variables import InvalidSetting
from waypost.client.dev_variables import MissingVariable
from waypost.client.responses import ApiResponseError, ApiUnreachable

if TYPE_CHECKING:  # slow to import, and the help needs no settings
    from waypost.cli.setting_sources import SettingsWithSources
    from waypost.config import Settings


EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130  # as of a shell
_UNAUTHORIZED = 401


class CommandError(Exception):
    """A command or a tool cannot do what it was called for.

    Args:
        field: the invalid argument, or the field of the API; empty: the error is not about one.
        rule: the rule that it breaks.
        accepted: what would be accepted, or what to do; empty: the rule says it.
    """

    def __init__(self, field: str, rule: str, accepted: str) -> None:
        super().__init__(rule + (f"; accepted: {accepted}" if accepted else ""))
        self.field = field
        self.rule = rule
        self.accepted = accepted


class _ErrorOutput:
    """The output of a command's error: standard error, or the log of a process whose output programs read."""

    record: Callable[[str], object] | None = None


def fail(text: str, *, code: int = EXIT_FAILURE) -> NoReturn:
    """Print one line to standard error, and exit."""
    import typer

    from waypost.cli.output import REWRITE

    if _ErrorOutput.record is None:
        replaced = REWRITE if sys.stderr.isatty() else ""  # a line of progress, if there is one
        typer.echo(f"{replaced}waypost: {text}", err=True)
    else:
        _ErrorOutput.record(text)
    raise typer.Exit(code)


@contextmanager
def exit_on_failure() -> Generator[None]:
    """Exit with the code of `fail`, for a command that runs without the library of commands."""
    try:
        yield
    except RuntimeError as error:
        import typer

        if isinstance(error, typer.Exit):
            sys.exit(error.exit_code)
        raise
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


def load_settings(config: Path | None = None, assignments: Sequence[str] = (), **options: Any) -> "SettingsWithSources":
    """Return the settings from a command's options, the environment and files; exit if one is invalid.

    An assignment is `name=value`; an option that is None is not given.
    """
    from waypost.cli.setting_sources import read_settings

    try:
        return read_settings(config, assignments, **options)
    except InvalidSetting as error:
        fail(str(error), code=EXIT_USAGE)


def log_process(settings: "Settings", *, worker: int | None = None) -> Callable[[str], None]:
    """Set up the log of a process that serves; return a function that prints a line to standard output.

    With `log_format=json` everything that the process writes from now on is a record, errors that end it too.
    """
    import typer

    from waypost.base.clock import SystemClock
    from waypost.base.telemetry.logs import log, log_everything, set_up_logs

    clock, as_json = SystemClock(), settings.log_format == "json"
    set_up_logs(clock, as_json=as_json, level=settings.log_level, worker=worker)
    if as_json:
        _ErrorOutput.record = log("cli").error
    format_line = log_everything(clock, as_json=as_json, worker=worker)
    return lambda text: typer.echo(format_line(text))


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
        text = str(error) if error.accepted in str(error) else f"{error}; accepted: {error.accepted}"
        is_unknown = credential and error.status == _UNAUTHORIZED
        fail(f"{error}; check that {credential} is right" if is_unknown else text)
    except (CommandError, MissingVariable, *foreseen) as error:
        fail(str(error))


def read_json_object(file: Path, option: str) -> dict[str, Any]:
    """Return the JSON object in a file, or in standard input if it is -; exit if it is none."""
    import typer

    try:
        text = typer.get_text_stream("stdin").read() if str(file) == "-" else file.read_text(encoding="utf-8")
        value = json.loads(text)
    except (OSError, UnicodeError) as error:
        fail(f"{option} {file} cannot be read: {error_text(error)}", code=EXIT_USAGE)
    except ValueError as error:
        fail(f"{option} {file} {json_error_text(error)}", code=EXIT_USAGE)
    if not isinstance(value, dict):
        fail(f"{option} {file} must have one JSON object, as in {{…}}", code=EXIT_USAGE)
    return cast("dict[str, Any]", value)
