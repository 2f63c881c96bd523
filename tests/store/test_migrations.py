"""A store of an older version is upgraded to the next revision, step by step, and steps only add."""

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import op
from sqlalchemy import Connection, create_engine, insert, select, text, update
from sqlalchemy.exc import OperationalError

from tests.support.baseline_store import create_baseline_store, set_revision
from tests.support.builders import message
from tests.support.migration_operations import incompatible_operations, operations_of
from tests.support.next_version import NEXT_STEP_FOLDER, become_next_version
from tests.support.schema_differences import differences, storage_of
from tests.support.store_locations import Databases, PostgresLocation, StoreLocation
from waypost.store.contract import WrongStore
from waypost.store.database import Database
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.messages.messages import messages_by_ids, record_messages
from waypost.store.revision import OLDEST_UPGRADABLE_REVISION, pending_steps, read_schema_status, upgrade_store
from waypost.store.schema import PARTITIONED_TABLES, STORAGE_PARAMETERS
from waypost.store.tables import REVISION, messages, queue_jobs, store_properties


async def test_new_store_has_the_ranges_and_parameters_of_the_tables(databases: Databases) -> None:
    store_location = PostgresLocation(databases.acquire())
    database = Database(store_location.engine())
    await database.open()

    storage = await database.read(storage_of)

    await database.close()
    databases.release(store_location.url)
    assert [(name, key) for name, key, _ in storage["ranges"]] == sorted(
        (table.table.name, f"RANGE ({table.column})") for table in PARTITIONED_TABLES
    )
    assert all(has_default for _, _, has_default in storage["ranges"])
    assert {name: ", ".join(options) for name, options in storage["options"]} == STORAGE_PARAMETERS
    assert len(storage["ranges"]) == 4


async def test_new_store_does_not_differ_from_the_tables(database: Database) -> None:
    assert await database.read(differences) == ""


def test_newest_step_is_the_revision_that_this_version_works_on() -> None:
    steps = pending_steps(OLDEST_UPGRADABLE_REVISION)

    assert [int(step.revision) for step in steps] == list(range(OLDEST_UPGRADABLE_REVISION + 1, REVISION + 1))


def test_each_step_only_adds() -> None:
    steps = pending_steps(OLDEST_UPGRADABLE_REVISION, extra_folders=[NEXT_STEP_FOLDER])
    assert steps
    with create_engine("sqlite://", poolclass=sa.NullPool).begin() as connection:
        for step in steps:
            operations = operations_of(connection, step)

            assert operations
            assert incompatible_operations(operations, step) == []


def _drop_column() -> None:
    op.drop_column("messages", "reason")


def _rename_table() -> None:
    op.rename_table("messages", "letters")


def _add_required_column() -> None:
    op.add_column("messages", sa.Column("must", sa.Text(), nullable=False, server_default=None))


def _add_unique_index() -> None:
    op.create_index("one", "messages", ["source"], unique=True)


def _run_raw_sql() -> None:
    op.execute("ALTER TABLE messages DROP COLUMN reason")


def _change_existing_rows() -> None:
    op.execute("UPDATE messages SET reason = NULL WHERE reason = ''")


@pytest.mark.parametrize(
    "upgrade",
    [_drop_column, _rename_table, _add_required_column, _add_unique_index, _run_raw_sql, _change_existing_rows],
)
def test_step_that_removes_or_changes_anything_is_detected(upgrade: Any) -> None:
    step = SimpleNamespace(revision="5", upgrade=upgrade)
    with create_engine("sqlite://", poolclass=sa.NullPool).begin() as connection:
        assert incompatible_operations(operations_of(connection, step), step)


def test_column_that_an_earlier_step_replaced_may_be_removed() -> None:
    step = SimpleNamespace(revision="6", upgrade=_drop_column, replaced={"messages.reason": "5"})
    with create_engine("sqlite://", poolclass=sa.NullPool).begin() as connection:
        assert incompatible_operations(operations_of(connection, step), step) == []


async def test_store_of_an_older_revision_is_upgraded_at_startup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_baseline_store(tmp_path / "waypost.db")
    revision = become_next_version(monkeypatch)
    database = Database(SqliteEngine(tmp_path / "waypost.db"))

    await database.open()

    status = await database.read(read_schema_status)
    assert status is not None
    assert (status.revision, status.works_with) == (revision, pending_steps(0)[-1].works_with)
    assert await database.read(_has_table, "next_things")
    assert len(await database.read(_all_rows, messages)) == 5
    assert len(await database.read(_all_rows, queue_jobs)) == 2
    await database.close()


async def test_store_of_a_revision_without_steps_is_rejected_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "waypost.db"
    create_baseline_store(path)
    set_revision(path, OLDEST_UPGRADABLE_REVISION - 1)
    database = Database(SqliteEngine(path))

    with pytest.raises(WrongStore, match=r"too old to be upgraded; .*; start with an empty folder"):
        await database.open()

    await database.close()
    assert _revision_of(path) == OLDEST_UPGRADABLE_REVISION - 1


async def test_store_is_unchanged_where_upgrading_is_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "waypost.db"
    create_baseline_store(path)
    become_next_version(monkeypatch)
    before = path.read_bytes()
    database = Database(SqliteEngine(path, upgrade=False))

    with pytest.raises(WrongStore, match="waypost store upgrade"):
        await database.open()

    await database.close()
    assert _revision_of(path) == REVISION
    assert len(before) <= path.stat().st_size


async def test_step_that_fails_leaves_the_store_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "waypost.db"
    create_baseline_store(path)
    with create_engine(f"sqlite:///{path}", poolclass=sa.NullPool).begin() as connection:
        connection.execute(text("CREATE TABLE next_things (in_the_way TEXT)"))
    become_next_version(monkeypatch)
    database = Database(SqliteEngine(path))

    with pytest.raises(OperationalError):
        await database.open()

    await database.close()
    assert _revision_of(path) == REVISION
    with create_engine(f"sqlite:///{path}", poolclass=sa.NullPool).connect() as connection:
        columns = {column["name"] for column in sa.inspect(connection).get_columns("messages")}
        assert "next" not in columns


async def test_newer_store_is_opened_when_marked_compatible_and_rejected_when_not(
    store_location: StoreLocation,
) -> None:
    async def open_after(facts: dict[str, str]) -> None:
        def set_facts(connection: Connection) -> None:
            for name, value in facts.items():
                statement = update(store_properties).where(store_properties.c.name == name).values(value=value)
                connection.execute(statement)

        created = Database(store_location.engine())
        await created.open()
        await created.write(set_facts)
        await created.close()
        reopened = Database(store_location.engine())
        try:
            await reopened.open()
        finally:
            await reopened.close()

    await open_after({"revision": str(REVISION + 1), "works_with": str(REVISION)})
    with pytest.raises(WrongStore, match="use a newer version"):
        await open_after({"revision": str(REVISION + 2), "works_with": str(REVISION + 1)})


async def test_store_that_is_being_filled_is_rejected(store_location: StoreLocation) -> None:
    def mark(connection: Connection) -> None:
        connection.execute(insert(store_properties), {"name": "moving", "value": ""})

    created = Database(store_location.engine())
    await created.open()
    await created.write(mark)
    await created.close()
    reopened = Database(store_location.engine())

    with pytest.raises(WrongStore, match="waypost move"):
        await reopened.open()

    await reopened.close()


async def test_processes_of_two_revisions_work_on_one_store(databases: Databases) -> None:
    store_location = PostgresLocation(databases.acquire())
    old = Database(store_location.engine())
    await old.open()
    await old.join(record_messages, message(1))

    upgraded = await asyncio.to_thread(_apply_next_step, store_location.url)

    assert upgraded == REVISION + 1
    await old.join(record_messages, message(2))  # continues on the schema that it opened
    second = Database(store_location.engine())
    await second.open()  # a process of the same revision may start on the newer store
    await second.join(record_messages, message(3))
    assert len(await old.read(messages_by_ids, {message(n).id for n in (1, 2, 3)})) == 3
    await second.close()
    await old.close()
    databases.drop(store_location.url)


async def test_upgrade_gives_way_to_the_pipeline_and_then_succeeds(databases: Databases) -> None:
    store_location = PostgresLocation(databases.acquire())
    holder = Database(store_location.engine())
    await holder.open()
    await holder.join(record_messages, message(1))
    blocker = create_engine(_driver_url(store_location.url), poolclass=sa.NullPool).connect()
    blocker.begin()
    blocker.execute(text("SELECT 1 FROM messages"))  # holds the table against a change of it

    with pytest.raises(OperationalError, match="lock timeout"):
        await asyncio.to_thread(_apply_next_step, store_location.url)
    await holder.join(record_messages, message(2))
    blocker.close()
    await asyncio.to_thread(_apply_next_step, store_location.url)

    status = await holder.read(read_schema_status)
    assert status is not None
    assert status.revision == REVISION + 1
    await holder.close()
    databases.drop(store_location.url)


async def test_alembic_is_not_imported_where_nothing_is_to_be_upgraded(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from waypost.store.engines.sqlite import SqliteEngine;"
        f"engine = SqliteEngine(Path({str(tmp_path / 'waypost.db')!r})); engine.open(); engine.close();"
        "engine.open(); engine.close(); print('alembic' in sys.modules)"
    )

    ran = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await ran.communicate()

    assert out.decode().strip() == "False", err.decode()


def _all_rows(connection: Connection, table: sa.Table) -> list[Any]:
    return list(connection.execute(select(table)).all())


def _has_table(connection: Connection, name: str) -> bool:
    return sa.inspect(connection).has_table(name)


def _revision_of(path: Path) -> int:
    with create_engine(f"sqlite:///{path}", poolclass=sa.NullPool).connect() as connection:
        status = read_schema_status(connection)
    assert status is not None
    return status.revision


def _driver_url(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://", 1)


def _apply_next_step(url: str) -> int:
    """Upgrade as a process of the next revision does at its start."""
    with create_engine(_driver_url(url), poolclass=sa.NullPool).begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('waypost revision'))"))
        return upgrade_store(connection, REVISION, extra_folders=[NEXT_STEP_FOLDER])
