"""A store of its own for each test, on each engine."""

from collections.abc import AsyncIterator

import pytest

from tests.support.stores import ENGINES, Place
from waypost.store.database import Database


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Each test runs once on each."""
    return request.param


@pytest.fixture
async def database(place: Place) -> AsyncIterator[Database]:
    """The store, open."""
    database = Database(place.engine())
    await database.open()
    yield database
    await database.close()
