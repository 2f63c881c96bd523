"""The SQLite engine: one process, one revision, every commit flushed."""

import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, text, update

from waypost.store.contract import StoreInUse, WrongStore
from waypost.store.database import Database
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.tables import store_facts


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store is."""
    return tmp_path / "store" / "waypost.db"


@pytest.fixture
async def database(path: Path) -> AsyncIterator[Database]:
    """The store, open."""
    database = Database(SqliteEngine(path))
    await database.open()
    yield database
    await database.close()


@pytest.mark.usefixtures("database")
async def test_second_process_is_refused_in_one_line_with_the_remedy(path: Path) -> None:
    second = SqliteEngine(path)

    with pytest.raises(StoreInUse) as told:
        second.open()

    assert str(path) in str(told.value)
    assert "--data" in str(told.value)
    assert "\n" not in str(told.value)


async def test_closed_store_may_be_opened_by_another(path: Path) -> None:
    first = Database(SqliteEngine(path))
    await first.open()
    await first.close()
    second = Database(SqliteEngine(path))

    await second.open()

    await second.close()


async def test_store_of_an_unknown_revision_is_refused(path: Path) -> None:
    def change(connection: Connection) -> None:
        revision = update(store_facts).where(store_facts.c.name.in_(("revision", "works_with")))
        connection.execute(revision.values(value="999"))

    made = Database(SqliteEngine(path))
    await made.open()
    await made.write(change)
    await made.close()
    again = Database(SqliteEngine(path))

    with pytest.raises(WrongStore, match="revision 999"):
        await again.open()

    await again.close()


async def test_commit_is_flushed_before_it_is_answered(database: Database) -> None:
    def pragmas(connection: Connection) -> tuple[str, int]:
        mode = connection.execute(text("PRAGMA journal_mode")).scalar_one()
        return mode, connection.execute(text("PRAGMA synchronous")).scalar_one()

    found = await database.write(pragmas)

    assert found == ("wal", 2)  # 2 is FULL


@pytest.mark.usefixtures("database")
async def test_folder_of_a_store_is_its_owners_alone(path: Path) -> None:
    mode = stat.S_IMODE(path.parent.stat().st_mode)

    assert mode == 0o700
