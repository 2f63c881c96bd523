"""Reads the settings: options of a command, then environment, files of secrets, a TOML file, and defaults.

The first source that has a setting wins. Commands call `read_settings`.
"""

import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from waypost.base.error_texts import error_text, toml_error_text
from waypost.cli.variables import (
    COMMAND_SECRETS,
    FILE_SUFFIX,
    KUBERNETES_VARIABLE,
    OTHER_VARIABLES,
    PREFIX,
    InvalidSetting,
    read_secret_file,
)
from waypost.config import SECRETS, SETTINGS, InvalidSettingValue, Settings, convert_settings

CONFIG_VARIABLE: Final = "WAYPOST_CONFIG"
CONFIG_FILE: Final = "waypost.toml"
"""Read if it is in the working folder and no other file is named."""
DEFAULT: Final = "default"
FILE_MEMBERS: Final = {name + FILE_SUFFIX.lower(): name for name in SECRETS}
"""Names of members and, in capitals, of variables that name a file with a secret."""


@dataclass(frozen=True, slots=True)
class GivenValue:
    """A value and its source."""

    value: object  # the text of a variable or file, or a member of the TOML file
    source: str  # names it, such as `WAYPOST_PORT` or `port in waypost.toml`


@dataclass(frozen=True, slots=True)
class SettingsWithSources:
    """Valid settings, and the source of each that is not the default."""

    settings: Settings
    sources: Mapping[str, str]


def read_settings(config: Path | None = None, assignments: Sequence[str] = (), **options: Any) -> SettingsWithSources:
    """Return the settings and their sources.

    Args:
        config: the TOML file; None: the one that WAYPOST_CONFIG names, or `waypost.toml` if it is there.
        assignments: settings of a command line, each `name=value`; of two with one name, the later is used.
        options: settings that a command line gives, by name; None is not given.

    Raises:
        InvalidSetting: a name is unknown, a source cannot be read, or a value is invalid.
    """
    given = (
        _read_toml_file(config)
        | _read_environment()
        | _read_assignments(assignments)
        | {name: GivenValue(value, f"--{name}") for name, value in options.items() if value is not None}
    )
    try:
        settings = convert_settings({name: one.value for name, one in given.items()})
    except InvalidSettingValue as error:
        raise InvalidSetting(describe_invalid_setting(error, given)) from error
    return SettingsWithSources(settings, {name: one.source for name, one in given.items()})


def describe_invalid_setting(error: InvalidSettingValue, given: Mapping[str, GivenValue]) -> str:
    """Return the error of a setting, with the source of the value and, unless it is a secret, the value."""
    value = "" if error.name in SECRETS else f" is {given[error.name].value!r}"
    return f"{error} ({given[error.name].source}{value})"


def _read_assignments(assignments: Sequence[str]) -> dict[str, GivenValue]:
    values: dict[str, GivenValue] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise InvalidSetting(f"--set must be NAME=VALUE, as in rates=false; {assignment!r} is not")
        if name not in SETTINGS:
            raise InvalidSetting(f"there is no setting {name}, in --set: {_nearest(name, SETTINGS)}")
        values[name] = GivenValue(text, f"--set {name}")
    return values


def _read_environment() -> dict[str, GivenValue]:
    variables = {name: text for name, text in os.environ.items() if name.upper().startswith(PREFIX)}
    known = {PREFIX + name.upper(): name for name in SETTINGS}
    files = {PREFIX + name.upper(): secret for name, secret in FILE_MEMBERS.items()}
    others = (*OTHER_VARIABLES, *(name + FILE_SUFFIX for name in COMMAND_SECRETS))
    for name in sorted(variables):
        if name not in known and name not in files and name not in others:
            hint = (
                "Kubernetes sets it for a service with the name waypost: set enableServiceLinks: false in the pod"
                if KUBERNETES_VARIABLE.fullmatch(name)
                else _nearest(name, (*known, *files, *others))
            )
            raise InvalidSetting(f"there is no setting {name}: {hint}")
    texts = {known[name]: GivenValue(text, name) for name, text in variables.items() if name in known and text}
    return texts | _read_secret_files(
        {files[name]: GivenValue(path, name) for name, path in variables.items() if name in files and path}, texts
    )


def _read_toml_file(config: Path | None) -> dict[str, GivenValue]:
    named = str(config or "") or os.environ.get(CONFIG_VARIABLE)
    file = named or CONFIG_FILE
    try:
        members = tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if named:
            raise InvalidSetting(f"the file of settings {file!r} is not there; name one that exists") from error
        return {}
    except OSError as error:
        raise InvalidSetting(f"the file of settings {file!r} cannot be read ({error_text(error)})") from error
    except ValueError as error:  # also a null character in the path
        raise InvalidSetting(f"the file of settings {file!r} {toml_error_text(error)}") from error
    for name in members:
        if name not in SETTINGS and name not in FILE_MEMBERS:
            hint = _nearest(name, (*SETTINGS, *FILE_MEMBERS))
            raise InvalidSetting(f"there is no setting {name}, in {file}: {hint}")
    values = {name: GivenValue(value, f"{name} in {file}") for name, value in members.items() if value != ""}
    files = {FILE_MEMBERS[name]: values.pop(name) for name in tuple(values) if name in FILE_MEMBERS}
    return values | _read_secret_files(files, values)


def _read_secret_files(files: Mapping[str, GivenValue], texts: Mapping[str, GivenValue]) -> dict[str, GivenValue]:
    secrets: dict[str, GivenValue] = {}
    for name, path in files.items():
        if name in texts:
            raise InvalidSetting(f"{texts[name].source} and {path.source} are both set; keep one of them")
        if not isinstance(path.value, str):
            raise InvalidSetting(f"{path.source} must be the path of a file, as a text")
        secrets[name] = GivenValue(read_secret_file(path.value, path.source), f"{path.source} ({path.value})")
    return secrets


def _nearest(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name if name.islower() else name.upper(), tuple(known), n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else "`waypost config` lists the settings"
