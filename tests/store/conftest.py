"""A store on a file of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from waypost.store.database import Database
from waypost.store.engines.sqlite import SqliteEngine


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
