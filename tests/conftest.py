"""The fixtures that journeys share."""

import gc
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
from hypothesis import HealthCheck, settings

from tests.support.callback_sink import CallbackSink
from tests.support.memory_folder import folder_in_memory
from tests.support.operator_proxy import Between
from tests.support.pipeline import PipelineHarness
from tests.support.stores import Databases, Place, PostgresPlace, SqlitePlace, databases_of_a_server, empty_file
from waypost.base.clock import SystemClock
from waypost.base.telemetry.logs import set_up_logs

MakePipeline = Callable[..., Awaitable[PipelineHarness]]

settings.register_profile("calm", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("calm")  # how long an example takes says how busy the machine is


LONGEST: Final = (
    "test_kill.py", "test_stop.py", "test_kill_operator.py", "test_doubts.py", "test_media_kill.py",
    "test_idle.py", "test_street_model.py", "test_connect_the_cloud_api.py",
    "test_use_the_simulator_alone.py", "test_storage_pages.py", "test_example.py", "test_fleets.py",
    "test_accessibility.py", "test_hidden_text.py", "test_all_pages.py", "test_journey.py", "test_busy.py", "test_security.py",
)  # fmt: skip
"""Files whose tests take seconds each: begun first, so that no worker waits for another one's last."""


if in_memory := folder_in_memory():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(in_memory))  # where pytest makes its folders


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is made while tests are found lives as long as the run: looking through it took 3 s of each worker."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, after the order was shuffled."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.fixture(autouse=True, scope="session")
def logs() -> Iterator[Callable[[], None]]:
    """Logs as a process sets them up. Unset, a defect is printed with every local variable, which takes seconds.

    Gives what sets them up so again, for a test that has had them otherwise.
    """
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:

        def quiet() -> None:
            set_up_logs(SystemClock(), as_json=True, level="error", stream=nowhere)

        quiet()
        yield quiet


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    """Databases of a PostgreSQL server, which is started for the first test that asks."""
    with databases_of_a_server() as databases:
        yield databases


@pytest.fixture(scope="session")
def new_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of SQLite with the schema and nothing else, to be copied: making one takes five times as long."""
    return empty_file(tmp_path_factory.mktemp("new"))


@pytest.fixture
def engine() -> str:
    """Which engine a test's store is on; `store`, `queue` and `pipeline` run on each."""
    return "sqlite"


@pytest.fixture
def place(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    """Where the store of a test is."""
    if engine == "sqlite":
        new_file: Path = request.getfixturevalue("new_file")
        shutil.copyfile(new_file, tmp_path / new_file.name)
        yield SqlitePlace(tmp_path)
        return
    databases: Databases = request.getfixturevalue("databases")
    url = databases.take()
    yield PostgresPlace(url)
    databases.give_back(url)


@pytest.fixture
async def sink() -> AsyncIterator[CallbackSink]:
    """A partner's receiver of callbacks."""
    sink = CallbackSink()
    await sink.open()
    yield sink
    await sink.close()


@pytest.fixture
async def make_pipeline(tmp_path: Path, place: Place, sink: CallbackSink) -> AsyncIterator[MakePipeline]:
    """Opens a pipeline with settings of the test's own; it is closed at the end."""
    async with AsyncExitStack() as at_end:
        http = await at_end.enter_async_context(aiohttp.ClientSession())

        async def make(**more: Any) -> PipelineHarness:
            pipeline = PipelineHarness(tmp_path, sink, http, place=place, **more)
            await pipeline.open()
            at_end.push_async_callback(pipeline.close)
            return pipeline

        yield make


@pytest.fixture
async def pipeline(make_pipeline: MakePipeline) -> PipelineHarness:
    """Both ends of the pipeline, in real time, everything as soon as it can be."""
    return await make_pipeline()


@pytest.fixture
async def cut_pipeline(make_pipeline: MakePipeline) -> PipelineHarness:
    """The same with a line between service and operator that the test can cut."""
    return await make_pipeline(between=Between())
