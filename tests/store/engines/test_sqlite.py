"""The SQLite engine: one process, one revision, every commit flushed."""

import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, text, update

from waypost.store.contract import StoreInUse, WrongStore
from waypost.store.database import Database
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.tables import store_properties


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of the store."""
    return tmp_path / "store" / "waypost.db"


@pytest.fixture
async def database(path: Path) -> AsyncIterator[Database]:
    """The open store."""
    database = Database(SqliteEngine(path))
    await database.open()
    yield database
    await database.close()


@pytest.mark.usefixtures("database")
async def test_second_process_fails_with_one_line_that_names_the_fix(path: Path) -> None:
    second = SqliteEngine(path)

    with pytest.raises(StoreInUse) as raised:
        second.open()

    assert str(path) in str(raised.value)
    assert "--data" in str(raised.value)
    assert "\n" not in str(raised.value)


async def test_closed_store_may_be_opened_by_another_process(path: Path) -> None:
    first = Database(SqliteEngine(path))
    await first.open()
    await first.close()
    second = Database(SqliteEngine(path))

    await second.open()

    await second.close()


async def test_store_of_an_unknown_revision_is_rejected(path: Path) -> None:
    def change(connection: Connection) -> None:
        revision = update(store_properties).where(store_properties.c.name.in_(("revision", "works_with")))
        connection.execute(revision.values(value="999"))

    created = Database(SqliteEngine(path))
    await created.open()
    await created.write(change)
    await created.close()
    reopened = Database(SqliteEngine(path))

    with pytest.raises(WrongStore, match="revision 999"):
        await reopened.open()

    await reopened.close()


async def test_commit_is_flushed_before_it_is_acknowledged(database: Database) -> None:
    def pragmas(connection: Connection) -> tuple[str, int]:
        mode = connection.execute(text("PRAGMA journal_mode")).scalar_one()
        return mode, connection.execute(text("PRAGMA synchronous")).scalar_one()

    settings = await database.write(pragmas)

    assert settings == ("wal", 2)  # 2 is FULL


@pytest.mark.usefixtures("database")
async def test_folder_of_a_store_is_accessible_to_its_owner_only(path: Path) -> None:
    mode = stat.S_IMODE(path.parent.stat().st_mode)

    assert mode == 0o700
