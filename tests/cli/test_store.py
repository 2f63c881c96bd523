"""`waypost store` and `waypost move` say in one line what they did, or what keeps them from it."""

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import func, select

from tests.conftest import MakePipeline
from tests.support.first_store import make_first_store
from tests.support.store_statements import column_of
from tests.support.waiting import HANGS_AFTER_S, patiently
from waypost.assembly.store_maintenance import back_up
from waypost.config import Settings
from waypost.store.contract import WrongStore
from waypost.store.database import Database
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.revision import OLDEST_UPGRADABLE_REVISION
from waypost.store.tables import REVISION, messages


def run(folder: Path, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Type a command."""
    return subprocess.run(
        [sys.executable, "-m", "waypost", *words, "--data", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env=variables,
        timeout=HANGS_AFTER_S,
    )


def test_check_says_that_an_upgrade_is_needed_and_does_nothing(tmp_path: Path) -> None:
    make_first_store(tmp_path / "waypost.db")

    first = run(tmp_path, "store", "upgrade", "--check")
    second = run(tmp_path, "store", "upgrade", "--check")

    assert (first.returncode, first.stdout) == (1, second.stdout)
    assert (
        first.stdout.splitlines()[1] == f"an upgrade from revision {OLDEST_UPGRADABLE_REVISION} to {REVISION} is needed"
    )


def test_check_of_no_store_makes_none(tmp_path: Path) -> None:
    said = run(tmp_path, "store", "upgrade", "--check")

    assert (said.returncode, said.stdout) == (0, "there is no store yet\n")
    assert list(tmp_path.iterdir()) == []


def test_database_that_is_away_is_said_in_one_line(tmp_path: Path) -> None:
    away = "postgresql://nobody@127.0.0.1:9/none"

    checked = run(tmp_path, "store", "upgrade", "--check", WAYPOST_DATABASE_URL=away)
    make_first_store(tmp_path / "waypost.db")
    moved = run(tmp_path, "move", WAYPOST_MOVE_TO=away)

    for said in (checked, moved):
        assert said.returncode == 1
        assert said.stderr.startswith("waypost: ")
        assert len(said.stderr.splitlines()) == 1


async def test_store_is_copied_whole_while_a_service_writes_to_it(make_pipeline: MakePipeline, tmp_path: Path) -> None:
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
    await patiently(count_sent, lambda count: count >= 20)
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
    there = set(await column_of(copy, select(messages.c.id)))
    [count] = await column_of(copy, select(func.count()).select_from(messages))
    await copy.close()
    assert set(before) <= there
    assert count <= len(sent)


def test_backup_overwrites_nothing_and_leaves_nothing_half_done(tmp_path: Path) -> None:
    make_first_store(tmp_path / "waypost.db")
    there = tmp_path / "there.db"
    there.write_text("somebody's")

    with pytest.raises(WrongStore, match="choose another file"):
        back_up(Settings(data=tmp_path), there)
    with pytest.raises(WrongStore, match="--data"):
        back_up(Settings(data=tmp_path / "elsewhere"), tmp_path / "copy.db")
    with pytest.raises(WrongStore, match="pg_dump"):
        back_up(Settings(data=tmp_path, database_url="postgresql://x/y"), tmp_path / "copy.db")

    assert there.read_text() == "somebody's"
    assert {path.name for path in tmp_path.iterdir()} == {"waypost.db", "there.db"}
