"""Upgrades of the store: at the start of a service, and while other processes work on it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
import sqlalchemy as sa
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from tests.conftest import MakePipeline
from tests.support.baseline_store import QUEUED_MESSAGE_IDS, STOPPED_ON_MS, create_baseline_store
from tests.support.builders import INSTANCE_KEY
from tests.support.callback_sink import CallbackSink
from tests.support.next_version import NEXT_STEP_FOLDER, become_next_version
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from waypost.assembly.service import Waypost
from waypost.base.clock import VirtualClock
from waypost.base.ids import RandomIds
from waypost.config import Settings
from waypost.store.revision import read_schema_status, upgrade_store
from waypost.store.tables import REVISION

PHONES: Final = [f"1555500{number:04}" for number in range(40)]
"""So many that each gets far fewer than the 45 messages that may be sent at once to one phone."""


async def test_messages_queued_in_a_store_of_an_older_revision_are_sent_and_called_back_in_order(
    tmp_path: Path, sink: CallbackSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_baseline_store(tmp_path / "waypost.db", receiver=sink.url)
    revision = become_next_version(monkeypatch)
    clock = VirtualClock()
    clock.set(at_ms=STOPPED_ON_MS)
    async with aiohttp.ClientSession() as http:
        pipeline = PipelineHarness(tmp_path, sink, http, clock=clock)
        await pipeline.open_existing()
        try:
            events_by_message = [
                await pipeline.events_of(waiting_id, until="failed") for waiting_id in QUEUED_MESSAGE_IDS
            ]
            schema_status = await pipeline.waypost.database.read(read_schema_status)
        finally:
            await pipeline.close()

    # The simulator of today does not know that Ann had written: it accepts the messages, and fails them later.
    assert [[event["type"] for event in events] for events in events_by_message] == [["enqueued", "failed"]] * 2
    assert [event["payload"]["code"] for events in events_by_message for event in events[1:]] == [131047] * 2
    assert schema_status is not None
    assert schema_status.revision == revision
    assert [attempt.sequence for attempt in sink.accepted] == sorted(attempt.sequence for attempt in sink.accepted)
    assert min(attempt.sequence for attempt in sink.accepted) > 1  # the numbers continue those of the old version


async def test_running_pipeline_continues_while_its_store_is_upgraded_and_others_start_on_it(
    make_pipeline: MakePipeline, engine: str
) -> None:
    if engine == "sqlite":
        return  # one process has the store, and upgrades it before anything runs
    pipeline = await make_pipeline(changes={"per_second": 1000}, simulator_changes={"limits": False})
    assert pipeline.store_location is not None
    template_id = await pipeline.approved_template()
    url = pipeline.store_location.settings["database_url"]
    sent: list[str] = []
    enough = asyncio.Event()

    async def load() -> None:
        while not enough.is_set():
            sent.append(await pipeline.send(template_id, to=PHONES[len(sent) % len(PHONES)]))

    loading = [asyncio.create_task(load()) for _ in range(4)]
    await poll_until(lambda: _count(sent))
    upgraded = await asyncio.to_thread(_apply_next_step, url)
    before_second = len(sent)
    second = await _second_process(pipeline)
    await poll_until(lambda: _count(sent), lambda count: count > before_second + 20)
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
    """Start another process of the same version; the newer store declares that it is compatible."""
    assert pipeline.store_location is not None
    values: dict[str, Any] = {
        "data": pipeline.folder / "second",
        "secret_key": INSTANCE_KEY,
        "allowed_networks": ("127.0.0.0/8",),
        **pipeline.store_location.settings,
    }
    second = Waypost(Settings(**values), pipeline.clock, RandomIds(pipeline.clock))
    await second.open()
    second.start()
    return second


def _apply_next_step(url: str) -> int:
    """Upgrade the store as a process of the next version does at its start, until the lock is available."""
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1), poolclass=sa.NullPool)
    while True:
        try:
            with engine.begin() as connection:
                connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('waypost revision'))"))
                return upgrade_store(connection, REVISION, extra_folders=[NEXT_STEP_FOLDER])
        except OperationalError as error:
            if "lock timeout" not in str(error) and "deadlock" not in str(error):
                raise


async def _count(sent: Sequence[str]) -> int:
    return len(sent)
