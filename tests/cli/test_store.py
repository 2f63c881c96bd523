"""`waypost store` and `waypost move` print one line with their result or their error."""

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import func, select

from tests.conftest import MakePipeline
from tests.support.baseline_store import create_baseline_store, set_revision
from tests.support.polling import HANGS_AFTER_S, poll_until
from tests.support.store_statements import fetch_column
from waypost.assembly.store_maintenance import back_up
from waypost.config import Settings
from waypost.store.contract import WrongStore
from waypost.store.database import Database
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.revision import OLDEST_UPGRADABLE_REVISION
from waypost.store.tables import REVISION, messages

NEXT_VERSION: Final = "tests.support.next_version"


def run(
    folder: Path, *arguments: str, program: str = "waypost", **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run a command."""
    return subprocess.run(
        [sys.executable, "-m", program, *arguments, "--data", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env=variables,
        timeout=HANGS_AFTER_S,
    )


def test_check_reports_that_an_upgrade_is_needed_and_changes_nothing(tmp_path: Path) -> None:
    create_baseline_store(tmp_path / "waypost.db")

    first = run(tmp_path, "store", "upgrade", "--check", program=NEXT_VERSION)
    second = run(tmp_path, "store", "upgrade", "--check", program=NEXT_VERSION)

    assert (first.returncode, first.stdout) == (1, second.stdout)
    assert first.stdout.splitlines()[1] == f"an upgrade from revision {REVISION} to {REVISION + 1} is needed"


@pytest.mark.parametrize("options", [(), ("--check",)])
def test_store_that_is_too_old_is_rejected_in_one_line(tmp_path: Path, options: tuple[str, ...]) -> None:
    create_baseline_store(tmp_path / "waypost.db")
    set_revision(tmp_path / "waypost.db", OLDEST_UPGRADABLE_REVISION - 1)

    result = run(tmp_path, "store", "upgrade", *options)

    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.splitlines() == [
        f"waypost: this store has revision {OLDEST_UPGRADABLE_REVISION - 1}, which is too old to be upgraded; "
        f"the oldest is {OLDEST_UPGRADABLE_REVISION}; start with an empty folder"
    ]


def test_check_without_a_store_creates_none(tmp_path: Path) -> None:
    result = run(tmp_path, "store", "upgrade", "--check")

    assert (result.returncode, result.stdout) == (0, "there is no store yet\n")
    assert list(tmp_path.iterdir()) == []


def test_unreachable_database_is_reported_in_one_line(tmp_path: Path) -> None:
    unreachable = "postgresql://nobody@127.0.0.1:9/none"

    checked = run(tmp_path, "store", "upgrade", "--check", WAYPOST_DATABASE_URL=unreachable)
    create_baseline_store(tmp_path / "waypost.db")
    moved = run(tmp_path, "move", WAYPOST_MOVE_TO=unreachable)

    for result in (checked, moved):
        assert result.returncode == 1
        assert result.stderr.startswith("waypost: ")
        assert len(result.stderr.splitlines()) == 1


async def test_store_is_copied_consistently_while_a_service_writes_to_it(
    make_pipeline: MakePipeline, tmp_path: Path
) -> None:
    pipeline = await make_pipeline()
    template_id = await pipeline.approved_template()
    done = asyncio.Event()
    sent: list[str] = []

    async def load() -> None:
        while not done.is_set():
            sent.append(await pipeline.send(template_id))

    async def count_sent() -> int:
        return len(sent)

    loading = [asyncio.create_task(load()) for _ in range(4)]
    await poll_until(count_sent, lambda count: count >= 20)
    before = list(sent)
    settings = Settings(data=pipeline.folder)
    await asyncio.to_thread(back_up, settings, tmp_path / "copy.db")
    done.set()
    await asyncio.gather(*loading)

    connection = sqlite3.connect(tmp_path / "copy.db")
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    copy = Database(SqliteEngine(tmp_path / "copy.db"))
    await copy.open()
    copied = set(await fetch_column(copy, select(messages.c.id)))
    [count] = await fetch_column(copy, select(func.count()).select_from(messages))
    await copy.close()
    assert set(before) <= copied
    assert count <= len(sent)


def test_backup_overwrites_no_file_and_leaves_no_partial_file(tmp_path: Path) -> None:
    create_baseline_store(tmp_path / "waypost.db")
    existing = tmp_path / "there.db"
    existing.write_text("somebody's")

    with pytest.raises(WrongStore, match="choose another file"):
        back_up(Settings(data=tmp_path), existing)
    with pytest.raises(WrongStore, match="--data"):
        back_up(Settings(data=tmp_path / "elsewhere"), tmp_path / "copy.db")
    with pytest.raises(WrongStore, match="pg_dump"):
        back_up(Settings(data=tmp_path, database_url="postgresql://x/y"), tmp_path / "copy.db")

    assert existing.read_text() == "somebody's"
    assert {path.name for path in tmp_path.iterdir()} == {"waypost.db", "there.db"}
