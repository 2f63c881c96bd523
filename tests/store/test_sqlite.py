"""The SQLite engine: one process, one revision, and a store that knows what it is."""

import stat
from pathlib import Path

import pytest
from sqlalchemy import Connection, text, update

from tests.support.builders import PARTNER
from waypost.store.contract import StoreInUse, WrongStore
from waypost.store.database import Database
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.kind import check_real, is_demo, mark_demo
from waypost.store.partners import add_api_key, add_client_secret, add_partner
from waypost.store.tables import store_facts


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
        revision = update(store_facts).where(store_facts.c.name == "revision")
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


async def test_empty_store_is_fit_for_real_traffic(database: Database) -> None:
    await database.read(check_real, {"known"})

    assert not await database.read(is_demo)


async def test_store_of_the_demonstration_is_refused_for_real_traffic(database: Database) -> None:
    assert await database.write(mark_demo)

    with pytest.raises(WrongStore, match="waypost dev"):
        await database.read(check_real, set[str]())


async def test_store_is_marked_once(database: Database) -> None:
    await database.write(mark_demo)

    assert not await database.write(mark_demo)


async def test_store_of_real_traffic_does_not_become_the_demonstrations(
    database: Database,
) -> None:
    await database.write(add_partner, PARTNER, "no password", 0)

    with pytest.raises(WrongStore, match="waypost serve"):
        await database.write(mark_demo)


@pytest.mark.parametrize("kind", ["key", "secret"])
async def test_store_with_a_known_credential_is_refused(database: Database, kind: str) -> None:
    if kind == "key":
        await database.write(add_api_key, "known", PARTNER.id, "key", 0)
    else:
        await database.write(add_client_secret, PARTNER.id, "known", 0, None)

    with pytest.raises(WrongStore, match="everybody knows"):
        await database.read(check_real, {"known", "other"})
