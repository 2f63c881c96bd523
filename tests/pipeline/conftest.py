"""Fixtures that the tests of the pipeline share, besides the pipeline itself."""

from collections.abc import AsyncIterator

import pytest

from tests.support.file_server import FileServer
from tests.support.pipeline import PipelineHarness
from tests.support.store_locations import ENGINES
from tests.support.version_3_receiver import Version3Receiver, open_version_3_receiver


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test on both engines, but those that are marked `content_only` on SQLite alone."""
    if "engine" not in metafunc.fixturenames:
        return
    item = metafunc.definition
    needs_one_engine = item.get_closest_marker("content_only") and not item.get_closest_marker("both_engines")
    metafunc.parametrize("engine", ENGINES[:1] if needs_one_engine else ENGINES, indirect=True)


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    """Return the engine of this test."""
    return request.param


@pytest.fixture
async def files() -> AsyncIterator[FileServer]:
    """Start a web server with samples of media."""
    files = FileServer()
    await files.open()
    yield files
    await files.close()


@pytest.fixture
async def receiver_v3(pipeline: PipelineHarness) -> AsyncIterator[Version3Receiver]:
    """Start the partner's second receiver, which gets every callback in version 3."""
    async with open_version_3_receiver(pipeline) as receiver_v3:
        yield receiver_v3
