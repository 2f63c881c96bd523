"""The simulated disk keeps what SQLite has flushed, and loses some of the rest, so that unsafe settings show."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from simulation.disk import Disk, DiskFault


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def connect(path: Path, synchronous: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("PRAGMA wal_autocheckpoint = 20")  # pages: checkpoints are interrupted too
    connection.execute("CREATE TABLE IF NOT EXISTS rows (n INTEGER PRIMARY KEY, content TEXT)")
    return connection


def committed_until_power_is_lost(path: Path, disk: Disk, chance: random.Random, synchronous: str) -> int:
    """Insert rows until an operation at which the power is lost; return how many there should be."""
    with closing(connect(path, synchronous)) as connection:
        ((committed,),) = connection.execute("SELECT count(*) FROM rows")
        left = chance.randint(1, 300)

        def count(_operation: str) -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                disk.turn_off()

        disk.on_operation = count
        with suppress(sqlite3.OperationalError):
            while True:
                connection.execute("INSERT INTO rows VALUES (?, ?)", (committed, "x" * chance.randint(0, 9000)))
                committed += 1
    disk.on_operation = None
    disk.turn_on(lost_power=True)
    return committed


def found_after(path: Path) -> Iterator[int]:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        yield from (n for (n,) in connection.execute("SELECT n FROM rows ORDER BY n"))


def losses(path: Path, synchronous: str, runs: int) -> int:
    """Return in how many runs a committed row was lost, or the file was damaged."""
    count = 0
    for seed in range(runs):
        for old in path.parent.glob(f"{path.name}*"):
            old.unlink()
        disk = Disk(path, seed)
        try:
            chance = random.Random(seed)
            for _ in range(2):
                committed = committed_until_power_is_lost(path, disk, chance, synchronous)
                found = [*found_after(path)]
                assert found == [*range(len(found))]
                assert len(found) in (committed, committed + 1)  # the last commit had no result
        except (AssertionError, sqlite3.DatabaseError):
            count += 1
        finally:
            disk.close()
    return count


def test_flushed_commits_survive_a_loss_of_power(path: Path) -> None:
    assert losses(path, "FULL", 40) == 0


@pytest.mark.parametrize("synchronous", ["OFF", "NORMAL"])
def test_commits_that_are_not_flushed_are_lost(path: Path, synchronous: str) -> None:
    assert losses(path, synchronous, 40) > 10


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (DiskFault.FULL, "SQLITE_FULL"),
        (DiskFault.FULL_FOR_GROWTH, "SQLITE_FULL"),
        (DiskFault.FAILED_SYNC, "SQLITE_IOERR_FSYNC"),
    ],
)
@pytest.mark.parametrize("seed", range(10))
def test_fault_fails_a_commit_and_the_next_one_succeeds(path: Path, fault: DiskFault, code: str, seed: int) -> None:
    disk = Disk(path, seed)
    with closing(connect(path, "FULL")) as connection:
        disk.fault = fault
        with pytest.raises(sqlite3.OperationalError) as raised:
            connection.execute("INSERT INTO rows VALUES (1, '')")
        disk.fault = None
        connection.execute("INSERT INTO rows VALUES (2, '')")
        disk.turn_off()
    disk.turn_on(lost_power=True)

    assert raised.value.sqlite_errorname == code
    assert [*found_after(path)] == [2]
    disk.close()


def test_disk_that_is_full_for_growth_overwrites(path: Path) -> None:
    disk = Disk(path, 1)
    with closing(connect(path, "FULL")) as connection:
        connection.execute("INSERT INTO rows VALUES (1, '')")
        connection.execute("PRAGMA wal_checkpoint(FULL)")  # the next commit begins at the start of the log again
        disk.fault = DiskFault.FULL_FOR_GROWTH
        connection.execute("INSERT INTO rows VALUES (2, '')")

        assert disk.counts["no space"] == 0
    disk.close()


def test_fault_is_met_by_the_first_of_every_few_operations(path: Path) -> None:
    disk = Disk(path, 1)
    with closing(connect(path, "FULL")) as connection:
        disk.fault, disk.met_by_every = DiskFault.FAILED_SYNC, 2
        failed: list[int] = []
        for n in range(6):
            try:
                connection.execute("INSERT INTO rows VALUES (?, '')", (n,))
            except sqlite3.OperationalError:
                failed.append(n)

    assert failed == [0, 2, 4]
    disk.close()


def test_write_whose_flush_failed_may_be_gone_at_once(path: Path) -> None:
    """A file that was not flushed has its old content for everybody: the kernel has dropped what it could not write."""
    dropped = 0
    for seed in range(20):
        disk = Disk(path, seed)
        with closing(connect(path, "FULL")) as connection:
            log = Path(f"{path}-wal")
            before = log.read_bytes()
            disk.fault = DiskFault.FAILED_SYNC
            with suppress(sqlite3.OperationalError):
                connection.execute("INSERT INTO rows VALUES (NULL, ?)", ("x" * 9000,))
            disk.fault = None
            is_dropped = disk.counts["dropped pages"] == 1
            assert is_dropped or log.read_bytes() != before
            dropped += is_dropped
        disk.close()

    assert 0 < dropped < 20


def keeps_rows_after_a_failed_copy(path: Path, seed: int, *, goes_on: bool) -> bool:
    """Fail to flush a copy of the log whose first part was copied before; return True if the power takes no row."""
    for old in path.parent.glob(f"{path.name}*"):
        old.unlink()
    disk, copy = Disk(path, seed), "PRAGMA wal_checkpoint(PASSIVE)"
    with closing(connect(path, "FULL")) as writer, closing(sqlite3.connect(path, isolation_level=None)) as reader:
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        for n in range(50):
            writer.execute("INSERT INTO rows VALUES (?, ?)", (n, "x" * 3000))
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM rows").fetchall()
        writer.execute("INSERT INTO rows VALUES (50, '')")
        writer.execute(copy)  # without what the reader must not see yet, and so without a flush of the file
        reader.execute("COMMIT")
        disk.fault, disk.met_by_every = DiskFault.FAILED_SYNC, 2
        disk.fails_flush()  # the log's flush succeeds, and then the file's fails
        with pytest.raises(sqlite3.OperationalError):
            writer.execute(copy)
        disk.fault = None
        if goes_on:
            writer.execute(copy)  # of the second part, with a flush
            writer.execute("INSERT INTO rows VALUES (51, '')")  # over the first part in the log
        disk.turn_off()
    disk.turn_on(lost_power=True)
    try:
        return [*found_after(path)] == [*range(52 if goes_on else 51)]
    except (AssertionError, sqlite3.DatabaseError):
        return False
    finally:
        disk.close()


def test_sqlite_that_goes_on_after_a_failed_flush_is_damaged(path: Path) -> None:
    """Why the engine ends the process then: decision 0132."""
    assert all(keeps_rows_after_a_failed_copy(path, seed, goes_on=False) for seed in range(20))
    assert sum(keeps_rows_after_a_failed_copy(path, seed, goes_on=True) for seed in range(20)) < 10
