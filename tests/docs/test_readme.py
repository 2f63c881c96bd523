"""The commands of the README's quick start, pasted into a shell beside a running `waypost dev`."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from crashes.processes import free_port
from tests.docs.repository import ROOT, journey_of, name_of, pages, samples_of
from tests.support.polling import HANGS_AFTER_S

MAX_LINES = 10
FIRST_SCREEN_LINES: Final = 30
COMMENT: Final = re.compile(r"(^|\s)#(\s|$)")
WRITTEN_FILE: Final = re.compile(r"(?:\btee |> ?)([\w.-]+\.\w+)")
NAMES_WAYPOST: Final = re.compile(r"(\w+=\S+ |.*\$\()?waypost ")
FINDS_WAYPOST: Final = ('export PATH="$PWD/.venv/bin:$PATH"', "../../README.md#running-in-production")
PAGES_WITH_COMMANDS: Final = (
    *(ROOT / name for name in ("README.md", "docs/tutorial.md")),
    *(page for page in pages() if page.parent.name == "how-to"),
)
BACKEND = """
import pathlib

def build_wheel(*_):
    raise AssertionError

def build_editable(*_):
    raise AssertionError

def prepare_metadata_for_build_editable(folder, settings=None):
    info = pathlib.Path(folder) / "one-1.dist-info"
    info.mkdir()
    requires = "Requires-Dist: no-such-thing-9"
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\\nName: one\\nVersion: 1\\n{requires}\\n")
    return info.name
"""


# fmt: off
SHELLS: Final = {  # as a terminal starts them, without the settings of this machine
    "bash": ("bash", "--norc", "--noprofile", "-i"),
    "zsh":  ("zsh", "-f", "-i"),
    "dash": ("dash", "-i"),
}
# fmt: on
README: Final = ROOT / "README.md"


def open_terminal(folder: Path, shell: str, output: Path) -> subprocess.Popen[str]:
    """Start an interactive shell without prompts, which does not find `waypost`; what it prints is in a file."""
    if shutil.which(shell) is None and not os.environ.get("CI"):
        pytest.skip(f"{shell} is not installed")
    with output.open("w") as file:
        return subprocess.Popen(
            SHELLS[shell],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=subprocess.STDOUT,
            text=True,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "PS1": "", "PS2": ""},
        )


@pytest.mark.parametrize("shell", SHELLS)
def test_journey_pasted_twice_ends_with_the_tapped_buttons_postback_text_each_time(
    running_checkout: Path, shell: str
) -> None:
    """A paste sends all lines to the shell at once: no command may need a pause before it."""
    output = running_checkout / "output"
    terminal = open_terminal(running_checkout, shell, output)
    assert terminal.stdin is not None
    try:
        taps: list[dict[str, Any]] = []
        for tap_number in (1, 2):
            terminal.stdin.write(journey_of(README))
            terminal.stdin.flush()
            taps = wait_for(output, partial(taps_in, output), count=tap_number)
        transcript = output.read_text()
        assert len(set(re.findall(r"listener with: kill (\d+)", transcript))) == 1, transcript
    finally:
        for listener in set(re.findall(r"stop the listener with: kill (\d+)", output.read_text())):
            os.kill(int(listener), signal.SIGTERM)
        terminal.stdin.close()
        terminal.wait(HANGS_AFTER_S)

    events = [callback["payload"] for callback in callbacks_in(output) if callback["type"] == "message-event"]
    sent = [event["id"] for event in events if event["type"] == "enqueued"]
    assert [tap["context"]["gsId"] for tap in taps] == sent, transcript
    choice = {"text": "Yes please", "type": "button", "postbackText": "bring-today"}
    assert [tap["payload"] for tap in taps] == [choice, choice], transcript
    kinds = {(event.get("gsId", event["id"]), event["type"]) for event in events}
    assert kinds == {(message_id, kind) for message_id in sent for kind in ("enqueued", "sent", "delivered", "read")}


def callbacks_in(output: Path) -> list[dict[str, Any]]:
    """Return the callbacks that the listener has printed; each once, as a second paste starts no second listener."""
    lines = re.findall(r'\{"app": .*\}$', output.read_text(), re.MULTILINE)
    assert len(lines) == len(set(lines)), "a callback is printed twice"
    return [json.loads(line) for line in lines]


def taps_in(output: Path) -> list[dict[str, Any]]:
    return [callback["payload"] for callback in callbacks_in(output) if '"postbackText"' in json.dumps(callback)]


def lines_with(text: str, output: Path) -> list[str]:
    return [line for line in output.read_text().splitlines() if text in line]


def wait_for(output: Path, find: Callable[[], list[Any]], *, count: int) -> list[Any]:
    """Return what is found in the output of a terminal once there is enough of it."""
    until = time.monotonic() + HANGS_AFTER_S
    while len(found := find()) < count:
        assert time.monotonic() < until, output.read_text()
        time.sleep(0.02)
    return found


@pytest.mark.parametrize("page", [page for page in pages() if samples_of(page, "sh")], ids=name_of)
def test_sample_has_no_comment_which_zsh_takes_for_arguments_when_it_is_pasted(page: Path) -> None:
    assert [line for sample in samples_of(page, "sh") for line in sample.splitlines() if COMMENT.search(line)] == []


@pytest.mark.parametrize("page", [page for page in pages() if page.parent.name == "how-to"], ids=name_of)
def test_page_with_commands_says_how_a_terminal_finds_them(page: Path) -> None:
    """Readers come from a search engine: the page may be the first that they see."""
    commands = [line for sample in samples_of(page, "sh") for line in sample.splitlines() if NAMES_WAYPOST.match(line)]

    assert not commands or any(way in page.read_text(encoding="utf-8") for way in FINDS_WAYPOST), commands


def test_production_journey_pasted_twice_keeps_its_secrets_and_serves_a_second_terminal(checkout: Path) -> None:
    """The second paste is in new terminals, as after a restart of the machine."""
    settings = f"export WAYPOST_PORT={free_port()}\n"
    keys: set[str] = set()
    for restart in (1, 2):
        served, used = checkout / f"served-{restart}", checkout / f"used-{restart}"
        first = open_terminal(checkout, "dash", served)
        try:
            assert first.stdin is not None
            first.stdin.write(settings + journey_of(README, "production: first terminal"))
            first.stdin.flush()
            wait_for(served, partial(lines_with, "serves at", served), count=1)
            second = open_terminal(checkout, "dash", used)
            second.communicate(settings + journey_of(README, "production: second terminal") * 2, HANGS_AFTER_S)
        finally:
            for child in Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text().split():
                os.kill(int(child), signal.SIGINT)
            first.communicate(timeout=HANGS_AFTER_S)
        keys.add((checkout / "waypost.env").read_text())
        assert len(lines_with("ok      service: it is running", used)) == 2, used.read_text()
        assert lines_with("waypost:", used) == [], used.read_text()

    assert len(keys) == 1
    assert stat.S_IMODE((checkout / "waypost.env").stat().st_mode) == 0o600
    assert (checkout / "waypost-data" / "waypost.db").exists()


def test_pages_leave_nothing_that_git_shows() -> None:
    """What pages write into a checkout is ignored, so that a user's `git status` stays clean."""
    files = ["waypost-dev.env", "waypost.env", "waypost-data/waypost.db", ".waypost/waypost.db", ".venv/bin/waypost"]
    written = [name for page in PAGES_WITH_COMMANDS for name in WRITTEN_FILE.findall("".join(samples_of(page, "sh")))]

    ignored = subprocess.run(
        ["git", "check-ignore", *files, *written], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()

    assert ignored == [*files, *written]


def test_installation_prints_no_warnings_and_all_errors(tmp_path: Path) -> None:
    """Index settings of a machine make pip warn; `make run` must not print those warnings."""
    (tmp_path / "pytest-waypost").mkdir()
    for name in ("Makefile", "constraints.txt", "pytest-waypost/pyproject.toml"):
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"))
    (tmp_path / "pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
    )
    (tmp_path / "backend.py").write_text(BACKEND)
    environment = {**os.environ, "PIP_FIND_LINKS": "file:///no/such/folder", "PIP_NO_INDEX": "1"}

    completed = subprocess.run(
        ["make", "run"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    assert completed.returncode != 0
    assert "WARNING" not in completed.stderr
    assert "ERROR: " in completed.stderr
    assert "about a minute" in completed.stdout
    assert re.search(r"^\.+$", completed.stdout, re.MULTILINE), "no sign of life while pip works"


def test_journey_has_at_most_ten_lines() -> None:
    assert len(journey_of(README).splitlines()) <= MAX_LINES


def test_first_screen_has_the_two_commands_that_do_everything() -> None:
    first_screen = README.read_text(encoding="utf-8").splitlines()[:FIRST_SCREEN_LINES]

    assert [command for command in ("`make run`", "`make test`") if command in "\n".join(first_screen)] == [
        "`make run`",
        "`make test`",
    ]
