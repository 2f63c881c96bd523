"""The fixtures that journeys share."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.between import Between
from tests.support.callback_sink import CallbackSink
from tests.support.street import Street
from waypost.base.clock import SystemClock
from waypost.base.logs import set_up_logs

MakeStreet = Callable[..., Awaitable[Street]]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, after the order was shuffled: whoever starts them last waits for them alone."""
    longest = ("test_idle.py", "test_kill.py", "test_doubts.py", "test_kill_operator.py")
    items.sort(key=lambda item: longest.index(item.path.name) if item.path.name in longest else 9)


@pytest.fixture(autouse=True, scope="session")
def logs() -> Iterator[None]:
    """Logs as a process sets them up. Unset, a defect is printed with every local variable, which takes seconds."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        set_up_logs(SystemClock(), as_json=True, level="error", to=nowhere)
        yield


@pytest.fixture
async def sink() -> AsyncIterator[CallbackSink]:
    """A partner's receiver of callbacks."""
    sink = CallbackSink()
    await sink.open()
    yield sink
    await sink.close()


@pytest.fixture
async def make_street(tmp_path: Path, sink: CallbackSink) -> AsyncIterator[MakeStreet]:
    """Opens a street with settings of the test's own; it is closed at the end."""
    async with AsyncExitStack() as at_end:
        http = await at_end.enter_async_context(aiohttp.ClientSession())

        async def make(**more: Any) -> Street:
            street = Street(tmp_path, sink, http, **more)
            await street.open()
            at_end.push_async_callback(street.close)
            return street

        yield make


@pytest.fixture
async def street(make_street: MakeStreet) -> Street:
    """Both ends of the street, in real time, everything as soon as it can be."""
    return await make_street()


@pytest.fixture
async def cut_street(make_street: MakeStreet) -> Street:
    """The same with a line between service and operator that the test can cut."""
    return await make_street(between=Between())
