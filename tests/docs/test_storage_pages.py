"""The pages about the store's care: their commands, typed one after the other, on both engines."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.docs.repository import ROOT, samples_of
from tests.support.first_store import make_first_store
from tests.support.postgres import binaries
from tests.support.stores import Databases, url_of
from tests.support.waiting import HANGS_AFTER_S
from waypost.store.revision import OLDEST_UPGRADABLE_REVISION

PAGES: Final = ROOT / "docs" / "how-to"
POSTGRESQL: Final = PAGES / "run-on-postgresql.md"
BACKUP: Final = PAGES / "back-up-and-restore.md"
UPGRADE: Final = PAGES / "upgrade.md"


@pytest.fixture
def folder(newcomers_folder: Path) -> Path:
    """A clone whose store an older version has made."""
    make_first_store(newcomers_folder / ".waypost" / "waypost.db")
    (newcomers_folder / ".waypost" / "media").mkdir()
    (newcomers_folder / ".waypost" / "media" / "one").write_text("bytes")
    return newcomers_folder


@pytest.fixture
def server(databases: Databases) -> Iterator[str]:
    """The server, without the role and the database that the page makes."""
    url = databases.take_bare()
    server = url_of(url, "postgres")
    yield server
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS gateway WITH (FORCE)")
        connection.execute("DROP ROLE IF EXISTS gateway")
    databases.drop(url)


def typed(folder: Path, page: Path, language: str = "sh", **variables: str) -> str:
    """What a page's commands print."""
    done = subprocess.run(
        ["bash", "-c", "\n".join(["set -e", *samples_of(page, language)])],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_S,
        check=False,
        env={
            "PATH": f"{binaries()}:{os.environ['PATH']}",
            "HOME": str(folder),
            "WAYPOST_SECRET_KEY": "a key of more than thirty-two characters",
            **variables,
        },
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_page_about_upgrades_upgrades(folder: Path) -> None:
    said = typed(folder, UPGRADE).splitlines()

    assert said[1].startswith(f"an upgrade from revision {OLDEST_UPGRADABLE_REVISION} to ")
    assert said[2].startswith("store: revision ")
    assert len(said) == 3


def test_page_about_backups_copies_the_store_and_puts_it_back(folder: Path) -> None:
    subprocess.run([".venv/bin/waypost", "store", "upgrade"], cwd=folder, check=True, capture_output=True)

    said = typed(folder, BACKUP).splitlines()

    assert said[0].startswith("monday.db")
    assert (folder / "monday.db").stat().st_mode & 0o777 == 0o600
    assert (folder / "monday-media" / "one").exists()


def test_page_about_postgresql_makes_a_database_and_moves_a_store_there(folder: Path, server: str) -> None:
    [makes] = samples_of(POSTGRESQL, "sql")
    with psycopg.connect(server, autocommit=True) as connection:
        for statement in makes.strip().split(";\n"):
            connection.execute(statement.encode())
    place = urlsplit(server)
    url = f"postgresql://gateway:choose%20another@{place.hostname}:{place.port}/gateway"

    said = typed(folder, POSTGRESQL, WAYPOST_MOVE_TO=url)

    assert "are copied and compared" in said
    assert "works with versions of revision" in said
    assert "ada@acme.test" in said


def test_page_about_backups_dumps_a_database_and_restores_it(folder: Path, databases: Databases) -> None:
    source, restored = databases.take(), databases.take_bare()

    typed(folder, BACKUP, "bash", DATABASE_URL=source, RESTORED_URL=restored)

    with psycopg.connect(restored) as connection:
        found = connection.execute("SELECT value FROM store_facts WHERE name = 'revision'")
        assert found.fetchone() is not None
    databases.give_back(source)
    databases.drop(restored)
