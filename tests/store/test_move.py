"""A store of SQLite is moved into PostgreSQL: completely, verified, once, and the pipeline continues there."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from sqlalchemy import Connection, func, insert, select, update

from tests.conftest import MakePipeline
from tests.support.builders import ANN, BEN, id_number, message
from tests.support.polling import poll_until
from tests.support.store_locations import Databases, PostgresLocation
from tests.support.store_statements import execute, fetch_column
from waypost.assembly.store_maintenance import CopyMismatch, MovedTable, move
from waypost.store.contract import StoreInUse, WrongStore
from waypost.store.database import Database
from waypost.store.engines.postgresql import PostgresEngine
from waypost.store.engines.postgresql_import import PostgresImport
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.messages.messages import record_messages
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.jobs import NewJob, complete_jobs, enqueue_jobs, read_subject
from waypost.store.tables import message_events, messages, queue_jobs, store_properties


@pytest.fixture
def engine() -> str:
    """The engine that a store is moved from."""
    return "sqlite"


@pytest.fixture
def url(databases: Databases) -> Iterator[str]:
    """An empty database."""
    url = databases.take_empty()
    yield url
    databases.drop(url)


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A store with a few messages in it that no service has open."""
    path = tmp_path / "waypost.db"
    await _fill(path, 3)
    return path


async def test_pipeline_continues_on_the_moved_store(make_pipeline: MakePipeline, url: str) -> None:
    pipeline = await make_pipeline()
    template_id = await pipeline.approved_template()
    before = [await pipeline.send(template_id, to=to) for to in (ANN, BEN, ANN)]
    for message_id in before:
        await pipeline.events_of(message_id, until="delivered")
    await pipeline.close_operator()
    pending = [await pipeline.send(template_id, to=ANN) for _ in range(3)]
    await pipeline.close_service()

    copied_tables = move(pipeline.folder / "waypost.db", url, report=_ignore_progress)
    pipeline.store_location = PostgresLocation(url)
    await pipeline.open_operator()
    await pipeline.open_service()

    for message_id in pending:
        await pipeline.events_of(message_id, until="delivered")
    after = await pipeline.send(template_id, to=BEN)
    await pipeline.events_of(after, until="delivered")
    assert {copied.table for copied in copied_tables} >= {"messages", "callbacks", "attempts", "queue_jobs"}
    assert pipeline.waypost.database.engine == "postgresql"
    sequences_of_ann = [callback.sequence for callback in pipeline.sink.accepted if _destination(callback.value) == ANN]
    assert (
        sequences_of_ann
        == sorted(set(sequences_of_ann))
        == list(range(sequences_of_ann[0], sequences_of_ann[0] + len(sequences_of_ann)))
    )
    payloads = [callback.value["payload"] for callback in pipeline.sink.accepted]
    message_ids = [payload.get("gsId") or payload.get("id") for payload in payloads]
    assert [message_id for message_id in dict.fromkeys(message_ids) if message_id in pending] == pending


async def test_all_rows_are_moved(path: Path, url: str) -> None:
    copied_tables = move(path, url, report=_ignore_progress)

    rows = {copied.table: copied.digest.rows for copied in copied_tables}
    assert (rows["messages"], rows["queue_jobs"]) == (3, 3)
    moved = Database(PostgresEngine(url))
    await moved.open()
    stored = await moved.read(_messages)
    await moved.close()
    assert [row.id for row in stored] == [id_number(n) for n in (1, 2, 3)]
    assert all(row.content and not row.sandbox for row in stored)


async def test_positions_continue_after_the_last_one_ever_assigned(path: Path, url: str) -> None:
    store = Database(SqliteEngine(path))
    await store.open()
    await store.write(_enqueue_and_complete, 20)
    last = 3 + 20
    await store.close()

    move(path, url, report=_ignore_progress)

    moved = Database(PostgresEngine(url))
    await moved.open()
    await moved.join(record_messages, message(9))
    positions = await fetch_column(moved, select(queue_jobs.c.position))
    await moved.close()
    assert max(positions) == last + 1


async def test_moved_store_is_not_opened_or_moved_again(path: Path, url: str) -> None:
    move(path, url, report=_ignore_progress)
    old = Database(SqliteEngine(path))

    with pytest.raises(WrongStore, match="moved to PostgreSQL"):
        await old.open()

    await old.close()
    with pytest.raises(WrongStore, match="holds a store already"):
        move(path, url, report=_ignore_progress)


async def test_moved_store_is_not_moved_to_another_database(path: Path, url: str, databases: Databases) -> None:
    move(path, url, report=_ignore_progress)
    other = databases.take_empty()

    with pytest.raises(WrongStore, match="moved to PostgreSQL already"):
        move(path, other, report=_ignore_progress)

    databases.drop(other)


@pytest.mark.parametrize("is_half_done", [True, False])
async def test_move_interrupted_at_its_very_end_can_be_completed(
    path: Path, url: str, monkeypatch: pytest.MonkeyPatch, is_half_done: bool
) -> None:
    """Stop between the marks of the old and the new store, or lose the response to the last commit."""
    finish = PostgresImport.finish

    def cut_off(filling: PostgresImport) -> None:
        if not is_half_done:
            finish(filling)
        raise ConnectionError

    with monkeypatch.context() as patched:
        patched.setattr(PostgresImport, "finish", cut_off)
        with pytest.raises(ConnectionError):
            move(path, url, report=_ignore_progress)

    if is_half_done:
        move(path, url, report=_ignore_progress)
    moved = Database(PostgresEngine(url))
    await moved.open()
    assert len(await moved.read(_messages)) == 3
    await moved.close()


async def test_store_in_use_is_not_moved(path: Path, url: str) -> None:
    store = Database(SqliteEngine(path))
    await store.open()

    with pytest.raises(StoreInUse, match="in use by another process"):
        move(path, url, report=_ignore_progress)

    await store.close()


def test_database_that_is_not_empty_is_rejected(path: Path, url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE somebodys (thing text)")

    with pytest.raises(WrongStore, match="choose an empty database"):
        move(path, url, report=_ignore_progress)


def test_folder_without_a_store_is_named(tmp_path: Path, url: str) -> None:
    with pytest.raises(WrongStore, match="--data"):
        move(tmp_path / "waypost.db", url, report=_ignore_progress)


async def test_row_that_changes_on_the_way_is_detected_and_the_database_stays_marked(path: Path, url: str) -> None:
    def corrupt(copied: MovedTable) -> None:
        if (
            copied.table == "inbound_webhooks"
        ):  # tables are moved in the order of their names, as none refers to another
            with psycopg.connect(url) as connection:
                connection.execute(_CORRUPT_ROWS)

    with pytest.raises(CopyMismatch, match="messages: 3 rows"):
        move(path, url, report=corrupt)

    target = Database(PostgresEngine(url))
    with pytest.raises(WrongStore, match="being filled by `waypost move`"):
        await target.open()
    await target.close()
    old = Database(SqliteEngine(path))
    await old.open()  # it is unchanged
    await old.close()


async def test_text_that_postgresql_cannot_hold_is_replaced_and_counted(path: Path, url: str) -> None:
    store = Database(SqliteEngine(path))
    await store.open()
    await execute(store, update(messages).values(reason="a\0b"))
    await store.close()

    copied_tables = move(path, url, report=_ignore_progress)

    assert {copied.table: copied.replaced_texts for copied in copied_tables if copied.replaced_texts} == {"messages": 3}
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT DISTINCT reason FROM messages").fetchall() == [("a\ufffdb",)]


async def test_move_that_is_killed_midway_can_be_run_again(tmp_path: Path, url: str) -> None:
    path = tmp_path / "waypost.db"
    await _fill(path, 3, events=20_000)
    command = [sys.executable, "-m", "waypost", "move", "--data", str(tmp_path)]
    environment = {**os.environ, "WAYPOST_MOVE_TO": url, "PYTHONUNBUFFERED": "1"}

    first = await _start(command, environment)
    assert first.stdout is not None
    async for line in first.stdout:
        if line.startswith(b"media_copies"):  # the table before the one with many rows
            first.kill()
            break
    assert await first.wait() == -signal.SIGKILL
    half_done = Database(PostgresEngine(url))
    with pytest.raises(WrongStore, match="run `waypost move` again"):
        await half_done.open()
    await half_done.close()
    await poll_until(lambda: asyncio.to_thread(_no_import_is_running, url))
    second = await _start(command, environment)
    output, errors = await second.communicate()

    assert second.returncode == 0, errors.decode()
    assert b"message_events" in output
    assert b"20,000 rows" in output
    moved = Database(PostgresEngine(url))
    await moved.open()
    assert await fetch_column(moved, _COUNT_EVENTS) == [20_000]
    await moved.close()


def _ignore_progress(_: MovedTable) -> None:
    pass


async def _start(command: list[str], environment: dict[str, str]) -> Process:
    return await asyncio.create_subprocess_exec(*command, env=environment, stdout=PIPE, stderr=PIPE)


async def _fill(path: Path, count: int, events: int = 0) -> None:
    store = Database(SqliteEngine(path))
    await store.open()
    await store.join_all(record_messages, [message(number) for number in range(1, count + 1)])
    await execute(store, insert(store_properties), [{"name": "kind", "value": "serve"}])
    if events:
        rows = [{"message_id": id_number(1), "event": "sent", "at_ms": 1, "applied": True, "detail": "x" * 50}]
        await execute(store, insert(message_events), rows * events)
    await store.close()


def _enqueue_and_complete(connection: Connection, count: int) -> None:
    enqueue_jobs(
        connection, [NewJob(QueueName.MEDIA, "g", "k", read_subject(QueueName.MEDIA, str(n)), 1) for n in range(count)]
    )
    query = select(queue_jobs.c.position).where(queue_jobs.c.queue == int(QueueName.MEDIA))
    complete_jobs(connection, list(connection.execute(query).scalars()))


def _messages(connection: Connection) -> list[Any]:
    return list(connection.execute(select(messages).order_by(messages.c.id)).all())


def _no_import_is_running(url: str) -> bool:
    with psycopg.connect(url) as connection:
        return connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND application_name = 'waypost'"
        ).fetchone() == (0,)


def _destination(callback: dict[str, Any]) -> str:
    return str(callback["payload"].get("destination", ""))


_COUNT_EVENTS: Final = select(func.count()).select_from(message_events)
_CORRUPT_ROWS: Final = """
    CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN NEW.destination := '0'; RETURN NEW; END $$;
    CREATE TRIGGER spoil BEFORE INSERT ON messages FOR EACH ROW EXECUTE FUNCTION spoil();
"""
