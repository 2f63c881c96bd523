"""A service that has something to tell, on each engine."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.callback_service import Teller
from tests.support.callback_sink import CallbackSink
from tests.support.stores import ENGINES, Place
from waypost.base.clock import ManualClock

MakeTeller = Callable[..., Awaitable[Teller]]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Each test runs once on each."""
    return request.param


@pytest.fixture
def clock() -> ManualClock:
    """Stands still until the test moves it."""
    return ManualClock()


@pytest.fixture
async def make_teller(tmp_path: Path, place: Place, clock: ManualClock) -> AsyncIterator[MakeTeller]:
    """Opens a service with settings of the test's own; it is closed at the end."""
    async with AsyncExitStack() as at_end:

        async def make(**changes: Any) -> Teller:
            teller = Teller(tmp_path, place, clock, changes)
            await teller.open()
            at_end.push_async_callback(lambda: teller.close())
            return teller

        yield make


@pytest.fixture
async def teller(make_teller: MakeTeller) -> Teller:
    """With the settings as they are."""
    return await make_teller()


@pytest.fixture
async def other() -> AsyncIterator[CallbackSink]:
    """The partner's second receiver."""
    sink = CallbackSink()
    await sink.open()
    yield sink
    await sink.close()
