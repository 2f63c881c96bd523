"""A process that is given some stages opens their doors and works their queues, and leaves the rest to others."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import HANGS_AFTER_S
from waypost.assembly.configuration_check import InvalidConfiguration, check_configuration
from waypost.assembly.service import Waypost
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.client.api_client import ApiClient, InProcessTransport
from waypost.config import STAGES, Settings
from waypost.store.contract import WrongStore
from waypost.store.media.folder import NAME_FILE, check_folder, ensure_folder_name
from waypost.store.queue.job_subjects import JobSubject, SubjectKind
from waypost.store.queue.jobs import JobState, NewJob, QueueName, count_jobs_by_state, enqueue_jobs
from waypost.store.queue.leases import SHARD_COUNT

Start = Callable[..., Coroutine[None, None, Waypost]]
KEY = "0123456789abcdef" * 4
TOKEN = "the admin token of this test, long"

# fmt: off
DOORS = {  # path: the stage that opens it; `` for a door of every process
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
    """Starts processes on one store; stops them at the end."""
    running: list[Waypost] = []
    clock = SystemClock()

    async def starts(*stages: str) -> Waypost:
        settings = Settings(data=tmp_path, database_url=database_url, stages=stages, secret_key=KEY, admin_token=TOKEN)
        waypost = Waypost(settings, clock, RandomIds(clock))
        await waypost.open()
        running.append(waypost)
        waypost.start()
        await waypost.queue.shards.renew_if_due()
        return waypost

    yield starts
    for waypost in running:
        await waypost.drain(within_s=5)
        await waypost.close()


async def status(waypost: Waypost, path: str) -> int:
    """How a look at a path is answered."""
    reply = await InProcessTransport(waypost.application)("GET", path, {}, None)
    return reply.status


async def lanes_finding(waypost: Waypost) -> dict[str, Any]:
    """What the doctor says of the processes."""
    door = ApiClient(InProcessTransport(waypost.application), {"Authorization": f"Bearer {TOKEN}"})
    told = await door.json("GET", "/admin/doctor")
    [finding] = [one for one in told["findings"] if one["about"] == "processes"]
    return finding


def held(waypost: Waypost) -> set[QueueName]:
    """The queues of which it holds every shard."""
    return {queue_name for queue_name, shards in waypost.queue.shards.held.items() if len(shards) == SHARD_COUNT}


@pytest.mark.parametrize("stage", STAGES)
async def test_process_opens_the_doors_of_its_stage_and_no_other(start: Start, stage: str) -> None:
    waypost = await start(stage)

    answers = {path: await status(waypost, path) for path in DOORS}

    closed = {path for path, answer in answers.items() if answer == 404}
    assert closed == {path for path, of in DOORS.items() if of not in ("", stage)}
    assert answers["/readyz"] == 200


async def test_lanes_are_worked_by_the_processes_that_are_given_them(start: Start) -> None:
    accepts = await start("api")
    alone = await lanes_finding(accepts)
    sends = await start("dispatch", "callbacks")
    without_events = await lanes_finding(accepts)

    hears = await start("events")

    assert (alone["state"], alone["remedy"]) == (
        "wrong",
        "start one with: waypost serve --stages callbacks,dispatch,events",
    )
    assert without_events["text"] == "no process runs events: their jobs wait"
    assert (await lanes_finding(accepts))["state"] == "ok"
    assert held(accepts) == set()
    assert held(sends) == {QueueName.OUTBOUND, QueueName.UNCONFIRMED, QueueName.CALLBACKS}
    assert held(hears) == {QueueName.WEBHOOKS, QueueName.MEDIA}


async def test_what_no_process_works_waits_and_is_worked_by_the_next(start: Start) -> None:
    accepts = await start("api")
    item = NewJob(QueueName.CALLBACKS, "subscription 7", "nobody", JobSubject(SubjectKind.CALLBACK, "gone"), 0)
    await accepts.database.write(enqueue_jobs, [item])
    before = await accepts.database.read(count_jobs_by_state, QueueName.CALLBACKS)

    works = await start("callbacks")
    async with asyncio.timeout(HANGS_AFTER_S):
        while not works.queue.counts[QueueName.CALLBACKS].claimed:  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.01)

    assert before == {JobState.OPEN: 1}
    assert accepts.queue.counts[QueueName.CALLBACKS].claimed == 0


@pytest.mark.parametrize("wish", [{"workers": 2}, {"stages": ("api",)}], ids=["workers", "stages"])
def test_sqlite_is_refused_to_more_than_one_process(wish: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration, match=r"an SQLite store supports one process.*WAYPOST_DATABASE_URL"):
        check_configuration(Settings(secret_key=KEY, **wish))


@pytest.mark.parametrize(
    ("given", "why"),
    [("", "no stage is given"), ("api,dance", "there is no stage 'dance'"), (",", "no stage is given")],
)
def test_unknown_or_empty_list_of_stages_is_refused(given: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"{why}; give one or more of api, dispatch, events, callbacks"):
        Settings(stages=given)  # pyright: ignore[reportArgumentType]


async def test_another_media_folder_is_refused_and_the_remedy_works(start: Start, tmp_path: Path) -> None:
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
