"""The commands as processes: their output, their errors, and their exit codes."""

import asyncio
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import sysconfig
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from crashes.processes import free_port
from tests.support.builders import PARTNER
from tests.support.polling import HANGS_AFTER_S
from waypost import __version__
from waypost.assembly.dev import demo
from waypost.assembly.serve import InvalidConfiguration, serve
from waypost.base.clock import SystemClock
from waypost.base.encryption import SecretBox
from waypost.base.ids import RandomIds
from waypost.config import Settings
from waypost.store.accounts.partners import add_partner
from waypost.store.database import Database
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.properties import mark_demo

# fmt: off
VARIABLE_NAMES: Final = {  # Source: decision 0088
    "PARTNER_URL", "API_URL", "GRAPH_URL", "CONTROL_URL", "EMAIL", "PASSWORD", "CLIENT_SECRET",
    "APP_ID", "APP_TOKEN", "API_KEY", "SOURCE", "SRC_NAME", "WABA_ID", "PHONE_NUMBER_ID",
    "GRAPH_TOKEN", "DESTINATION", "TEMPLATE_ID", "ADMIN_URL", "ADMIN_TOKEN",
}
# fmt: on
KEY: Final = "5ec70b1d" * 8
DEV_ON_FREE_PORTS: Final = ("dev", "--port", "0", "--simulator-port", "0")


class Shell:
    """Starts `waypost` in its own folder, without this machine's settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment: dict[str, str] = {}
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str, stdin: int | None = None, **settings: str) -> subprocess.Popen[str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("WAYPOST_")}
        own = {f"WAYPOST_{name.upper()}": value for name, value in settings.items()}
        process = subprocess.Popen(
            [sys.executable, "-m", "waypost", *arguments],
            cwd=self.folder,
            env=inherited | own | {"TMPDIR": str(self.folder)} | self.environment,
            text=True,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._started.append(process)
        return process

    def run(self, *arguments: str, **settings: str) -> tuple[int, str, str]:
        """Run a command; return its exit code, its output and its errors."""
        process = self.start(*arguments, stdin=None, **settings)
        printed, errors = process.communicate(timeout=HANGS_AFTER_S)
        return process.returncode, printed, errors

    def dev(self, *arguments: str) -> tuple[subprocess.Popen[str], str]:
        """Start `waypost dev` on free ports; return the process and its output so far."""
        process = self.start("dev", "--port", "0", "--simulator-port", "0", *arguments)
        return process, read_until(process, "README")

    def kill_all(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()


def read_until(process: subprocess.Popen[str], text: str) -> str:
    """Return the output of a process up to the line with the text."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if text in line:
            return "".join(lines)
    raise AssertionError(f"the process ended: {lines} {process.communicate()[1]}")


def stop(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Send SIGTERM; return the exit code and the errors."""
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=HANGS_AFTER_S)
    return process.returncode, errors


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.kill_all()


def read_dev_variables(folder: Path) -> dict[str, str]:
    lines = (folder / "waypost-dev.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def send_request(method: str, url: str, body: bytes | None = None, **headers: str) -> Any:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, body, names, method=method)
    with urllib.request.urlopen(request, timeout=HANGS_AFTER_S) as response:
        return json.loads(response.read())


def test_dev_prints_its_urls_and_credentials_and_stops_at_a_signal(shell: Shell) -> None:
    process, printed = shell.dev()

    variables = read_dev_variables(shell.folder)
    mode = stat.S_IMODE((shell.folder / "waypost-dev.env").stat().st_mode)
    code, errors = stop(process)

    assert set(variables) == VARIABLE_NAMES
    assert variables["APP_ID"] == demo.APP_ID
    assert variables["APP_TOKEN"] == SecretBox(demo.INSTANCE_KEY).app_token(demo.APP_ID, 1)
    for name in ("PARTNER_URL", "GRAPH_URL", "ADMIN_URL", "EMAIL", "PASSWORD", "APP_ID"):
        assert variables[name] in printed
    assert mode == 0o600
    assert (code, errors) == (0, "")


def test_dev_locks_its_folder_and_its_next_start_keeps_the_stored_templates(shell: Shell) -> None:
    process, _ = shell.dev()
    variables = read_dev_variables(shell.folder)
    form = b"elementName=kept&category=UTILITY&templateType=TEXT&vertical=v&content=Hello&example=Hello"
    path = f"/partner/app/{variables['APP_ID']}/templates"
    send_request("POST", variables["PARTNER_URL"] + path, form, Authorization=variables["APP_TOKEN"])
    second = shell.run("dev", "--port", "0", "--simulator-port", "0")
    code, _ = stop(process)

    process, _ = shell.dev()

    variables = read_dev_variables(shell.folder)
    listed = send_request("GET", variables["PARTNER_URL"] + path, Authorization=variables["APP_TOKEN"])
    stop(process)
    assert second[0] == 1
    assert re.fullmatch(r"waypost: .*waypost\.db is in use .*--data\n", second[2])
    assert code == 0
    assert [template["elementName"] for template in listed["templates"]] == ["kept", "order_ready"]


def test_dev_with_memory_leaves_no_files(shell: Shell) -> None:
    process, printed = shell.dev("--memory")

    code, _ = stop(process)

    assert code == 0
    assert "temporary" in printed
    assert list(shell.folder.iterdir()) == []


def test_variables_of_a_running_dev_are_overwritten_by_no_other_and_gone_with_it(shell: Shell) -> None:
    first, _ = shell.dev("--memory")
    written = (shell.folder / "waypost-dev.env").read_bytes()

    code, printed, errors = shell.run(*DEV_ON_FREE_PORTS, "--memory")
    kept = (shell.folder / "waypost-dev.env").read_bytes()
    first.kill()
    first.wait(HANGS_AFTER_S)
    next_one, _ = shell.dev("--memory")
    overwritten = (shell.folder / "waypost-dev.env").read_bytes()
    stop(next_one)

    assert (code, printed) == (1, "")
    assert re.fullmatch(r"waypost: waypost-dev\.env has the variables of another .* --env-file\n", errors)
    assert kept == written != overwritten
    assert not (shell.folder / "waypost-dev.env").exists()


@pytest.mark.parametrize("is_on_path", [False, True])
def test_dev_prints_how_another_terminal_finds_the_command_if_it_is_not_on_the_path(
    shell: Shell, tmp_path: Path, is_on_path: bool
) -> None:
    folder = tmp_path / "folder of commands"
    folder.mkdir()
    if is_on_path:
        (folder / "waypost").touch(mode=0o755)
    shell.environment = {"PATH": str(folder)}

    _, printed = shell.dev()

    lines = re.findall(r'export PATH="(.*):\$PATH"', printed)
    assert lines == ([] if is_on_path else [sysconfig.get_path("scripts")])
    assert is_on_path or (Path(lines[0]) / "waypost").exists()


@pytest.mark.parametrize("option", ["--port", "--simulator-port"])
def test_port_in_use_is_reported_in_one_line_with_its_option(shell: Shell, option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other_server:
        port = other_server.getsockname()[1]
        ports = {"--port": "0", "--simulator-port": "0"} | {option: str(port)}

        code, printed, errors = shell.run(
            "dev", *(argument for option_and_port in ports.items() for argument in option_and_port)
        )

    assert (code, printed) == (1, "")
    assert re.fullmatch(rf"waypost: cannot listen on 127\.0\.0\.1:{port}: .*another port with {option}\n", errors)


def test_serve_without_an_instance_key_names_the_variable_to_set(shell: Shell) -> None:
    code, _, errors = shell.run("serve", "--port", "0")

    assert code == 1
    assert errors.startswith("waypost: secret_key is not set: set WAYPOST_SECRET_KEY")
    assert errors.count("\n") == 1


def test_serve_responds_and_stops_at_a_signal_with_exit_code_0(shell: Shell) -> None:
    process = shell.start("serve", "--port", "0", secret_key=KEY)
    printed = read_until(process, "serves at")
    url = printed.split()[-1]
    store = shell.folder / ".waypost" / "waypost.db"
    assert printed.splitlines()[:2] == [f"store: SQLite file {store}", "rates: as documented"]

    ready = send_request("GET", f"{url}/readyz")
    code, errors = stop(process)

    assert ready["status"] == "ready"
    assert (code, errors) == (0, "")


def test_process_has_readiness_and_metrics_on_its_own_port(shell: Shell) -> None:
    port = free_port()
    process = shell.start("serve", "--port", "0", secret_key=KEY, metrics_port=str(port))
    read_until(process, "serves at")

    ready = send_request("GET", f"http://127.0.0.1:{port}/readyz")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=HANGS_AFTER_S) as response:
        shown = response.read().decode()
    stop(process)

    assert ready["status"] == "ready"
    assert 'waypost_ready{check="disk",process="0"} 1.0' in shown


def test_dev_stops_with_the_program_that_started_it(shell: Shell) -> None:
    """Its input is a pipe that the program keeps open: it closes however the program ends."""
    read_end, write_end = os.pipe()
    process = shell.start(*DEV_ON_FREE_PORTS, "--until-stdin-ends", stdin=read_end)
    os.close(read_end)
    read_until(process, "README")

    os.close(write_end)

    _, errors = process.communicate(timeout=HANGS_AFTER_S)
    assert (process.returncode, errors) == (0, "")


def test_dev_prints_its_variables_for_a_program_without_its_files(shell: Shell) -> None:
    process = shell.start(*DEV_ON_FREE_PORTS, "--env-file", "-", "--set", "wallet_currency=EUR", "--set=port=1")
    assert process.stdout is not None
    lines = list(iter(process.stdout.readline, "\n"))

    variables = dict(line.rstrip("\n").split("=", 1) for line in lines)
    url = f"{variables['PARTNER_URL']}/partner/app/{variables['APP_ID']}/wallet/balance"
    wallet = send_request("GET", url, Authorization=variables["APP_TOKEN"])
    code, errors = stop(process)

    assert wallet["walletResponse"]["currency"] == "EUR"
    assert not (shell.folder / "waypost-dev.env").exists()
    assert (code, errors) == (0, "")


def test_dev_prints_no_variables_if_it_stops_at_once(shell: Shell) -> None:
    """Otherwise the program that reads them would use a service that is gone."""
    process = shell.start(*DEV_ON_FREE_PORTS, "--env-file", "-", "--until-stdin-ends", stdin=subprocess.DEVNULL)

    assert process.communicate(timeout=HANGS_AFTER_S) == ("", "")
    assert process.returncode == 0


@pytest.mark.parametrize(
    "second",
    [("simulator", "--control-token", KEY, "--port", "0"), ("dev", *DEV_ON_FREE_PORTS[1:], "--data", ".waypost")],
    ids=["simulator", "dev"],
)
def test_file_of_a_simulator_is_used_by_one_process_at_a_time(shell: Shell, second: tuple[str, ...]) -> None:
    first = shell.start("simulator", "--control-token", KEY, "--port", "0")
    read_until(first, "listens at")

    code, _, errors = shell.run(*second)

    assert code == 1
    assert "simulator.db is in use by another process; stop that process" in errors
    assert errors.count("\n") == 1


async def test_dev_rejects_a_store_of_serve(shell: Shell) -> None:
    database = Database(SqliteEngine(shell.folder / ".waypost" / "waypost.db"))
    await database.open()
    await database.write(add_partner, PARTNER, "no password", 0)
    await database.close()

    code, _, errors = await asyncio.to_thread(shell.run, "dev", "--port", "0", "--simulator-port", "0")

    assert code == 1
    assert "belongs to `waypost serve`" in errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    "settings",
    [{"secret_key": demo.INSTANCE_KEY}, {"secret_key": KEY, "admin_token": demo.ADMIN_TOKEN}],
    ids=["secret_key", "admin_token"],
)
async def test_serve_rejects_the_secrets_of_the_demonstration(tmp_path: Path, settings: dict[str, str]) -> None:
    with pytest.raises(InvalidConfiguration, match="the demonstration's, which is public"):
        await serve_in(tmp_path, **settings)


async def test_serve_rejects_a_store_that_dev_has_made(shell: Shell) -> None:
    database = Database(SqliteEngine(shell.folder / ".waypost" / "waypost.db"))
    await database.open()
    await database.write(mark_demo)
    await database.close()

    code, _, errors = await asyncio.to_thread(shell.run, "serve", "--port", "0", secret_key=KEY)

    assert code == 1
    assert "was made by `waypost dev`" in errors
    assert errors.count("\n") == 1


def test_invalid_setting_is_named_in_one_line(shell: Shell) -> None:
    code, _, errors = shell.run("serve", secret_key="short")

    assert code == 2
    assert errors.startswith("waypost: the setting secret_key is invalid: ")
    assert errors.count("\n") == 1


def test_version_is_printed(shell: Shell) -> None:
    assert shell.run("version") == (0, f"{__version__}\n", "")
    assert shell.run("--version") == (0, f"{__version__}\n", "")


async def serve_in(folder: Path, **settings: str) -> None:
    """Run `waypost serve` in this process, for errors that prevent its start."""
    clock = SystemClock()
    chosen: dict[str, Any] = {"data": folder, "port": 0, **settings}
    await serve(Settings(**chosen), clock, RandomIds(clock), ready=lambda _: None)
