"""A separate store for each test, on each engine."""

from collections.abc import AsyncIterator

import pytest

from tests.support.store_locations import ENGINES, StoreLocation
from waypost.store.database import Database


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Run each test once on each engine."""
    return request.param


@pytest.fixture
async def database(store_location: StoreLocation) -> AsyncIterator[Database]:
    """The open store."""
    database = Database(store_location.engine())
    await database.open()
    yield database
    await database.close()
