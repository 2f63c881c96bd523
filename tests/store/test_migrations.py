"""A store of an older version is upgraded to the current revision, step by step, and steps only add."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
import sqlalchemy as sa
from alembic import op
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, create_engine, insert, select, text, update
from sqlalchemy.exc import OperationalError

from tests.support.baseline_store import create_baseline_store
from tests.support.builders import message
from tests.support.migration_operations import incompatible_operations, operations_of
from tests.support.schema_differences import differences, storage_of
from tests.support.store_locations import Databases, PostgresLocation, StoreLocation
from waypost.store.callbacks.callbacks import read_callback_details
from waypost.store.contract import WrongStore
from waypost.store.database import Database
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.messages.messages import messages_by_ids, record_messages
from waypost.store.migrations import pending_revisions, upgrade_store
from waypost.store.revision import OLDEST_UPGRADABLE_REVISION, read_schema_status
from waypost.store.tables import REVISION, callbacks, messages, queue_jobs, store_properties

NEXT: Final = Path(__file__).parents[1] / "support" / "next_step"


@pytest.fixture
def bare(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[sa.Engine]:
    """An empty database."""
    if engine == "sqlite":
        yield create_engine(f"sqlite:///{tmp_path / 'bare.db'}", poolclass=sa.NullPool)
        return
    databases: Databases = request.getfixturevalue("databases")
    url = databases.take_empty()
    yield create_engine(_driver_url(url), poolclass=sa.NullPool)
    databases.drop(url)


def test_steps_lead_to_the_tables_as_they_are(bare: sa.Engine) -> None:
    with bare.begin() as connection:
        upgrade_store(connection, 0)

        missing = differences(connection)

    assert not missing, f"the steps lack this; add it to the newest one:\n{missing}"


async def test_new_store_has_the_ranges_and_parameters_that_the_steps_lead_to(databases: Databases) -> None:
    url, store_location = databases.take_empty(), PostgresLocation(databases.acquire())
    with create_engine(_driver_url(url), poolclass=sa.NullPool).begin() as connection:
        upgrade_store(connection, 0)
        by_steps = storage_of(connection)
    database = Database(store_location.engine())
    await database.open()

    when_new = await database.read(storage_of)

    await database.close()
    databases.drop(url)
    databases.release(store_location.url)
    assert when_new == by_steps
    assert len(when_new["ranges"]) == 4


async def test_new_store_does_not_differ_from_the_tables(database: Database) -> None:
    assert await database.read(differences) == ""


def test_newest_step_is_the_revision_that_this_version_works_on() -> None:
    assert [int(step.revision) for step in pending_revisions(0)] == list(
        range(OLDEST_UPGRADABLE_REVISION, REVISION + 1)
    )


def test_each_step_only_adds(bare: sa.Engine) -> None:
    with bare.connect() as connection:
        for step in pending_revisions(OLDEST_UPGRADABLE_REVISION):
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


_INSERT_CALLBACK: Final = (
    "INSERT INTO callbacks (id, partner_id, app_id, subscription_id, subject, sequence, event, body, created_on_ms) "
    "VALUES ('c', 1, 'a', 7, 'ann', 1, 'sent', '', 0)"
)


def test_jobs_of_callbacks_in_an_older_store_become_the_callbacks_own_and_replays_stay(bare: sa.Engine) -> None:
    with bare.begin() as connection:
        for step in pending_revisions(0):
            if step.revision == "6":
                connection.execute(text(_INSERT_CALLBACK))
                for group in ("subscription 7", "replay 7"):
                    statement = text(
                        "INSERT INTO queue_jobs (queue, concurrency_group, ordering_key, ref, due_ms, attempt, note) "
                        "VALUES (3, :concurrency_group, '', 'c', 5, 2, 'status 503')"
                    )
                    connection.execute(statement, {"concurrency_group": group})
            with Operations.context(MigrationContext.configure(connection)):
                step.upgrade()

        rows = connection.execute(
            select(queue_jobs.c.concurrency_group, queue_jobs.c.replay).order_by(queue_jobs.c.position)
        ).all()

        columns = (callbacks.c.position, callbacks.c.due_ms, callbacks.c.attempt, callbacks.c.note)
        job = connection.execute(select(*columns)).one()

    assert [tuple(row) for row in rows] == [("replay 7", True)]
    assert tuple(job) == (1, 5, 2, "status 503")


def test_texts_of_an_older_store_are_read_as_they_are(bare: sa.Engine) -> None:
    body = '{"app":"Shop","phone":"1","timestamp":0,"version":2}'
    with bare.begin() as connection:
        for step in pending_revisions(0):
            if step.revision == "8":
                connection.execute(text(_INSERT_CALLBACK.replace("''", ":body")), {"body": body.encode()})
            with Operations.context(MigrationContext.configure(connection)):
                step.upgrade()

        row = connection.execute(select(callbacks)).mappings().one()

        shown = read_callback_details(connection, dict(row))

    assert bytes(row["body"]) == body.encode()
    assert shown["body"] == body


async def test_store_of_the_first_revision_is_upgraded_at_startup(tmp_path: Path) -> None:
    create_baseline_store(tmp_path / "waypost.db")
    database = Database(SqliteEngine(tmp_path / "waypost.db"))

    await database.open()

    status = await database.read(read_schema_status)
    assert status is not None
    assert (status.revision, status.works_with) == (REVISION, pending_revisions(0)[-1].works_with)
    assert await database.read(differences) == ""
    assert len(await database.read(_all_rows, messages)) == 5
    assert len(await database.read(_all_rows, queue_jobs)) == 2
    await database.close()


async def test_store_is_unchanged_where_upgrading_is_off(tmp_path: Path) -> None:
    path = tmp_path / "waypost.db"
    create_baseline_store(path)
    before = path.read_bytes()
    database = Database(SqliteEngine(path, upgrade=False))

    with pytest.raises(WrongStore, match="waypost store upgrade"):
        await database.open()

    await database.close()
    connection = create_engine(f"sqlite:///{path}", poolclass=sa.NullPool).connect()
    assert connection.execute(text("SELECT value FROM store_properties WHERE name = 'revision'")).scalars().all() == [
        str(OLDEST_UPGRADABLE_REVISION)
    ]
    connection.close()
    assert len(before) <= path.stat().st_size


async def test_step_that_fails_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "waypost.db"
    create_baseline_store(path)
    with create_engine(f"sqlite:///{path}", poolclass=sa.NullPool).begin() as connection:
        connection.execute(text("CREATE TABLE app_users (in_the_way TEXT)"))
    database = Database(SqliteEngine(path))

    with pytest.raises(OperationalError):
        await database.open()

    await database.close()
    with create_engine(f"sqlite:///{path}", poolclass=sa.NullPool).connect() as connection:
        assert connection.execute(
            text("SELECT value FROM store_properties WHERE name = 'revision'")
        ).scalars().all() == [str(OLDEST_UPGRADABLE_REVISION)]
        tables = sa.inspect(connection).get_table_names()
        assert "audit_log" not in tables


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


def _driver_url(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://", 1)


def _apply_next_step(url: str) -> int:
    """Upgrade as a process of the next revision does at its start."""
    with create_engine(_driver_url(url), poolclass=sa.NullPool).begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('waypost revision'))"))
        return upgrade_store(connection, REVISION, extra_folders=[NEXT])
