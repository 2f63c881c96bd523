"""A store of SQLite is moved into PostgreSQL: whole, compared, once, and the pipeline goes on there."""

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
from tests.support.store_statements import column_of, do
from tests.support.stores import Databases, PostgresPlace
from tests.support.waiting import patiently
from waypost.assembly.store_move import CopyMismatch, MovedTable, move
from waypost.store.contract import StoreInUse, WrongStore
from waypost.store.database import Database
from waypost.store.engines.postgresql import PostgresEngine
from waypost.store.engines.postgresql_import import PostgresImport
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.messages.messages import record_messages
from waypost.store.queue.jobs import NewJob, QueueName, complete_jobs, enqueue_jobs, read_subject
from waypost.store.tables import message_events, messages, queue_jobs, store_facts


@pytest.fixture
def engine() -> str:
    """What is moved is a file."""
    return "sqlite"


@pytest.fixture
def url(databases: Databases) -> Iterator[str]:
    """An empty database."""
    url = databases.take_bare()
    yield url
    databases.drop(url)


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A store with a few messages in it that no service has open."""
    path = tmp_path / "waypost.db"
    await _fill(path, 3)
    return path


async def test_street_goes_on_where_its_store_was_moved_to(make_pipeline: MakePipeline, url: str) -> None:
    pipeline = await make_pipeline()
    template_id = await pipeline.approved_template()
    before = [await pipeline.send(template_id, to=to) for to in (ANN, BEN, ANN)]
    for one in before:
        await pipeline.events_of(one, until="delivered")
    await pipeline.close_operator()
    left = [await pipeline.send(template_id, to=ANN) for _ in range(3)]
    await pipeline.close_service()

    done = move(pipeline.folder / "waypost.db", url, report=_say_nothing)
    pipeline.place = PostgresPlace(url)
    await pipeline.open_operator()
    await pipeline.open_service()

    for one in left:
        await pipeline.events_of(one, until="delivered")
    after = await pipeline.send(template_id, to=BEN)
    await pipeline.events_of(after, until="delivered")
    assert {one.table for one in done} >= {"messages", "callbacks", "attempts", "queue_jobs"}
    assert pipeline.waypost.database.engine == "postgresql"
    of_ann = [one.sequence for one in pipeline.sink.taken if _about(one.value) == ANN]
    assert of_ann == sorted(set(of_ann)) == list(range(of_ann[0], of_ann[0] + len(of_ann)))
    told = [one.value["payload"].get("gsId") or one.value["payload"].get("id") for one in pipeline.sink.taken]
    assert [one for one in dict.fromkeys(told) if one in left] == left


async def test_everything_that_was_there_is_there(path: Path, url: str) -> None:
    done = move(path, url, report=_say_nothing)

    rows = {one.table: one.digest.rows for one in done}
    assert (rows["messages"], rows["queue_jobs"]) == (3, 3)
    moved = Database(PostgresEngine(url))
    await moved.open()
    found = await moved.read(_messages)
    await moved.close()
    assert [row.id for row in found] == [id_number(n) for n in (1, 2, 3)]
    assert all(row.content and not row.sandbox for row in found)


async def test_numbers_go_on_beyond_the_last_that_was_ever_given_out(path: Path, url: str) -> None:
    store = Database(SqliteEngine(path))
    await store.open()
    await store.write(_append_and_settle, 20)
    last = 3 + 20
    await store.close()

    move(path, url, report=_say_nothing)

    moved = Database(PostgresEngine(url))
    await moved.open()
    await moved.join(record_messages, message(9))
    positions = await column_of(moved, select(queue_jobs.c.position))
    await moved.close()
    assert max(positions) == last + 1


async def test_store_that_was_moved_is_used_no_more(path: Path, url: str) -> None:
    move(path, url, report=_say_nothing)
    old = Database(SqliteEngine(path))

    with pytest.raises(WrongStore, match="moved to PostgreSQL"):
        await old.open()

    await old.close()
    with pytest.raises(WrongStore, match="holds a store already"):
        move(path, url, report=_say_nothing)


async def test_store_that_was_moved_is_not_moved_to_another_database(
    path: Path, url: str, databases: Databases
) -> None:
    move(path, url, report=_say_nothing)
    other = databases.take_bare()

    with pytest.raises(WrongStore, match="moved to PostgreSQL already"):
        move(path, other, report=_say_nothing)

    databases.drop(other)


@pytest.mark.parametrize("is_half_done", [True, False])
async def test_move_that_was_cut_off_at_its_very_end_is_begun_again(
    path: Path, url: str, monkeypatch: pytest.MonkeyPatch, is_half_done: bool
) -> None:
    """Between the mark of the old store and that of the new one, or as the answer to the last commit was lost."""
    finish = PostgresImport.finish

    def cut_off(filling: PostgresImport) -> None:
        if not is_half_done:
            finish(filling)
        raise ConnectionError

    with monkeypatch.context() as patched:
        patched.setattr(PostgresImport, "finish", cut_off)
        with pytest.raises(ConnectionError):
            move(path, url, report=_say_nothing)

    if is_half_done:
        move(path, url, report=_say_nothing)
    moved = Database(PostgresEngine(url))
    await moved.open()
    assert len(await moved.read(_messages)) == 3
    await moved.close()


async def test_store_in_use_is_not_moved(path: Path, url: str) -> None:
    store = Database(SqliteEngine(path))
    await store.open()

    with pytest.raises(StoreInUse, match="in use by another process"):
        move(path, url, report=_say_nothing)

    await store.close()


def test_database_with_anything_in_it_is_not_filled(path: Path, url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE somebodys (thing text)")

    with pytest.raises(WrongStore, match="choose an empty database"):
        move(path, url, report=_say_nothing)


def test_folder_without_a_store_is_named(tmp_path: Path, url: str) -> None:
    with pytest.raises(WrongStore, match="--data"):
        move(tmp_path / "waypost.db", url, report=_say_nothing)


async def test_row_that_arrives_changed_is_noticed_and_the_database_stays_marked(path: Path, url: str) -> None:
    def spoil(one: MovedTable) -> None:
        if one.table == "inbound_webhooks":  # the tables go by their names, as none refers to another
            with psycopg.connect(url) as connection:
                connection.execute(_SPOIL)

    with pytest.raises(CopyMismatch, match="messages: 3 rows"):
        move(path, url, report=spoil)

    target = Database(PostgresEngine(url))
    with pytest.raises(WrongStore, match="being filled by `waypost move`"):
        await target.open()
    await target.close()
    old = Database(SqliteEngine(path))
    await old.open()  # nothing has become of it
    await old.close()


async def test_text_that_postgresql_cannot_hold_is_mended_and_counted(path: Path, url: str) -> None:
    store = Database(SqliteEngine(path))
    await store.open()
    await do(store, update(messages).values(reason="a\0b"))
    await store.close()

    done = move(path, url, report=_say_nothing)

    assert {one.table: one.replaced_texts for one in done if one.replaced_texts} == {"messages": 3}
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT DISTINCT reason FROM messages").fetchall() == [("a\ufffdb",)]


async def test_move_that_is_killed_in_the_middle_is_begun_again(tmp_path: Path, url: str) -> None:
    path = tmp_path / "waypost.db"
    await _fill(path, 3, events=20_000)
    command = [sys.executable, "-m", "waypost", "move", "--data", str(tmp_path)]
    environment = {**os.environ, "WAYPOST_MOVE_TO": url, "PYTHONUNBUFFERED": "1"}

    first = await _started(command, environment)
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
    await patiently(lambda: asyncio.to_thread(_nobody_fills, url))
    second = await _started(command, environment)
    told, complained = await second.communicate()

    assert second.returncode == 0, complained.decode()
    assert b"message_events" in told
    assert b"20,000 rows" in told
    moved = Database(PostgresEngine(url))
    await moved.open()
    assert await column_of(moved, _COUNT_EVENTS) == [20_000]
    await moved.close()


def _say_nothing(_: MovedTable) -> None:
    pass


async def _started(command: list[str], environment: dict[str, str]) -> Process:
    return await asyncio.create_subprocess_exec(*command, env=environment, stdout=PIPE, stderr=PIPE)


async def _fill(path: Path, count: int, events: int = 0) -> None:
    store = Database(SqliteEngine(path))
    await store.open()
    await store.join_all(record_messages, [message(number) for number in range(1, count + 1)])
    await do(store, insert(store_facts), [{"name": "kind", "value": "serve"}])
    if events:
        rows = [{"message_id": id_number(1), "news": "sent", "at_ms": 1, "moved": True, "detail": "x" * 50}]
        await do(store, insert(message_events), rows * events)
    await store.close()


def _append_and_settle(connection: Connection, count: int) -> None:
    enqueue_jobs(
        connection, [NewJob(QueueName.MEDIA, "g", "k", read_subject(QueueName.MEDIA, str(n)), 1) for n in range(count)]
    )
    mine = select(queue_jobs.c.position).where(queue_jobs.c.queue == int(QueueName.MEDIA))
    complete_jobs(connection, list(connection.execute(mine).scalars()))


def _messages(connection: Connection) -> list[Any]:
    return list(connection.execute(select(messages).order_by(messages.c.id)).all())


def _nobody_fills(url: str) -> bool:
    with psycopg.connect(url) as connection:
        return connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND application_name = 'waypost'"
        ).fetchone() == (0,)


def _about(callback: dict[str, Any]) -> str:
    return str(callback["payload"].get("destination", ""))


_COUNT_EVENTS: Final = select(func.count()).select_from(message_events)
_SPOIL: Final = """
    CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN NEW.destination := '0'; RETURN NEW; END $$;
    CREATE TRIGGER spoil BEFORE INSERT ON messages FOR EACH ROW EXECUTE FUNCTION spoil();
"""
