"""The plugin in a pytest run: found by its entry point, inactive until used, and clear about its errors."""

import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from pytest_waypost.dev_process import NotStarted, start_dev
from tests.support.inner_pytest import clean_environment, run_pytest
from tests.support.polling import HANGS_AFTER_S

IDLE: Final = """
import sys

def test_without_the_plugin():
    heavy = ("aiohttp", "sqlalchemy", "starlette", "uvicorn", "msgspec", "http.server")
    assert not [name for name in heavy if name in sys.modules]
    assert [name for name in sys.modules if "waypost" in name] == ["pytest_waypost", "pytest_waypost.plugin"]
"""
BUSY: Final = """
import asyncio
import pytest
from pytest_waypost import AsyncPartner, ApiResponseError, Partner

@pytest.fixture
def ann(waypost: Partner):
    ann = waypost.phone("Ann")
    ann.write("Hi")
    return ann

def test_wait_times_out(waypost, ann):
    waypost.wait_for_callback("text")
    ann.wait_for_message("never", within_s=0.05)

def test_assertion_fails(waypost, ann):
    waypost.wait_for_callback("text")
    assert ann.inbox

def test_api_error(waypost):
    waypost.fault("messages.sendd", error=5)

def test_wait_of_a_coroutine_times_out(async_waypost):
    async def journey():
        await async_waypost.wait_for_callback("text", within_s=0.05)
    asyncio.run(journey())

def test_leaves_the_clock_frozen_and_a_fault_armed(waypost):
    waypost.clock.freeze()
    waypost.fault("messages.send", error=131000)

def test_finds_everything_restored(waypost, ann, waypost_service):
    assert waypost_service.control.json("GET", "/faults") == {"faults": []}
    waypost.send_text("It runs", ann)
    ann.wait_for_message("It runs")

def test_has_a_second_partner(waypost, make_waypost_partner):
    other = make_waypost_partner("other")
    assert other.source != waypost.source

def test_is_a_coroutine(async_waypost: AsyncPartner):
    async def journey() -> str:
        ben = await async_waypost.phone("Ben")
        await ben.write("Hi")
        return (await async_waypost.wait_for_callback("text")).text
    assert asyncio.run(journey()) == "Hi"

def test_has_its_own_settings(waypost_service, waypost):
    assert waypost_service.within_s == 2.5
    first = waypost.create_template("template", "The first")
    assert [waypost.template(first).status for _ in range(30)] == ["APPROVED"] * 30
    with pytest.raises(ApiResponseError, match="429"):
        for at in range(11):
            waypost.create_template(f"template_{at}", "Much too many", approved=False)
"""

HANGING: Final = """
import time

def test_hangs(waypost_service):
    print(waypost_service.api_url, flush=True)
    time.sleep(600)
"""


def test_plugin_imports_and_starts_nothing_until_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "test_idle.py").write_text(IDLE)

    run = run_pytest(tmp_path, tmp_path / "report.xml")

    assert run.outcomes == {"test_without_the_plugin": "passed"}, run.output


def test_plugin_gives_each_test_its_own_partner_and_restores_the_clock_and_the_faults(tmp_path: Path) -> None:
    (tmp_path / "test_busy.py").write_text(BUSY)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nwaypost_within_s = 2.5\nwaypost_settings =\n    rates=true\n    per_second=200\n"
    )

    run = run_pytest(tmp_path, tmp_path / "report.xml")

    assert run.outcomes == {
        "test_wait_times_out": "failed",
        "test_assertion_fails": "failed",
        "test_api_error": "failed",
        "test_wait_of_a_coroutine_times_out": "failed",
        "test_leaves_the_clock_frozen_and_a_fault_armed": "passed",
        "test_finds_everything_restored": "passed",
        "test_has_a_second_partner": "passed",
        "test_is_a_coroutine": "passed",
        "test_has_its_own_settings": "passed",
    }, run.output
    # The failure of a wait ends at the test's own line and has no section; any other failure has one.
    assert "test_busy.py:14: NotSeen" in run.report_texts["test_wait_times_out"]
    assert "def wait_for_message" not in run.output
    assert run.output.count("Waypost: what happened") == 2
    # The traceback does not show how the API's error reached the test, or on which thread.
    rejected, awaited = run.report_texts["test_api_error"], run.report_texts["test_wait_of_a_coroutine_times_out"]
    assert "ApiResponseError: call: 'messages.sendd' is unknown; did you mean messages.send? (400)" in rejected
    assert "src/pytest_waypost" not in rejected
    assert "NotSeen: no callback `text` came within 0.05 s" in awaited
    assert not [name for name in ("src/pytest_waypost", "concurrent", "threads.py") if name in awaited]
    assert 'wrote text "Hi"' in run.output.partition("Waypost: what happened")[2]


def test_child_ends_when_the_test_run_is_killed(tmp_path: Path) -> None:
    """It is killed, so that the run cannot stop the child."""
    (tmp_path / "test_hanging.py").write_text(HANGING)
    command = [sys.executable, "-m", "pytest", "-p", "waypost", "-s"]
    with subprocess.Popen(command, cwd=tmp_path, env=clean_environment(), stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        url = next(line for line in run.stdout if "http://" in line).partition("http://")[2]
        port = int(url.strip().partition(":")[2])
        run.kill()

    wait_until_closed(port)


def wait_until_closed(port: int) -> None:
    """Wait until no process listens on the port."""
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=HANGS_AFTER_S).close()
        except ConnectionRefusedError:
            return
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        (
            "--waypost=nowhere.env",
            "--waypost must be the environment file of a running `waypost dev`; nowhere.env cannot be read: No such file",
        ),
        ("--waypost=empty.env", "empty.env lacks API_URL, GRAPH_URL"),
        ("--waypost=gone.env", "the service of gone.env is not running"),
        ("--waypost-command=./nowhere dev", "waypost_command: ./nowhere cannot be run: No such file or directory"),
        ("--waypost-command='open", 'waypost_command: "\'open" is no command: No closing quotation'),
        ("--waypost-command=sh -c 'echo gone; exit 3'", "did not start; it printed:\ngone"),
        ("--waypost-command=sh image.sh", "its standard input was closed. An image needs `-i`"),
    ],
)
def test_unavailable_service_ends_the_run_with_its_reason(tmp_path: Path, option: str, expected: str) -> None:
    (tmp_path / "test_one.py").write_text("def test_one(waypost): pass\n")
    (tmp_path / "empty.env").write_text("EMAIL=ann@waypost.test\n")
    names = ("API_URL", "GRAPH_URL", "ADMIN_URL", "ADMIN_TOKEN", "CONTROL_URL")
    (tmp_path / "gone.env").write_text("".join(f"{name}=http://127.0.0.1:9\n" for name in names))

    (tmp_path / "image.sh").write_text(f'exec "{sys.executable}" -m waypost "$@" < /dev/null\n')

    run = run_pytest(tmp_path, tmp_path / "report.xml", option)

    assert run.code == pytest.ExitCode.USAGE_ERROR, run.output
    assert expected in run.output


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("colour=red", "there is no setting colour, in --set: "),
        ("per_second=0", "the setting per_second is invalid: it must be at least 1"),
        ("rates", "--set must be NAME=VALUE, as in rates=false; 'rates' is not"),
    ],
)
def test_invalid_setting_is_named_with_the_accepted_values(tmp_path: Path, line: str, expected: str) -> None:
    with pytest.raises(NotStarted, match=expected):
        start_dev("", [line], tmp_path).wait_until_started()
