"""Clusters whose service consists of several processes on one PostgreSQL."""

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from crashes.cluster import ClusterUnderTest
from crashes.layout import ClusterLayout
from tests.support.store_locations import Databases

LEASE_S = 2


@pytest.fixture
def database_url(databases: Databases) -> Iterator[str]:
    """Yield the URL of an empty database, which is dropped at the end even if clients are connected."""
    url = databases.take_empty()
    yield url
    databases.drop(url)


@pytest.fixture
def services() -> int:
    """Return the number of services of the cluster."""
    return 1


@pytest_asyncio.fixture
async def cluster(tmp_path: Path, database_url: str, services: int) -> AsyncIterator[ClusterUnderTest]:
    """Yield services of two workers each, the simulator and a receiver."""
    layout = ClusterLayout(
        settings={"WAYPOST_LEASE_S": str(LEASE_S), "WAYPOST_LOG_FORMAT": "json"},
        database_url=database_url,
        reader_url=database_url.replace("postgresql://", "postgresql+psycopg://"),
        services=services,
        workers=2,
    )
    opened = ClusterUnderTest(tmp_path, layout)
    try:
        await opened.open()
        yield opened
    finally:
        await opened.close()
        for child in opened.children:  # shown by pytest if the test failed
            sys.stdout.write(child.last_lines() + "\n")
