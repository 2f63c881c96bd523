"""A service with callbacks to send, on each engine."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.callback_service import CallbackService
from tests.support.callback_sink import CallbackSink
from tests.support.manual_clock import ManualClock, ServiceClock
from tests.support.store_locations import ENGINES, StoreLocation

MakeCallbackService = Callable[..., Awaitable[CallbackService]]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Run each test on every engine."""
    return request.param


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock that only the test advances."""
    return ServiceClock()


@pytest.fixture
async def make_service(
    tmp_path: Path, store_location: StoreLocation, clock: ManualClock
) -> AsyncIterator[MakeCallbackService]:
    """Open services with the test's own settings, and close them at the end."""
    async with AsyncExitStack() as stack:

        async def make(**changes: Any) -> CallbackService:
            service = CallbackService(tmp_path, store_location, clock, changes)
            await service.open()
            stack.push_async_callback(lambda: service.close())
            return service

        yield make


@pytest.fixture
async def service(make_service: MakeCallbackService) -> CallbackService:
    """Open a service with the default settings."""
    return await make_service()


@pytest.fixture
async def second_sink() -> AsyncIterator[CallbackSink]:
    """Open the partner's second receiver."""
    sink = CallbackSink()
    await sink.open()
    yield sink
    await sink.close()
