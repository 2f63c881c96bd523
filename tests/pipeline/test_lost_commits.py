"""PostgreSQL commits, and its answer is lost: nobody knows, and what was done is not done again."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import psycopg
import pytest

from tests.support.builders import ANN, APP
from tests.support.callback_sink import CallbackSink
from tests.support.cut_connection import CutLine, Loss, cut_line
from tests.support.operator_proxy import Between
from tests.support.pipeline import PipelineHarness
from tests.support.stores import Databases
from tests.support.waiting import patiently
from waypost.base.clock import ManualClock
from waypost.store.queue.jobs import QueueName

POLL_MS: Final = 5_001
"""Of what a lost commit has appended nobody was told, so that it waits for the next look."""


@dataclass
class Torn:
    """A pipeline whose line to its database can be cut around a commit.

    Attributes:
        url: of the database, past the line.
    """

    pipeline: PipelineHarness
    between: Between
    clock: ManualClock
    line: CutLine
    url: str

    def rows(self, statement: str, *given: Any) -> list[tuple[Any, ...]]:
        """What is on disk, whatever the service believes."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(statement.encode(), given).fetchall()

    def told(self, message_id: str) -> list[str]:
        """The callbacks that there are of a message."""
        statement = "SELECT news FROM callbacks WHERE message_id = %s ORDER BY sequence"
        return [news for (news,) in self.rows(statement, message_id)]

    def happened(self, message_id: str) -> list[tuple[str, bool]]:
        """A message's trace: the news, and whether it moved it."""
        statement = "SELECT news, moved FROM message_events WHERE message_id = %s ORDER BY id"
        return [(news, moved) for news, moved in self.rows(statement, message_id)]

    def state(self, message_id: str) -> str:
        """Where a message stands."""
        [(state,)] = self.rows("SELECT state FROM messages WHERE id = %s", message_id)
        return state

    async def has_lost(self) -> None:
        """Return once an answer was lost."""

        async def lost() -> int:
            return self.line.lost[Loss.ANSWER]

        await patiently(lost)

    async def completed(self, queue_name: QueueName) -> None:
        """Return when the service has worked a queue's entry once more, and nothing waits any more.

        The clock moves only then, and by less than a lease: a process whose lease is over forgets what it holds.
        """
        queue = self.pipeline.waypost.queue

        async def held() -> int:
            return queue.count_jobs_in_memory(queue_name)

        async def waiting() -> int:
            [(jobs,)] = self.rows("SELECT count(*) FROM queue_jobs")
            return jobs

        await patiently(held, lambda jobs: jobs == 0)
        self.clock.advance(ms=POLL_MS)
        await patiently(waiting, lambda jobs: jobs == 0)


@pytest.fixture
def line(databases: Databases) -> Iterator[CutLine]:
    """To a database of its own."""
    url = databases.take()
    with cut_line(url) as line:
        yield line
    databases.give_back(url)


@pytest.fixture
async def torn(line: CutLine, tmp_path: Path, sink: CallbackSink) -> AsyncIterator[Torn]:
    clock, between = ManualClock(), Between()
    changes = {"database_url": line.url}
    async with aiohttp.ClientSession() as http:
        pipeline = PipelineHarness(tmp_path, sink, http, clock=clock, changes=changes, between=between)
        await pipeline.open()
        await pipeline.open_window()
        yield Torn(pipeline, between, clock, line, line.server_url)
        line.heal()
        await pipeline.close()


async def test_status_whose_commit_was_not_answered_is_applied_once(torn: Torn) -> None:
    torn.line.lose_answer_of(b'"type":"delivered"')

    message_id = await torn.pipeline.send_text()

    await torn.has_lost()
    await torn.completed(QueueName.WEBHOOKS)
    assert torn.line.lost == {Loss.ANSWER: 1, Loss.REQUEST: 0}
    assert torn.state(message_id) == "delivered"
    assert torn.told(message_id) == ["enqueued", "sent", "delivered"]
    assert torn.happened(message_id) == [("enqueued", True), ("sent", True), ("delivered", True)]
    events = await torn.pipeline.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert len(await torn.pipeline.deliveries(message_id)) == 1


async def test_outcome_whose_commit_was_not_answered_is_written_once_and_not_sent_again(torn: Torn) -> None:
    torn.between.let_webhooks_pass = False
    torn.line.lose_answer_of(b'"type":"enqueued"')

    message_id = await torn.pipeline.send_text()

    await torn.has_lost()
    await torn.completed(QueueName.OUTBOUND)
    assert torn.line.lost == {Loss.ANSWER: 1, Loss.REQUEST: 0}
    assert torn.state(message_id) == "enqueued"
    assert torn.told(message_id) == ["enqueued"]
    assert torn.happened(message_id) == [("enqueued", True)]
    assert torn.between.sends == len(await torn.pipeline.deliveries(message_id)) == 1


async def test_message_of_a_phone_whose_commit_was_not_answered_is_told_once(torn: Torn) -> None:
    torn.line.lose_answer_of(b'"text":"Once"')

    body = {"to": APP.phone_number, "text": "Once"}
    told = await torn.pipeline.control("POST", f"phones/{ANN}/messages", body)

    await torn.has_lost()
    await torn.completed(QueueName.WEBHOOKS)
    heard = Counter(news for (news,) in torn.rows("SELECT news FROM callbacks"))
    assert torn.line.lost == {Loss.ANSWER: 1, Loss.REQUEST: 0}
    assert heard.total() == 2  # what opened the window, and this
    assert [one["payload"]["id"] for one in torn.pipeline.callbacks].count(told["wamid"]) == 1
