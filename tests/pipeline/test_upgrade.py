"""A pipeline goes on over an upgrade: of its own store at a start, and of a store that others work on."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import aiohttp
import sqlalchemy as sa
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from tests.conftest import MakePipeline
from tests.support.builders import INSTANCE_KEY
from tests.support.callback_sink import CallbackSink
from tests.support.first_store import LAST_MS, WAITING, make_first_store
from tests.support.pipeline import PipelineHarness
from tests.support.waiting import patiently
from waypost.assembly.service import Waypost
from waypost.base.clock import VirtualClock
from waypost.base.ids import RandomIds
from waypost.config import Settings
from waypost.store.migrations import upgrade_store
from waypost.store.revision import read_schema_status
from waypost.store.tables import REVISION

PHONES: Final = [f"1555500{number:04}" for number in range(40)]
"""Each is sent far fewer than the 45 that one may be sent at once: the forty-sixth waits six seconds."""
NEXT: Final = Path(__file__).parents[1] / "support" / "next_step"


async def test_what_waited_in_a_store_of_the_first_revision_is_sent_and_told_in_order(
    tmp_path: Path, sink: CallbackSink
) -> None:
    make_first_store(tmp_path / "waypost.db", receiver=sink.url)
    clock = VirtualClock()
    clock.set(at_ms=LAST_MS)
    async with aiohttp.ClientSession() as http:
        pipeline = PipelineHarness(tmp_path, sink, http, clock=clock)
        await pipeline.open_on_filled()
        try:
            told = [await pipeline.events_of(one, until="failed") for one in WAITING]
            standing = await pipeline.waypost.database.read(read_schema_status)
        finally:
            await pipeline.close()

    # The operator of today does not know that Ann had written: it takes them, and fails them later.
    assert [[event["type"] for event in events] for events in told] == [["enqueued", "failed"]] * 2
    assert [event["payload"]["code"] for events in told for event in events[1:]] == [131047] * 2
    assert standing is not None
    assert standing.revision == REVISION
    assert [one.sequence for one in sink.taken] == sorted(one.sequence for one in sink.taken)
    assert min(one.sequence for one in sink.taken) > 1  # they go on where the old version stopped


async def test_running_pipeline_goes_on_while_its_store_is_upgraded_and_others_start_on_it(
    make_pipeline: MakePipeline, engine: str
) -> None:
    if engine == "sqlite":
        return  # one process has it, and upgrades it before anything runs
    pipeline = await make_pipeline(changes={"per_second": 1000}, simulator_changes={"limits": False})
    assert pipeline.place is not None
    template_id = await pipeline.approved_template()
    url = pipeline.place.settings["database_url"]
    sent: list[str] = []
    enough = asyncio.Event()

    async def load() -> None:
        while not enough.is_set():
            sent.append(await pipeline.send(template_id, to=PHONES[len(sent) % len(PHONES)]))

    loading = [asyncio.create_task(load()) for _ in range(4)]
    await patiently(lambda: _count(sent))
    upgraded = await asyncio.to_thread(_take_next_step, url)
    before_second = len(sent)
    second = await _second_process(pipeline)
    await patiently(lambda: _count(sent), lambda count: count > before_second + 20)
    enough.set()
    await asyncio.gather(*loading)

    for message_id in sent:
        await pipeline.events_of(message_id, until="delivered")
    await second.drain()
    await second.close()
    assert upgraded == REVISION + 1
    assert before_second
    for message_id in sent[:3]:
        assert len(await pipeline.deliveries(message_id)) == 1


async def _second_process(pipeline: PipelineHarness) -> Waypost:
    """Another process of the same version: the store is newer than it is, and says that it fits."""
    assert pipeline.place is not None
    chosen: dict[str, Any] = {
        "data": pipeline.folder / "second",
        "secret_key": INSTANCE_KEY,
        "allowed_networks": ("127.0.0.0/8",),
        **pipeline.place.settings,
    }
    second = Waypost(Settings(**chosen), pipeline.clock, RandomIds(pipeline.clock))
    await second.open()
    second.start()
    return second


def _take_next_step(url: str) -> int:
    """What a process of the next version does at its start; as long as it takes to be let in."""
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1), poolclass=sa.NullPool)
    while True:
        try:
            with engine.begin() as connection:
                connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('waypost revision'))"))
                return upgrade_store(connection, REVISION, extra_folders=[NEXT])
        except OperationalError as error:
            if "lock timeout" not in str(error) and "deadlock" not in str(error):
                raise


async def _count(sent: Sequence[str]) -> int:
    return len(sent)
