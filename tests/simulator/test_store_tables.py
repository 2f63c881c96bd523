"""Tables of the simulator's and the service's files: column order that SQLite's integrity check requires."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from waypost.base.written_numbers import encode_json, json_decoder
from waypost.simulator.storage.store import Store
from waypost.simulator.storage.tables import SCHEMA
from waypost.simulator.storage.tables.phone_plans import WAITING_MESSAGES, WaitingMessage
from waypost.simulator.storage.tables.updates import OUTBOX, Update
from waypost.store.engines.sqlite import SqliteEngine


def _simulator(path: Path) -> None:
    async def make() -> None:
        store = Store(path, SCHEMA)
        await store.open()
        await store.close()

    asyncio.run(make())


def _service(path: Path) -> None:
    engine = SqliteEngine(path)
    engine.open()
    engine.close()


@pytest.mark.parametrize("make", [_simulator, _service])
def test_every_table_without_rowid_begins_with_its_primary_key(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """Otherwise SQLite 3.40 reports a sound file as damaged (`NULL value in outbox.due_ms`)."""
    path = tmp_path / "store.db"
    make(path)

    with contextlib.closing(sqlite3.connect(path)) as connection:
        tables = dict(_keys_and_columns(connection))

    assert len(tables) >= 3
    assert {name: (key, columns) for name, (key, columns) in tables.items() if columns[: len(key)] != key} == {}


def test_objects_are_stored_as_json_whose_numbers_keep_their_spelling() -> None:
    """A status that is planned, cancelled and found again by its content has the text it was planned with."""
    content = json_decoder(dict[str, Any]).decode('{"status":{"amount":7.50,"text":"\u20b9 \u0939"}}')
    update = Update("waba", 5, "delivered", "number", "wamid", content, id=1, app_id="app")
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(OUTBOX.schema)
        connection.execute(*OUTBOX.insert(update))

        [found] = OUTBOX.find_on(connection, content=content)
        connection.execute(*OUTBOX.delete(content=found.content))

        assert encode_json(found.content) == encode_json(content)
        assert OUTBOX.find_on(connection, app_id="app") == []


def test_an_absent_object_is_null() -> None:
    """So that a message whose sender has no subscribed app has no status to send later."""
    waiting = WaitingMessage("1", 1, "wamid", "waba", "number", 9, 0, None, None, None)
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(WAITING_MESSAGES.schema)
        connection.execute(*WAITING_MESSAGES.insert(waiting))

        assert WAITING_MESSAGES.find_on(connection, status=None) == [waiting]


def _keys_and_columns(connection: sqlite3.Connection) -> Iterator[tuple[str, tuple[list[str], list[str]]]]:
    tables = connection.execute("SELECT name FROM pragma_table_list WHERE wr=1 AND schema='main'")
    for (name,) in tables.fetchall():
        columns = connection.execute("SELECT name, pk FROM pragma_table_info(?) ORDER BY cid", (name,)).fetchall()
        key = [column for _, column in sorted((pk, column) for column, pk in columns if pk)]
        yield name, (key, [column for column, _ in columns])
