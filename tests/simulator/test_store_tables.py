"""Tables of the simulator's and the service's files: column order that SQLite's integrity check requires."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from waypost.simulator.storage.store import Store
from waypost.simulator.storage.tables import SCHEMA
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


def _keys_and_columns(connection: sqlite3.Connection) -> Iterator[tuple[str, tuple[list[str], list[str]]]]:
    tables = connection.execute("SELECT name FROM pragma_table_list WHERE wr=1 AND schema='main'")
    for (name,) in tables.fetchall():
        columns = connection.execute("SELECT name, pk FROM pragma_table_info(?) ORDER BY cid", (name,)).fetchall()
        key = [column for _, column in sorted((pk, column) for column, pk in columns if pk)]
        yield name, (key, [column for column, _ in columns])
