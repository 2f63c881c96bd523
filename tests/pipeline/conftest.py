"""What journeys share besides the pipeline itself."""

from collections.abc import AsyncIterator

import pytest

from tests.support.file_server import FileServer
from tests.support.pipeline import PipelineHarness
from tests.support.stores import ENGINES
from tests.support.version_3_receiver import ThirdVersion, listening


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each journey on both engines, but those that are marked `content_only` on SQLite alone."""
    if "engine" not in metafunc.fixturenames:
        return
    item = metafunc.definition
    is_one_enough = item.get_closest_marker("content_only") and not item.get_closest_marker("both_engines")
    metafunc.parametrize("engine", ENGINES[:1] if is_one_enough else ENGINES, indirect=True)


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    """Which engine this journey is made on."""
    return request.param


@pytest.fixture
async def files() -> AsyncIterator[FileServer]:
    """A web server with samples of media."""
    files = FileServer()
    await files.open()
    yield files
    await files.close()


@pytest.fixture
async def third(pipeline: PipelineHarness) -> AsyncIterator[ThirdVersion]:
    """The partner's second receiver, which hears everything of the pipeline in version 3."""
    async with listening(pipeline) as third:
        yield third
