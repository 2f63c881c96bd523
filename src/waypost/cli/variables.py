"""The environment variables `WAYPOST_…` that are no settings of the service, and secrets of commands in files."""

import os
import re
from pathlib import Path
from typing import Final

PREFIX: Final = "WAYPOST_"
FILE_SUFFIX: Final = "_FILE"

OTHER_VARIABLES: Final = {  # read by a command or by our own tests; each command accepts them in its environment
    # name                       its reader
    "WAYPOST_CONFIG": "every command that reads settings: the TOML file of the settings",
    "WAYPOST_ADMIN_URL": "commands of the admin API: the URL of a running service",
    "WAYPOST_CONTROL_URL": "commands of the simulator: the URL of one that runs elsewhere",
    "WAYPOST_CONTROL_TOKEN": "`waypost simulator`, and commands of the simulator: the credential of the control API",
    "WAYPOST_PARTNER_PASSWORD": "`waypost partner`: the partner's password",
    "WAYPOST_OPERATOR_TOKEN": "`waypost account`: the access token of the operator account",
    "WAYPOST_OPERATOR_APP_SECRET": "`waypost account`: the app secret of the operator account",
    "WAYPOST_OPERATOR_VERIFY_TOKEN": "`waypost account`: the verify token of the operator account",
    "WAYPOST_MOVE_TO": "`waypost move`: the URL of the new database",
    "WAYPOST_CHROMIUM": "the tests of this project",
    "WAYPOST_TEST_DATABASE_URL": "the tests of this project",
    "WAYPOST_TEST_PROXIES": "the tests of this project",
    "WAYPOST_FUZZ_EXAMPLES": "the tests of this project",
    "WAYPOST_FUZZ_SEED": "the tests of this project",
    "WAYPOST_MODEL_STEPS": "the tests of this project",
    "WAYPOST_MODEL_SEED": "the tests of this project",
}
COMMAND_SECRETS: Final = (
    "WAYPOST_CONTROL_TOKEN",
    "WAYPOST_PARTNER_PASSWORD",
    "WAYPOST_OPERATOR_TOKEN",
    "WAYPOST_OPERATOR_APP_SECRET",
    "WAYPOST_OPERATOR_VERIFY_TOKEN",
    "WAYPOST_MOVE_TO",
)  # each can be read from a file, by `…_FILE`
KUBERNETES_VARIABLE: Final = re.compile(r"WAYPOST(_\w+)?_(SERVICE_(HOST|PORT)(_\w+)?|PORT_\d+_(TCP|UDP)(_\w+)?)")
"""What Kubernetes sets in each pod of a namespace that has a service with the name `waypost`."""


class InvalidSetting(Exception):
    """A setting, or the source of one, cannot be used; the text names it, the rule, and what would be accepted."""


def read_secret_file(path: str, named_by: str) -> str:
    """Return the secret in a file, without line breaks at its end; `named_by` is its variable or member, for errors.

    Raises:
        InvalidSetting: the file cannot be read, or is empty.
    """
    try:
        text = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError) as error:  # ValueError: no UTF-8, or a null character in the path
        rule = (error.strerror if isinstance(error, OSError) else None) or "it is no text in UTF-8"
        raise InvalidSetting(
            f"{named_by} names {path!r}, which cannot be read ({rule}); name a readable file"
        ) from error
    if not text:
        raise InvalidSetting(f"{named_by} names {path!r}, which is empty; write the secret to it")
    return text


def set_command_secrets() -> None:
    """Set the variables of commands' secrets that are given as files.

    Raises:
        InvalidSetting: a file cannot be used, or secret and file are given.
    """
    for name in COMMAND_SECRETS:
        if path := os.environ.get(name + FILE_SUFFIX):
            if os.environ.get(name):
                raise InvalidSetting(f"{name} and {name}{FILE_SUFFIX} are both set; unset one of them")
            os.environ[name] = read_secret_file(path, name + FILE_SUFFIX)
            del os.environ[name + FILE_SUFFIX]  # a child process inherits the first one
