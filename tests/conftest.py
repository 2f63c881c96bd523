"""Fixtures that several areas share."""

import gc
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

import tests.support.examples  # noqa: F401  # pyright: ignore[reportUnusedImport]  its profile is for all tests
from tests.support.callback_sink import CallbackSink
from tests.support.declared_responses import checked_responses
from tests.support.memory_folder import folder_in_memory
from tests.support.operator_proxy import OperatorProxy
from tests.support.pipeline import PipelineHarness
from tests.support.shared_work import shared_work
from tests.support.store_locations import (
    Databases,
    PostgresLocation,
    SqliteLocation,
    StoreLocation,
    databases_of_a_server,
    empty_file,
)
from waypost.base.clock import SystemClock
from waypost.base.telemetry.logs import set_up_logs

MakePipeline = Callable[..., Awaitable[PipelineHarness]]
HAS_FAILED: Final = pytest.StashKey[bool]()


LONGEST: Final = (
    "test_kill.py", "test_stop.py", "test_kill_operator.py", "test_uncertainty_timeout.py", "test_media_kill.py",
    "test_idle_connections.py", "test_pipeline_model.py", "test_connect_the_cloud_api.py",
    "test_use_the_simulator_alone.py", "test_storage_pages.py", "test_example.py", "test_fleets.py",
    "test_accessibility.py", "test_hidden_text.py", "test_all_pages.py", "test_journey.py", "test_busy.py", "test_security.py",
    "test_pages_in_order.py", "test_readme.py", "test_set_up_from_a_file.py", "test_rejected_requests.py",
    "test_seeds.py",
)  # fmt: skip
"""Files whose tests take seconds each: they start first, so that no worker waits long for the last one."""


if in_memory := folder_in_memory():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(in_memory))  # parent of the folders that pytest creates


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude the objects of the collection from garbage collection; scanning them took 3 s in each worker."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the longest files to the front, after the order was shuffled."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.fixture(autouse=True, scope="session")
def logs() -> Iterator[Callable[[], None]]:
    """Set logs up as a process does; otherwise a defect is printed with every local variable, which takes seconds.

    Yields a function that sets them up again, for a test that has changed them.
    """
    with Path(os.devnull).open("w", encoding="utf-8") as devnull:

        def quiet() -> None:
            set_up_logs(SystemClock(), as_json=True, level="error", stream=devnull)

        quiet()
        yield quiet


@pytest.fixture(autouse=True, scope="session")
def work_is_shared() -> Iterator[None]:
    """Do once what every service would do again when it starts."""
    with shared_work():
        yield


@pytest.fixture(autouse=True, scope="session")
def wrong_responses() -> Iterator[list[str]]:
    """Responses of the admin API that are not what their operations declare."""
    with checked_responses() as found:
        yield found


@pytest.fixture(autouse=True)
def responses_are_declared(wrong_responses: list[str]) -> Iterator[None]:
    """Fail the test in which one was sent."""
    yield
    wrong, wrong_responses[:] = [*wrong_responses], []
    assert wrong == []


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    """A pool of databases on a PostgreSQL server, which starts for the first test that needs it."""
    with databases_of_a_server() as databases:
        yield databases


@pytest.fixture(scope="session")
def new_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with the schema and nothing else, to be copied: creating one takes five times as long."""
    return empty_file(tmp_path_factory.mktemp("new"))


@pytest.fixture
def engine() -> str:
    """The engine of a test's store; the folders `store`, `queue` and `pipeline` use every engine."""
    return "sqlite"


@pytest.fixture
def store_location(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[StoreLocation]:
    """The location of a test's store."""
    if engine == "sqlite":
        new_file: Path = request.getfixturevalue("new_file")
        shutil.copyfile(new_file, tmp_path / new_file.name)
        yield SqliteLocation(tmp_path)
        return
    databases: Databases = request.getfixturevalue("databases")
    url = databases.acquire()
    yield PostgresLocation(url)
    databases.release(url)


@pytest.fixture
async def sink() -> AsyncIterator[CallbackSink]:
    """A partner's receiver of callbacks."""
    sink = CallbackSink()
    await sink.open()
    yield sink
    await sink.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note on a test that it has failed, for the fixtures that then report more."""
    report = yield
    if report.when == "call":
        item.stash[HAS_FAILED] = report.failed
    return report


@pytest.fixture
async def make_pipeline(
    tmp_path: Path, store_location: StoreLocation, sink: CallbackSink, request: pytest.FixtureRequest
) -> AsyncIterator[MakePipeline]:
    """A function that opens a pipeline with a test's own settings; it is closed at the end.

    If the test fails, the conversation is printed: the messages, the phones and the callbacks.
    """
    pipelines: list[PipelineHarness] = []
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(aiohttp.ClientSession())

        async def make(**more: Any) -> PipelineHarness:
            pipeline = PipelineHarness(tmp_path, sink, http, store_location=store_location, **more)
            await pipeline.open()
            stack.push_async_callback(pipeline.close)
            pipelines.append(pipeline)
            return pipeline

        yield make
        if request.node.stash.get(HAS_FAILED, False):
            for pipeline in pipelines:
                print(await pipeline.conversation())  # noqa: T201  the report of the failure


@pytest.fixture
async def pipeline(make_pipeline: MakePipeline) -> PipelineHarness:
    """A pipeline in real time, without delays."""
    return await make_pipeline()


@pytest.fixture
async def proxied_pipeline(make_pipeline: MakePipeline) -> PipelineHarness:
    """A pipeline with a proxy between service and operator."""
    return await make_pipeline(operator_proxy=OperatorProxy())
