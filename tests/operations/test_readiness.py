"""`/readyz`: each check fails for its own reason, and says which."""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select, update

from tests.support.pipeline import Answer, PipelineHarness
from tests.support.stores import ENGINES
from tests.support.waiting import HANGS_AFTER_S, patiently
from waypost.base.clock import ManualClock
from waypost.operations import readiness
from waypost.operations.readiness import READINESS_CHECKS, CheckedServices, Readiness
from waypost.queue.job import Job
from waypost.queue.queue import JobQueue
from waypost.queue.worker import PreparedJobs, StageWorker
from waypost.store.database import Database
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.queue.jobs import NewJob, QueueName, complete_jobs, enqueue_jobs, read_subject
from waypost.store.tables import store_facts


def wrong_in(answer: Answer) -> dict[str, str]:
    """The checks that fail."""
    return {name: why for name, why in answer.body["checks"].items() if why != "ok"}


async def ask_until(pipeline: PipelineHarness, check: str) -> Answer:
    """Ask until a check fails: what the store said is given again for a second."""
    async with asyncio.timeout(HANGS_AFTER_S):
        while True:
            answer = await pipeline.ask("GET", "/readyz")
            if check in wrong_in(answer):
                return answer
            await asyncio.sleep(0.05)


async def test_service_that_works_passes_every_check_and_leaves_no_trace_of_being_asked(
    pipeline: PipelineHarness,
) -> None:
    answer = await pipeline.ask("GET", "/readyz")

    assert answer.status == 200
    assert answer.body == {"status": "ready", "checks": dict.fromkeys(READINESS_CHECKS, "ok")}
    names = await pipeline.waypost.database.read(_facts)
    assert [name for name in names if name.startswith("probe")] == []


@pytest.mark.parametrize("engine", ENGINES)
async def test_store_that_is_away_is_not_ready_and_comes_back(
    make_pipeline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "CHECKS_CACHE_S", 0)
    pipeline: PipelineHarness = await make_pipeline()
    async with pipeline.store_away():
        away = await ask_until(pipeline, "store_writes")

    async def is_ready() -> bool:
        return (await pipeline.ask("GET", "/readyz")).status == 200

    assert away.status == 503
    assert await patiently(is_ready)


async def test_service_that_stops_is_not_ready_while_it_still_answers(pipeline: PipelineHarness) -> None:
    await pipeline.ask("GET", "/readyz")
    await pipeline.waypost.drain()

    answer = await pipeline.ask("GET", "/readyz")

    assert answer.status == 503
    assert answer.body["status"] == "not ready"
    assert answer.body["checks"]["stopping"] == "the service is stopping"
    assert "is no longer worked" in answer.body["checks"]["queues"]
    assert (await pipeline.ask("GET", "/healthz")).status == 200


async def test_store_that_cannot_be_written_is_told_from_one_that_cannot_be_read(pipeline: PipelineHarness) -> None:
    await pipeline.waypost.database.write(_refuse_writes)

    answer = await ask_until(pipeline, "store_writes")

    assert answer.status == 503
    assert wrong_in(answer)["store_writes"].startswith("the store did not write: ")
    assert "store_reads" not in wrong_in(answer)


async def test_store_that_does_not_answer_in_time_is_not_waited_for(
    pipeline: PipelineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "STORE_CHECK_TIMEOUT_S", 0.1)
    go_on = threading.Event()
    held = asyncio.create_task(pipeline.waypost.database.write(_hold, go_on))

    answer = await ask_until(pipeline, "store_writes")

    go_on.set()
    await held
    assert answer.status == 503
    assert wrong_in(answer)["store_writes"].startswith("the store did not write within")


async def test_schema_older_than_this_version_needs_is_not_ready(pipeline: PipelineHarness) -> None:
    await pipeline.waypost.database.write(_grow_old)

    answer = await ask_until(pipeline, "store_reads")

    assert "revision 1, and this version needs" in wrong_in(answer)["store_reads"]


async def test_disk_with_too_little_room_is_not_ready(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(changes={"least_free_mb": 10**9})

    answer = await pipeline.ask("GET", "/readyz")

    assert answer.status == 503
    assert wrong_in(answer).keys() == {"disk"}
    assert "MB are free" in wrong_in(answer)["disk"]


async def test_reasons_name_no_path(make_pipeline: Any, tmp_path: Path) -> None:
    pipeline: PipelineHarness = await make_pipeline(changes={"least_free_mb": 10**9})
    await pipeline.waypost.database.write(_refuse_writes)

    answer = await ask_until(pipeline, "store_writes")

    assert str(tmp_path).encode() not in answer.raw


async def test_lane_that_hangs_in_its_preparation_is_found_and_one_that_waits_is_not(tmp_path: Path) -> None:
    bench = await open_bench(tmp_path)
    hangs = asyncio.Event()

    async def never(_entries: Any) -> PreparedJobs:
        hangs.set()
        await asyncio.Event().wait()
        return []

    stuck, idle = (
        StageWorker(bench.journal, QueueName.MEDIA, never),
        StageWorker(bench.journal, QueueName.UNCONFIRMED, never),
    )
    tasks = {stage: asyncio.create_task(stage.run()) for stage in (stuck, idle)}
    await bench.append("key")
    await hangs.wait()

    said = await readiness_of(bench, tmp_path, tasks).reasons()

    assert said["queues"] == "the queue media has been in one step for 0 s"
    await end(bench, tasks)


async def test_lane_whose_places_are_all_taken_is_stuck_only_when_none_becomes_free(tmp_path: Path) -> None:
    bench = await open_bench(tmp_path)
    begun: list[Job] = []
    full = asyncio.Event()
    go_on = asyncio.Event()

    async def works(entries: Any) -> PreparedJobs:
        async def work(entry: Job) -> None:
            begun.append(entry)
            if len(begun) == bench.journal.plans[QueueName.MEDIA].in_flight:
                full.set()
            if entry.ordering_key != "first":
                await go_on.wait()
            await bench.journal.complete(entry, _settle, entry.position)

        return [(entry, lambda entry=entry: work(entry)) for entry in entries]

    stage = StageWorker(bench.journal, QueueName.MEDIA, works)
    for group in "abc":
        await bench.append(*(f"{group}{at}" for at in range(16)), group=group)
    tasks = {stage: asyncio.create_task(stage.run())}
    await full.wait()
    asked = readiness_of(bench, tmp_path, tasks)

    said = await asked.reasons()

    assert "the queue media has been in one step" in said["queues"]
    go_on.set()
    await end(bench, tasks)


@dataclass
class Bench:
    """A journal that is a process's alone."""

    database: Database
    journal: JobQueue

    async def append(self, *keys: str, group: str = "g") -> None:
        """One entry of the media queue for each key."""
        new = [NewJob(QueueName.MEDIA, group, key, read_subject(QueueName.MEDIA, key), 0) for key in keys]
        await self.database.write(enqueue_jobs, new)


async def open_bench(folder: Path) -> Bench:
    database = Database(SqliteEngine(folder / "waypost.db"))
    await database.open()
    journal = JobQueue(database, ManualClock(), holder="only")
    await journal.open()
    return Bench(database, journal)


def readiness_of(bench: Bench, folder: Path, tasks: dict[StageWorker, asyncio.Task[None]]) -> Readiness:
    """Checks of a process that runs these stages, in which nothing may take any time."""
    return Readiness(
        CheckedServices(
            database=bench.database,
            queue=bench.journal,
            name="only",
            folder=folder,
            least_free_mb=0,
            stuck_s=0,
            stages={stage.queue_name.name.lower(): (stage, task) for stage, task in tasks.items()},
        )
    )


async def end(bench: Bench, tasks: dict[StageWorker, asyncio.Task[None]]) -> None:
    for stage, task in tasks.items():
        await stage.stop(timeout_s=0)
        task.cancel()
    await asyncio.gather(*tasks.values(), return_exceptions=True)
    await bench.journal.close()
    await bench.database.close()


def _settle(connection: Connection, positions: Sequence[int]) -> list[None]:
    complete_jobs(connection, positions)
    return [None] * len(positions)


def _facts(connection: Connection) -> list[str]:
    return list(connection.execute(select(store_facts.c.name)).scalars())


def _refuse_writes(connection: Connection) -> None:
    connection.exec_driver_sql("PRAGMA query_only=1")


def _hold(_connection: Connection, go_on: threading.Event) -> None:
    go_on.wait(10)


def _grow_old(connection: Connection) -> None:
    revision = store_facts.c.name == "revision"
    connection.execute(update(store_facts).where(revision).values(value="1"))
