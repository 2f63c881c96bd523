"""The files that `waypost dev` writes: its instance key, and the variables for other programs."""

import contextlib
import fcntl
import os
import stat
from collections.abc import Generator
from pathlib import Path
from typing import Final

from waypost.assembly.dev import demo
from waypost.assembly.dev.service_and_simulator import BaseUrls
from waypost.config import Settings

ENV_FILE: Final = Path("waypost-dev.env")


class EnvFileInUse(Exception):
    """The file has the variables of another `waypost dev`, which runs; the text has a fix hint."""


def read_or_create_instance_key(settings: Settings) -> str:
    """Return the secret key of the settings, or the demonstration's, stored in a file that only its owner can read.

    The demonstration's key is public, because app tokens derive from it and must be the same on every
    machine; `serve` rejects it.
    """
    if settings.secret_key is not None:
        return settings.secret_key
    settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = settings.data / "instance.key"
    if not path.exists():
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(demo.INSTANCE_KEY + "\n")
    return path.read_text(encoding="utf-8").strip()


def make_variables(urls: BaseUrls, admin_token: str, app_token: str) -> dict[str, str]:
    """Return the variables for other programs. Source: decision 0088."""
    base_url, graph_url = urls.base_url, urls.graph_url
    return {
        "PARTNER_URL": base_url,
        "API_URL": base_url,
        "GRAPH_URL": graph_url,
        "CONTROL_URL": f"{graph_url}/control",
        "EMAIL": demo.EMAIL,
        "PASSWORD": demo.PASSWORD,
        "CLIENT_SECRET": demo.CLIENT_SECRET,
        "APP_ID": demo.APP_ID,
        "APP_TOKEN": app_token,
        "API_KEY": demo.API_KEY,
        "SOURCE": demo.SOURCE,
        "SRC_NAME": demo.APP_NAME,
        "WABA_ID": demo.WABA_ID,
        "PHONE_NUMBER_ID": demo.PHONE_NUMBER_ID,
        "GRAPH_TOKEN": demo.GRAPH_TOKEN,
        "DESTINATION": demo.DESTINATION,
        "TEMPLATE_ID": demo.TEMPLATE_ID,
        "ADMIN_URL": f"{base_url}/admin",
        "ADMIN_TOKEN": admin_token,
    }


@contextlib.contextmanager
def written_env(path: Path, variables: dict[str, str]) -> Generator[None]:
    """Write the variables for other programs, readable by their owner only; delete the file at the end.

    Until then, or until this process is killed, the file is locked: no other `waypost dev` overwrites it.

    Raises:
        EnvFileInUse: another `waypost dev` has written it, and runs.
    """
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
        written = os.fstat(file.fileno())
        if stat.S_ISREG(written.st_mode):
            _lock(file.fileno(), path)
            file.truncate()
        file.write(format_env(variables))
        file.flush()
        if stat.S_ISREG(written.st_mode):
            try:
                yield
            finally:
                with contextlib.suppress(FileNotFoundError):
                    if os.path.samestat(path.stat(), written):
                        path.unlink()
            return
    yield  # a pipe: its reader waits for its end


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise EnvFileInUse(
            f"{path} has the variables of another `waypost dev`, which is running: name another file with --env-file"
        ) from error
    except OSError:  # a file system without locks
        return


def format_env(variables: dict[str, str]) -> str:
    """Return the variables as lines `NAME=value`."""
    return "".join(f"{name}={value}\n" for name, value in variables.items())
