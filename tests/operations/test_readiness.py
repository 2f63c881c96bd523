"""`/readyz`: each check fails for its own reason, and names it."""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select, update

from tests.support.manual_clock import ManualClock
from tests.support.pipeline import HttpResponse, PipelineHarness
from tests.support.polling import HANGS_AFTER_S, poll_until
from tests.support.store_locations import ENGINES
from waypost.operations import readiness
from waypost.operations.readiness import READINESS_CHECKS, CheckedServices, Readiness
from waypost.queue.job import Job
from waypost.queue.queue import JobQueue
from waypost.queue.worker import PreparedJobs, StageWorker
from waypost.store.database import Database
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.jobs import NewJob, complete_jobs, enqueue_jobs, read_subject
from waypost.store.tables import store_properties


def failing_checks(response: HttpResponse) -> dict[str, str]:
    """Return the failing checks with their reasons."""
    return {name: why for name, why in response.body["checks"].items() if why != "ok"}


async def wait_for_failing_check(pipeline: PipelineHarness, check: str) -> HttpResponse:
    """Read `/readyz` until a check fails: results of the store are cached for a second."""
    async with asyncio.timeout(HANGS_AFTER_S):
        while True:
            response = await pipeline.send_request("GET", "/readyz")
            if check in failing_checks(response):
                return response
            await asyncio.sleep(0.05)


async def test_running_service_passes_every_check_and_stores_no_probe(pipeline: PipelineHarness) -> None:
    response = await pipeline.send_request("GET", "/readyz")

    assert response.status == 200
    assert response.body == {"status": "ready", "checks": dict.fromkeys(READINESS_CHECKS, "ok")}
    names = await pipeline.waypost.database.read(_read_store_facts)
    assert [name for name in names if name.startswith("probe")] == []


@pytest.mark.parametrize("engine", ENGINES)
async def test_unreachable_store_is_not_ready_until_it_is_reachable_again(
    make_pipeline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "CHECKS_CACHE_S", 0)
    pipeline: PipelineHarness = await make_pipeline()
    async with pipeline.unavailable_store():
        failed = await wait_for_failing_check(pipeline, "store_writes")

    async def is_ready() -> bool:
        return (await pipeline.send_request("GET", "/readyz")).status == 200

    assert failed.status == 503
    assert await poll_until(is_ready)


async def test_stopping_service_is_not_ready_while_it_still_responds(pipeline: PipelineHarness) -> None:
    await pipeline.send_request("GET", "/readyz")
    await pipeline.waypost.drain()

    response = await pipeline.send_request("GET", "/readyz")

    assert response.status == 503
    assert response.body["status"] == "not ready"
    assert response.body["checks"]["stopping"] == "the service is stopping"
    assert "is no longer worked" in response.body["checks"]["queues"]
    assert (await pipeline.send_request("GET", "/healthz")).status == 200


async def test_store_that_cannot_be_written_fails_only_the_write_check(pipeline: PipelineHarness) -> None:
    await pipeline.waypost.database.write(_make_read_only)

    response = await wait_for_failing_check(pipeline, "store_writes")

    assert response.status == 503
    assert failing_checks(response)["store_writes"].startswith("the store did not write: ")
    assert "store_reads" not in failing_checks(response)


async def test_store_that_does_not_respond_in_time_is_not_ready(
    pipeline: PipelineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "STORE_CHECK_TIMEOUT_S", 0.1)
    proceed = threading.Event()
    blocked = asyncio.ensure_future(pipeline.waypost.database.write(_block_writer, proceed))

    response = await wait_for_failing_check(pipeline, "store_writes")

    proceed.set()
    await blocked
    assert response.status == 503
    assert failing_checks(response)["store_writes"].startswith("the store did not write within")


async def test_schema_of_an_older_revision_is_not_ready(pipeline: PipelineHarness) -> None:
    await pipeline.waypost.database.write(_set_old_revision)

    response = await wait_for_failing_check(pipeline, "store_reads")

    assert "revision 1, and this version needs" in failing_checks(response)["store_reads"]


async def test_disk_with_too_little_space_is_not_ready(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(changes={"least_free_mb": 10**9})

    response = await pipeline.send_request("GET", "/readyz")

    assert response.status == 503
    assert failing_checks(response).keys() == {"disk"}
    assert "MB are free" in failing_checks(response)["disk"]


async def test_reasons_contain_no_path(make_pipeline: Any, tmp_path: Path) -> None:
    pipeline: PipelineHarness = await make_pipeline(changes={"least_free_mb": 10**9})
    await pipeline.waypost.database.write(_make_read_only)

    response = await wait_for_failing_check(pipeline, "store_writes")

    assert str(tmp_path).encode() not in response.raw


async def test_queue_that_hangs_in_its_preparation_is_stuck_and_an_idle_queue_is_not(tmp_path: Path) -> None:
    harness = await open_queue_harness(tmp_path)
    hangs = asyncio.Event()

    async def hang(_jobs: Any) -> PreparedJobs:
        hangs.set()
        await asyncio.Event().wait()
        return []

    stuck, idle = (
        StageWorker(harness.queue, QueueName.MEDIA, hang),
        StageWorker(harness.queue, QueueName.UNCONFIRMED, hang),
    )
    tasks = {stage: asyncio.create_task(stage.run()) for stage in (stuck, idle)}
    await harness.enqueue("key")
    await hangs.wait()

    reasons = await make_readiness(harness, tmp_path, tasks).reasons()

    assert reasons["queues"] == "the queue media has been in one step for 0 s"
    await stop_all(harness, tasks)


async def test_queue_with_all_slots_in_use_is_stuck_only_if_none_becomes_free(tmp_path: Path) -> None:
    harness = await open_queue_harness(tmp_path)
    begun: list[Job] = []
    full = asyncio.Event()
    proceed = asyncio.Event()

    async def prepare(jobs: Any) -> PreparedJobs:
        async def work(job: Job) -> None:
            begun.append(job)
            if len(begun) == harness.queue.plans[QueueName.MEDIA].in_flight:
                full.set()
            if job.ordering_key != "first":
                await proceed.wait()
            await harness.queue.complete(job, _complete, job.position)

        return [(job, lambda job=job: work(job)) for job in jobs]

    stage = StageWorker(harness.queue, QueueName.MEDIA, prepare)
    for group in "abc":
        await harness.enqueue(*(f"{group}{at}" for at in range(16)), group=group)
    tasks = {stage: asyncio.create_task(stage.run())}
    await full.wait()
    readiness_checks = make_readiness(harness, tmp_path, tasks)

    reasons = await readiness_checks.reasons()

    assert "the queue media has been in one step" in reasons["queues"]
    proceed.set()
    await stop_all(harness, tasks)


@dataclass
class QueueHarness:
    """A queue that only this process works."""

    database: Database
    queue: JobQueue

    async def enqueue(self, *keys: str, group: str = "g") -> None:
        """Enqueue one job of the media queue for each key."""
        new = [NewJob(QueueName.MEDIA, group, key, read_subject(QueueName.MEDIA, key), 0) for key in keys]
        await self.database.write(enqueue_jobs, new)


async def open_queue_harness(folder: Path) -> QueueHarness:
    database = Database(SqliteEngine(folder / "waypost.db"))
    await database.open()
    queue = JobQueue(database, ManualClock(), holder="only")
    await queue.open()
    return QueueHarness(database, queue)


def make_readiness(harness: QueueHarness, folder: Path, tasks: dict[StageWorker, asyncio.Task[None]]) -> Readiness:
    """Return the checks of a process with these stages, where any step counts as stuck."""
    return Readiness(
        CheckedServices(
            database=harness.database,
            queue=harness.queue,
            name="only",
            folder=folder,
            least_free_mb=0,
            stuck_s=0,
            stages={stage.queue_name.name.lower(): (stage, task) for stage, task in tasks.items()},
        )
    )


async def stop_all(harness: QueueHarness, tasks: dict[StageWorker, asyncio.Task[None]]) -> None:
    for stage, task in tasks.items():
        await stage.stop(timeout_s=0)
        task.cancel()
    await asyncio.gather(*tasks.values(), return_exceptions=True)
    await harness.queue.close()
    await harness.database.close()


def _complete(connection: Connection, positions: Sequence[int]) -> list[None]:
    complete_jobs(connection, positions)
    return [None] * len(positions)


def _read_store_facts(connection: Connection) -> list[str]:
    return list(connection.execute(select(store_properties.c.name)).scalars())


def _make_read_only(connection: Connection) -> None:
    connection.exec_driver_sql("PRAGMA query_only=1")


def _block_writer(_connection: Connection, proceed: threading.Event) -> None:
    proceed.wait(10)


def _set_old_revision(connection: Connection) -> None:
    revision = store_properties.c.name == "revision"
    connection.execute(update(store_properties).where(revision).values(value="1"))
