"""The pages about operating the store: their commands, run in order, on both engines."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.docs.repository import ROOT, samples_of
from tests.support.baseline_store import create_baseline_store
from tests.support.builders import INSTANCE_KEY
from tests.support.polling import HANGS_AFTER_S
from tests.support.postgres import binaries
from tests.support.store_locations import Databases, url_of
from waypost.store.revision import OLDEST_UPGRADABLE_REVISION

PAGES: Final = ROOT / "docs" / "how-to"
POSTGRESQL: Final = PAGES / "run-on-postgresql.md"
BACKUP: Final = PAGES / "back-up-and-restore.md"
UPGRADE: Final = PAGES / "upgrade.md"


@pytest.fixture
def folder(newcomers_folder: Path) -> Path:
    """A folder whose store has rows of an early version."""
    create_baseline_store(newcomers_folder / ".waypost" / "waypost.db")
    (newcomers_folder / ".waypost" / "media").mkdir()
    (newcomers_folder / ".waypost" / "media" / "one").write_text("bytes")
    return newcomers_folder


@pytest.fixture
def server(databases: Databases) -> Iterator[str]:
    """The server, without the role and the database that the page creates."""
    url = databases.take_empty()
    server = url_of(url, "postgres")
    yield server
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS gateway WITH (FORCE)")
        connection.execute("DROP ROLE IF EXISTS gateway")
    databases.drop(url)


def run_commands(folder: Path, page: Path, language: str = "sh", **variables: str) -> str:
    """Run a page's commands, and return their output."""
    completed = subprocess.run(
        ["bash", "-c", "\n".join(["set -e", *samples_of(page, language)])],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_S,
        check=False,
        env={
            "PATH": f"{binaries()}:{os.environ['PATH']}",
            "HOME": str(folder),
            "WAYPOST_SECRET_KEY": INSTANCE_KEY,  # of the older version's store
            **variables,
        },
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


def test_page_about_upgrades_upgrades(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    next_version = folder / "next" / "waypost"
    next_version.parent.mkdir()
    next_version.write_text(
        f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m tests.support.next_version "$@"\n'
    )
    next_version.chmod(0o755)
    monkeypatch.setenv("PATH", f"{next_version.parent}:{os.environ['PATH']}")

    output = run_commands(folder, UPGRADE).splitlines()

    assert output[1].startswith(f"an upgrade from revision {OLDEST_UPGRADABLE_REVISION} to ")
    assert output[2].startswith("store: revision ")
    assert len(output) == 3


def test_page_about_backups_copies_the_store_and_restores_it(folder: Path) -> None:
    subprocess.run(["waypost", "store", "upgrade"], cwd=folder, check=True, capture_output=True)

    output = run_commands(folder, BACKUP).splitlines()

    [backup] = folder.glob("backup-*.db")
    assert output[0].startswith(backup.name)
    assert backup.stat().st_mode & 0o777 == 0o600
    assert (folder / f"{backup.stem}-media" / "one").exists()


def test_page_about_postgresql_creates_a_database_and_moves_a_store_there(folder: Path, server: str) -> None:
    [statements] = samples_of(POSTGRESQL, "sql")
    with psycopg.connect(server, autocommit=True) as connection:
        for statement in statements.strip().split(";\n"):
            connection.execute(statement.encode())
    parts = urlsplit(server)
    url = f"postgresql://gateway:choose%20another@{parts.hostname}:{parts.port}/gateway"

    output = run_commands(folder, POSTGRESQL, WAYPOST_MOVE_TO=url)

    assert "are copied and compared" in output
    assert "works with versions of revision" in output
    assert "ada@acme.test" in output


def test_page_about_backups_dumps_a_database_and_restores_it(folder: Path, databases: Databases) -> None:
    source, restored = databases.acquire(), databases.take_empty()

    run_commands(folder, BACKUP, "bash", DATABASE_URL=source, RESTORED_URL=restored)

    with psycopg.connect(restored) as connection:
        rows = connection.execute("SELECT value FROM store_properties WHERE name = 'revision'")
        assert rows.fetchone() is not None
    databases.release(source)
    databases.drop(restored)
