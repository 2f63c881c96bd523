"""A process with selected stages serves their endpoints and works their queues, and no others."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.support.polling import HANGS_AFTER_S
from waypost.assembly.serve import InvalidConfiguration, check_configuration
from waypost.assembly.service import Waypost
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.client.api_client import ApiClient, InProcessTransport
from waypost.config import STAGES, Settings, convert_settings
from waypost.store.contract import WrongStore
from waypost.store.media.files import NAME_FILE, check_folder, ensure_folder_name
from waypost.store.queue.job_subjects import JobState, JobSubject, QueueName, SubjectKind
from waypost.store.queue.jobs import NewJob, count_jobs_by_state, enqueue_jobs
from waypost.store.queue.leases import SHARD_COUNT

Start = Callable[..., Coroutine[None, None, Waypost]]
KEY = "0123456789abcdef" * 4
TOKEN = "the admin token of this test, long"

# fmt: off
STAGE_OF_PATH = {  # path: the stage that serves it; `` for an endpoint of every process
    "/wa/api/v1/msg":          "api",
    "/admin/queues":            "api",
    "/openapi.json":           "api",
    "/operator/webhook/cloud": "events",
    "/healthz":                "",
    "/readyz":                 "",
}
# fmt: on


@pytest.fixture
async def start(tmp_path: Path, database_url: str) -> AsyncIterator[Start]:
    """Return a function that starts processes on one store; stop them at the end."""
    running: list[Waypost] = []
    clock = SystemClock()

    async def start_process(*stages: str) -> Waypost:
        settings = Settings(data=tmp_path, database_url=database_url, stages=stages, secret_key=KEY, admin_token=TOKEN)
        waypost = Waypost(settings, clock, RandomIds(clock))
        await waypost.open()
        running.append(waypost)
        waypost.start()
        await waypost.queue.shards.renew_if_due()
        return waypost

    yield start_process
    for waypost in running:
        await waypost.drain(within_s=5)
        await waypost.close()


async def status(waypost: Waypost, path: str) -> int:
    """Return the response status of a GET."""
    reply = await InProcessTransport(waypost.application)("GET", path, {}, None)
    return reply.status


async def processes_finding(waypost: Waypost) -> dict[str, Any]:
    """Return the doctor's finding about the processes."""
    client = ApiClient(InProcessTransport(waypost.application), {"Authorization": f"Bearer {TOKEN}"})
    report = await client.json("GET", "/admin/doctor")
    [finding] = [entry for entry in report["results"] if entry["subject"] == "processes"]
    return finding


def fully_held_queues(waypost: Waypost) -> set[QueueName]:
    """Return the queues of which it holds every shard."""
    return {queue_name for queue_name, shards in waypost.queue.shards.held.items() if len(shards) == SHARD_COUNT}


@pytest.mark.parametrize("stage", STAGES)
async def test_process_serves_the_endpoints_of_its_stage_and_no_other(start: Start, stage: str) -> None:
    waypost = await start(stage)

    statuses = {path: await status(waypost, path) for path in STAGE_OF_PATH}

    closed = {path for path, status_code in statuses.items() if status_code == 404}
    assert closed == {path for path, owner in STAGE_OF_PATH.items() if owner not in ("", stage)}
    assert statuses["/readyz"] == 200


async def test_queues_are_worked_by_the_processes_that_run_their_stages(start: Start) -> None:
    api = await start("api")
    alone = await processes_finding(api)
    sender = await start("dispatch", "callbacks")
    without_events = await processes_finding(api)

    events = await start("events")

    assert (alone["state"], alone["fix_hint"]) == (
        "wrong",
        "start one with: waypost serve --stages callbacks,dispatch,events",
    )
    assert without_events["text"] == "no process runs events: their jobs wait"
    assert (await processes_finding(api))["state"] == "ok"
    assert fully_held_queues(api) == set()
    assert fully_held_queues(sender) == {QueueName.OUTBOUND, QueueName.UNCONFIRMED, QueueName.CALLBACKS}
    assert fully_held_queues(events) == {QueueName.WEBHOOKS, QueueName.MEDIA}


async def test_job_that_no_process_works_waits_and_is_worked_by_the_next_process(start: Start) -> None:
    api = await start("api")
    item = NewJob(QueueName.CALLBACKS, "replay 7", "nobody", JobSubject(SubjectKind.CALLBACK, "gone"), 0)
    await api.database.write(enqueue_jobs, [item])
    before = await api.database.read(count_jobs_by_state, QueueName.CALLBACKS)

    callbacks = await start("callbacks")
    async with asyncio.timeout(HANGS_AFTER_S):
        while not callbacks.queue.counts[QueueName.CALLBACKS].claimed:  # noqa: ASYNC110  there is no event to wait for
            await asyncio.sleep(0.01)

    assert before == {JobState.OPEN: 1}
    assert api.queue.counts[QueueName.CALLBACKS].claimed == 0


@pytest.mark.parametrize("options", [{"workers": 2}, {"stages": ("api",)}], ids=["workers", "stages"])
def test_sqlite_is_rejected_for_more_than_one_process(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration, match=r"an SQLite store supports one process.*WAYPOST_DATABASE_URL"):
        check_configuration(Settings(secret_key=KEY, **options))


@pytest.mark.parametrize(
    ("value", "reason"),
    [("", "no stage is given"), ("api,dance", "there is no stage 'dance'"), (",", "no stage is given")],
)
def test_unknown_or_empty_list_of_stages_is_rejected(value: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"{reason}; give one or more of api, dispatch, events, callbacks"):
        convert_settings({"stages": value})


async def test_another_media_folder_is_rejected_and_the_fix_hint_works(start: Start, tmp_path: Path) -> None:
    database = (await start("api")).database
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    await database.write(check_folder, here, ensure_folder_name(here, "a name"))
    await database.write(check_folder, here, ensure_folder_name(here, "another"))  # as the next process does

    with pytest.raises(WrongStore, match=r"write a name into .*elsewhere/\.waypost-media"):
        await database.write(check_folder, elsewhere, ensure_folder_name(elsewhere, "another"))

    (elsewhere / NAME_FILE).write_text("a name\n")
    await database.write(check_folder, elsewhere, ensure_folder_name(elsewhere, "a third"))
