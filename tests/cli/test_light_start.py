"""What the commands load when they start: for a fast start and less memory, nothing that is needed rarely or never."""

import asyncio
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

import pytest

from crashes.processes import free_port
from tests.support.polling import HANGS_AFTER_S, poll_until

# fmt: off
NOT_LOADED: Final = {  # each module with its submodules, and when it is loaded. Source: decision 0087, T7
    #                         when it is loaded                                 not by
    "alembic":                ("a store of an earlier revision is upgraded",     ("help", "dev", "serve")),
    "mako":                   ("with alembic",                                   ("help", "dev", "serve")),
    "PIL":                    ("an uploaded image is inspected",                 ("help", "dev", "serve")),
    "puremagic":              ("an uploaded file is inspected",                  ("help", "dev", "serve")),
    "phonenumbers":           ("the country of a number is looked up",           ("help", "dev", "serve")),
    "rich.console":           ("never; `rich` itself is hidden from its users",  ("help", "dev", "serve")),
    "aiohttp":                ("a request is sent that is no small POST",        ("help", "dev", "serve")),
    "mcp":                    ("`waypost mcp` starts",                           ("help", "dev", "serve")),
    "prometheus_client":      ("metrics are requested",                          ("help", "dev", "serve")),
    "opentelemetry":          ("spans are enabled",                              ("help", "dev", "serve")),
    "psycopg":                ("the store is on PostgreSQL",                     ("help", "dev", "serve")),
    "jinja2":                 ("a page is rendered",                             ("help", "dev", "serve")),
    "sqlalchemy.orm":         ("never: the store uses Core",                     ("help", "dev", "serve")),
    "waypost.console.routes": ("a page of the console is requested",            ("help", "dev", "serve")),
    "waypost.simulator":      ("`dev` and `simulator` start it",                 ("help", "serve")),
    "waypost.assembly":       ("a command starts a service or opens its store",  ("help",)),
    "waypost.config":         ("a command reads a setting",                      ("help",)),
    "pydantic":               ("a command has parameters",                       ("help",)),
    "sqlalchemy":             ("a command opens the store",                      ("help",)),
    "uvicorn":                ("a command serves",                               ("help",)),
    "starlette":              ("a command serves",                               ("help",)),
    "structlog":              ("a command logs",                                 ("help",)),
    "waypost.cli.command_tree": ("another command than `intercept` runs",        ("intercept",)),
}
# fmt: on
LOADED: Final = {
    "help": {"typer"},
    "dev": {"uvicorn", "sqlalchemy", "waypost.simulator"},
    "serve": {"uvicorn"},
    "intercept": {"typer"},
}
"""Some modules of each command, so that the test would notice if it did not see them."""
ARGUMENTS: Final = {
    "help": ("--help",),
    "dev": ("dev", "--port", "{port}", "--simulator-port", "{other}"),
    "serve": ("serve", "--port", "{port}"),
    "intercept": ("intercept", "--help"),
}
COMMANDS: Final = tuple(ARGUMENTS)
_IMPORTED: Final = re.compile(r"^import time:.*\| +([\w.]+)$", re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
async def test_start_does_not_load_rarely_needed_modules(command: str, tmp_path: Path) -> None:
    loaded = await modules_loaded_by(command, tmp_path)

    assert loaded >= LOADED[command], (tmp_path / "stderr").read_text()[-3000:]
    rarely_needed = [name for name, (_, commands) in NOT_LOADED.items() if command in commands]
    assert [name for name in rarely_needed if _has(loaded, name)] == []


async def modules_loaded_by(command: str, folder: Path) -> set[str]:
    """Return what a command loads; a server until it responds that it is ready, and until it has stopped."""
    port = free_port()
    with _start(folder, *(argument.format(port=port, other=free_port()) for argument in ARGUMENTS[command])) as process:
        if command != "help":
            await poll_until(lambda: asyncio.to_thread(_is_ready_or_has_ended, port, process))
            process.terminate()
        await asyncio.to_thread(process.wait, HANGS_AFTER_S)
    return set(_IMPORTED.findall((folder / "stderr").read_text()))


def _start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "WAYPOST_SECRET_KEY": "of a test, 32 characters at least"}
    with (folder / "stderr").open("wb") as errors:
        return subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", "waypost", *arguments],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )


def _is_ready_or_has_ended(port: int, process: subprocess.Popen[bytes]) -> bool:
    if process.poll() is not None:
        return True
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=HANGS_AFTER_S).close()
    except (urllib.error.URLError, ConnectionError):
        return False
    return True


def _has(modules: set[str], name: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for module in modules)
