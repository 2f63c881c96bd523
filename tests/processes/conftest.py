"""Towns whose service is many processes on one PostgreSQL."""

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from crashes.plans import Plan
from crashes.town import Town
from tests.support.stores import Databases

LEASE_S = 2


@pytest.fixture
def database_url(databases: Databases) -> Iterator[str]:
    """An empty database, dropped at the end whoever is still connected."""
    url = databases.take_bare()
    yield url
    databases.drop(url)


@pytest.fixture
def services() -> int:
    """How many services a town has."""
    return 1


@pytest_asyncio.fixture
async def town(tmp_path: Path, database_url: str, services: int) -> AsyncIterator[Town]:
    """Services of two workers each, the simulator and a receiver."""
    plan = Plan(
        settings={"WAYPOST_LEASE_S": str(LEASE_S)},
        database_url=database_url,
        stored_url=database_url.replace("postgresql://", "postgresql+psycopg://"),
        services=services,
        workers=2,
    )
    opened = Town(tmp_path, plan)
    try:
        await opened.open()
        yield opened
    finally:
        await opened.close()
        for child in opened.children:  # shown by pytest where the test failed
            sys.stdout.write(child.last_lines() + "\n")
