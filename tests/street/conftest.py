"""What journeys share besides the street itself."""

from collections.abc import AsyncIterator

import pytest

from tests.support.file_server import FileServer
from tests.support.stores import ENGINES
from tests.support.street import Street
from tests.support.third_version import ThirdVersion, listening


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Each journey is made once on each."""
    return request.param


@pytest.fixture
async def files() -> AsyncIterator[FileServer]:
    """A web server with samples of media."""
    files = FileServer()
    await files.open()
    yield files
    await files.close()


@pytest.fixture
async def third(street: Street) -> AsyncIterator[ThirdVersion]:
    """The partner's second receiver, which hears everything of the street in version 3."""
    async with listening(street) as third:
        yield third
