"""Clusters for crash tests: opened before, closed after, with their logs shown when a test fails."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from crashes.cluster import ClusterUnderTest
from crashes.layout import ClusterLayout


@pytest.fixture
def service_settings() -> dict[str, str]:
    """Return additional settings of the service; a module may override them."""
    return {}


@pytest_asyncio.fixture
async def cluster(tmp_path: Path, service_settings: dict[str, str]) -> AsyncIterator[ClusterUnderTest]:
    """Yield the service, the simulator and a receiver, each a process, ready for submissions."""
    opened = ClusterUnderTest(tmp_path, ClusterLayout(settings=service_settings))
    try:
        await opened.open()
        yield opened
    finally:
        await opened.close()
        for child in opened.children:  # shown by pytest if the test failed
            sys.stdout.write(child.last_lines() + "\n")
