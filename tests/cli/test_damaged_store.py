"""A store that is damaged, or of another program: each command says so in one line, and changes nothing."""

import fcntl
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_store import run
from tests.support.damaged_files import DAMAGES
from tests.support.polling import HANGS_AFTER_S
from waypost.assembly.store_maintenance import UNFINISHED_SUFFIX

SECRET = {"WAYPOST_SECRET_KEY": "a-key-of-this-test-with-thirty-two-or-more"}
COMMANDS = {
    "serve": ("serve", "--port", "0"),
    "dev": ("dev", "--port", "0", "--simulator-port", "0"),
    "upgrade": ("store", "upgrade"),
    "check": ("store", "upgrade", "--check"),
    "backup": ("store", "backup", "copy.db"),
    "move": ("move", "--to", "postgresql://nobody@127.0.0.1:9/none"),
}
SIMULATOR = ("simulator", "--port", "0", "--control-token", "control-token-of-this-test-of-32-characters")


def one_line(result: "subprocess.CompletedProcess[str]") -> str:
    """Return the only line of an error."""
    assert result.returncode != 0, result.stdout
    [line] = result.stderr.splitlines()
    assert line.startswith("waypost: "), line
    return line


@pytest.mark.parametrize(
    ("command", "damage"),
    [
        *((COMMANDS["upgrade"], damage) for damage in DAMAGES.values()),
        *((command, DAMAGES["schema"]) for command in COMMANDS.values()),
    ],
    ids=[*(f"upgrade {damage}" for damage in DAMAGES), *COMMANDS],
)
def test_damaged_store_is_named_in_one_line_with_the_page_about_backups(
    tmp_path: Path, command: tuple[str, ...], damage: Callable[[Path], None], new_file: Path
) -> None:
    file = tmp_path / "data" / "waypost.db"
    file.parent.mkdir()
    shutil.copyfile(new_file, file)
    damage(file)
    before = file.read_bytes()

    given = [str(tmp_path / argument) if argument == "copy.db" else argument for argument in command]
    line = one_line(run(file.parent, *given, **SECRET))

    assert str(file) in line
    assert "damaged" in line
    assert "docs/how-to/back-up-and-restore.md" in line
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("command", "damage"),
    [*((SIMULATOR, damage) for damage in DAMAGES.values()), (COMMANDS["dev"], DAMAGES["truncated"])],
    ids=[*DAMAGES, "dev"],
)
def test_damaged_file_of_the_simulator_is_named_in_one_line(
    tmp_path: Path, command: tuple[str, ...], damage: Callable[[Path], None]
) -> None:
    file = tmp_path / "simulator.db"
    connection = sqlite3.connect(file)
    connection.executescript("PRAGMA user_version=4; CREATE TABLE state (kind TEXT); CREATE TABLE other (x TEXT);")
    connection.close()
    damage(file)
    before = file.read_bytes()

    line = one_line(run(tmp_path, *command, **SECRET))

    assert str(file) in line
    assert "damaged" in line
    assert "docs/how-to/back-up-and-restore.md" in line
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("table", "command"),
    [("store_facts", "serve"), *(("notes", command) for command in ("serve", "dev", "upgrade", "check", "move"))],
)
def test_file_of_another_program_is_left_unchanged(tmp_path: Path, command: str, table: str) -> None:
    file = tmp_path / "waypost.db"
    connection = sqlite3.connect(file)
    connection.execute(f"CREATE TABLE {table} (name TEXT, value TEXT)")
    connection.close()

    line = one_line(run(tmp_path, *COMMANDS[command], **SECRET))

    assert f"tables of another program, or of a version that this one does not know ({table})" in line
    assert "--data" in line
    connection = sqlite3.connect(file)
    assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [(table,)]
    connection.close()


@pytest.mark.parametrize("revision", [0, 4])
def test_file_of_another_program_is_not_the_simulators(tmp_path: Path, revision: int) -> None:
    connection = sqlite3.connect(tmp_path / "simulator.db")
    connection.executescript(f"PRAGMA user_version={revision}; CREATE TABLE notes (x TEXT);")
    connection.close()

    line = one_line(run(tmp_path, *SIMULATOR))

    assert f"{tmp_path / 'simulator.db'} was created by another version of the simulator, or by another program" in line
    connection = sqlite3.connect(tmp_path / "simulator.db")
    assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("notes",)]
    connection.close()


def test_copy_of_a_killed_backup_is_removed_by_the_next_one_and_a_running_one_is_not(
    tmp_path: Path, new_file: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    shutil.copyfile(new_file, data / "waypost.db")
    connection = sqlite3.connect(data / "waypost.db")
    connection.execute("INSERT INTO store_properties (name, value) VALUES ('filler', ?)", ("x" * 40_000_000,))
    connection.commit()
    connection.close()
    backup = [sys.executable, "-m", "waypost", "store", "backup", str(tmp_path / "killed.db"), "--data", str(data)]
    killed: list[Path] = []
    while not killed:  # it may be done before it is killed
        (tmp_path / "killed.db").unlink(missing_ok=True)
        process = subprocess.Popen(backup, env={})
        while process.poll() is None and not list(tmp_path.glob(f".killed.db*{UNFINISHED_SUFFIX}")):
            time.sleep(0.001)
        process.kill()
        process.wait(HANGS_AFTER_S)
        killed = list(tmp_path.glob(f".killed.db*{UNFINISHED_SUFFIX}"))
    running = tmp_path / f".running.db.17{UNFINISHED_SUFFIX}"
    with running.open("w") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)

        result = run(data, "store", "backup", str(tmp_path / "next.db"))

        assert result.returncode == 0, result.stderr
        assert not killed[0].exists()
        assert running.exists()
