"""Towns for crash tests: opened before, closed after, their logs shown when a test fails."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from crashes.plans import Plan
from crashes.town import Town


@pytest.fixture
def service_settings() -> dict[str, str]:
    """Settings of the service beside those that every town needs; a module may have its own."""
    return {}


@pytest_asyncio.fixture
async def town(tmp_path: Path, service_settings: dict[str, str]) -> AsyncIterator[Town]:
    """The service, the simulator and a receiver, each a process, ready for submissions."""
    opened = Town(tmp_path, Plan(settings=service_settings))
    try:
        await opened.open()
        yield opened
    finally:
        await opened.close()
        for child in opened.children:  # shown by pytest where the test failed
            sys.stdout.write(child.last_lines() + "\n")
