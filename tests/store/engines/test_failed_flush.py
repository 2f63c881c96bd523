"""After a flush that failed, SQLite's process ends, and the next one relies on nothing that only the kernel has."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select

from simulation import media_folder
from simulation.disk import Disk, DiskFault
from simulation.media_folder import MediaFolder
from waypost.store.contract import EXIT_STORE_UNAVAILABLE, StoreUnavailable
from waypost.store.engines import sqlite
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.tables import store_properties

ROOT = Path(__file__).parents[3]
FAILING_COMMIT = """
import sys
from pathlib import Path
from simulation.disk import Disk, DiskFault
from tests.store.engines.test_failed_flush import add
from waypost.store.engines import sqlite

path = Path(sys.argv[1])
disk = Disk(path, 1)
if sys.argv[2] == "copy":
    sqlite.MAX_LOG_BYTES = 0  # the log is copied into the file after each commit
engine = sqlite.SqliteEngine(path)
engine.open()
add(engine, "before")
disk.fault = DiskFault.FAILED_SYNC
disk.met_by_every = 1 if sys.argv[2] == "commit" else 2
if sys.argv[2] == "copy":
    disk.fails_flush()  # the commit is flushed, and its copy is not
if sys.argv[2] == "compact":
    engine.compact(["store_properties"])
else:
    add(engine, "failed")
print("goes on")
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    for name in media_folder.REPLACED:
        monkeypatch.setattr(f"os.{name}", getattr(os, name))  # restored at the end
    media_folder.watch_files()
    disk = Disk(path, 1)
    folder = MediaFolder(path.with_name("media"), disk)
    yield disk
    media_folder.forget(folder)
    disk.close()


def add(engine: SqliteEngine, name: str) -> None:
    with engine.write() as connection:
        connection.execute(insert(store_properties), {"name": name, "value": ""})


def names(path: Path) -> set[str]:
    """Return the rows that `add` has added."""
    engine = SqliteEngine(path)
    engine.open()
    with engine.read() as connection:
        found = set(connection.execute(select(store_properties.c.name)).scalars())
    engine.close()
    return found


@pytest.mark.parametrize("work", ["commit", "copy", "compact"])
def test_failed_flush_ends_the_process(path: Path, work: str) -> None:
    command = [sys.executable, "-c", FAILING_COMMIT, str(path), work]

    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)

    assert ended.returncode == EXIT_STORE_UNAVAILABLE
    assert "the disk did not flush the store" in ended.stdout
    assert "goes on" not in ended.stdout
    assert "before" in names(path)


def fail_to_flush(path: Path, disk: Disk) -> None:
    """Leave a commit in the log that is not on the disk, as a process that was ended by it does."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("INSERT OR REPLACE INTO store_properties VALUES ('flushed', '')")  # begins the log
        disk.fault = DiskFault.FAILED_SYNC
        with suppress(sqlite3.OperationalError):
            connection.execute("INSERT INTO store_properties VALUES ('failed', '')")
        disk.fault = None
        disk.turn_off()
    disk.turn_on(lost_power=False)


def test_commit_after_a_failed_flush_survives_a_loss_of_power(path: Path, disk: Disk) -> None:
    for nth in range(20):
        names(path)
        fail_to_flush(path, disk)
        engine = SqliteEngine(path)
        engine.open()
        add(engine, f"after {nth}")
        disk.turn_off()
        engine.close()
        disk.turn_on(lost_power=True)

        assert f"after {nth}" in names(path)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("DELETE FROM store_properties WHERE name = 'failed'")


@pytest.mark.parametrize("fault", [DiskFault.FAILED_SYNC, DiskFault.FULL])
def test_start_fails_while_the_disk_does_not_flush(path: Path, disk: Disk, fault: DiskFault) -> None:
    names(path)
    fail_to_flush(path, disk)
    disk.fault = fault
    engine = SqliteEngine(path)

    with pytest.raises(StoreUnavailable, match=f"the disk did not flush {path}: "):
        engine.open()

    engine.close()
    disk.fault = None
    assert "flushed" in names(path)


def add_long(connection: Connection, nth: int) -> None:
    connection.execute(insert(store_properties), {"name": f"long {nth}", "value": "x" * 30_000})


def test_log_is_copied_once_it_is_long(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "MAX_LOG_BYTES", 400_000)
    monkeypatch.setattr(sqlite, "PRAGMAS", (*sqlite.PRAGMAS, ("journal_size_limit", "400000")))
    engine = SqliteEngine(path)
    engine.open()
    log = path.with_name("store.db-wal")

    longest = 0
    for nth in range(100):  # 3 MB
        with engine.write() as connection:
            add_long(connection, nth)
        longest = max(longest, log.stat().st_size)

    assert longest < 600_000
    assert path.stat().st_size > 2_000_000
    engine.close()


def go_on(_reason: str) -> None:
    """End no process: this is the tests'."""


def end_by_a_failed_copy(path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> sqlite3.Connection:
    """Fail to flush a copy of the log after its first part was copied; return a reader, as a backup is, that goes on."""
    monkeypatch.setattr(sqlite, "end_process", go_on)
    engine = SqliteEngine(path)
    engine.open()
    for nth in range(50):
        with engine.write() as connection:
            add_long(connection, nth)
    reader = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM store_properties").fetchall()
    add(engine, "last")
    monkeypatch.setattr(sqlite, "MAX_LOG_BYTES", 0)
    add(engine, "copied in part")  # what the reader must not see is not copied, and so nothing is flushed
    reader.execute("COMMIT")
    disk.fault, disk.met_by_every = DiskFault.FAILED_SYNC, 3
    disk.fails_flush()  # the commit and the log are flushed, and the file is not
    with pytest.raises(sqlite3.OperationalError):
        add(engine, "copied")
    disk.fault = None
    monkeypatch.setattr(sqlite, "MAX_LOG_BYTES", 16_000_000)
    engine.close()
    return reader


def test_program_that_outlives_a_failed_flush_delays_the_start(
    path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps SQLite's note of how much of the log is in the file, which is wrong then."""
    reader = end_by_a_failed_copy(path, disk, monkeypatch)
    engine = SqliteEngine(path)

    with pytest.raises(StoreUnavailable, match=r"has had .* open since a flush of it failed"):
        engine.open()

    engine.close()
    reader.close()
    found = names(path)
    disk.turn_off()
    disk.turn_on(lost_power=True)
    assert {"last", "copied in part", "copied", *(f"long {nth}" for nth in range(50))} <= names(path) == found
    assert not path.with_name("store.db-flush-failed").exists()
