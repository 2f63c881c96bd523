"""PostgreSQL commits and its response is lost: what was committed is not done again."""

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
from tests.support.commit_proxy import CommitLoss, CommitProxy, open_commit_proxy
from tests.support.manual_clock import ManualClock, ServiceClock
from tests.support.operator_proxy import OperatorProxy
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from tests.support.store_locations import Databases
from waypost.store.queue.job_subjects import QueueName

POLL_MS: Final = 5_001
"""Longer than a poll: a lost commit sends no notification, so its jobs wait for the next poll."""


@dataclass
class LossyStorePipeline:
    """A pipeline whose connection to its database can be cut around a commit.

    Attributes:
        url: of the database, without the connection that can be cut.
    """

    pipeline: PipelineHarness
    between: OperatorProxy
    clock: ManualClock
    store_connection: CommitProxy
    url: str

    def rows(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Return rows from the database, not through the service."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(statement.encode(), parameters).fetchall()

    def events(self, message_id: str) -> list[str]:
        """Return the events of the callbacks of a message."""
        statement = "SELECT event FROM callbacks WHERE message_id = %s ORDER BY sequence"
        return [event for (event,) in self.rows(statement, message_id)]

    def steps(self, message_id: str) -> list[tuple[str, bool]]:
        """Return a message's trace: each event, and whether it changed the state."""
        timed = (
            "('enqueued', enqueued_on_ms), ('sent', sent_on_ms), ('delivered', delivered_on_ms), ('read', read_on_ms)"
        )
        statement = (
            f"SELECT t.name, true FROM messages, LATERAL (VALUES {timed}) AS t(name, at_ms) "
            "WHERE id = %s AND t.at_ms IS NOT NULL "
            "UNION ALL SELECT event, applied FROM message_events WHERE message_id = %s"
        )
        return [(event, is_change) for event, is_change in self.rows(statement, message_id, message_id)]

    def read_state(self, message_id: str) -> str:
        """Return the state of a message."""
        [(state,)] = self.rows("SELECT state FROM messages WHERE id = %s", message_id)
        return state

    async def wait_for_loss(self) -> None:
        """Return when a response was lost."""

        async def count_lost() -> int:
            return self.store_connection.lost[CommitLoss.RESPONSE]

        await poll_until(count_lost)

    async def wait_until_completed(self, queue_name: QueueName) -> None:
        """Return when the service has worked a queue's job again, and no job is left.

        The clock advances only then, and by less than a lease: a process whose lease expires drops its jobs.
        """
        queue = self.pipeline.waypost.queue

        async def count_in_memory() -> int:
            return queue.count_jobs_in_memory(queue_name)

        async def count_in_store() -> int:
            open_callbacks = "SELECT count(*) FROM callbacks WHERE ended_on_ms IS NULL"
            [(jobs,)] = self.rows(f"SELECT (SELECT count(*) FROM queue_jobs) + ({open_callbacks})")
            return jobs

        await poll_until(count_in_memory, lambda jobs: jobs == 0)
        self.clock.advance(ms=POLL_MS)
        await poll_until(count_in_store, lambda jobs: jobs == 0)


@pytest.fixture
def store_connection(databases: Databases) -> Iterator[CommitProxy]:
    """Open a connection that can be cut, to a database of its own."""
    url = databases.acquire()
    with open_commit_proxy(url) as store_connection:
        yield store_connection
    databases.release(url)


@pytest.fixture
async def lossy(store_connection: CommitProxy, tmp_path: Path, sink: CallbackSink) -> AsyncIterator[LossyStorePipeline]:
    clock, between = ServiceClock(), OperatorProxy()
    changes = {"database_url": store_connection.url}
    async with aiohttp.ClientSession() as http:
        pipeline = PipelineHarness(tmp_path, sink, http, clock=clock, changes=changes, operator_proxy=between)
        await pipeline.open()
        await pipeline.open_window()
        yield LossyStorePipeline(pipeline, between, clock, store_connection, store_connection.server_url)
        store_connection.heal()
        await pipeline.close()


def array_member(text: str) -> bytes:
    """Return the bytes of a text in an array that is sent to PostgreSQL: its length comes first."""
    return len(text).to_bytes(4) + text.encode()


async def test_status_is_applied_once_when_the_response_to_its_commit_is_lost(lossy: LossyStorePipeline) -> None:
    lossy.store_connection.lose_response_to(array_member("delivered"))

    message_id = await lossy.pipeline.send_text()

    await lossy.wait_for_loss()
    await lossy.wait_until_completed(QueueName.WEBHOOKS)
    assert lossy.store_connection.lost == {CommitLoss.RESPONSE: 1, CommitLoss.REQUEST: 0}
    assert lossy.read_state(message_id) == "delivered"
    assert lossy.events(message_id) == ["enqueued", "sent", "delivered"]
    assert lossy.steps(message_id) == [("enqueued", True), ("sent", True), ("delivered", True)]
    events = await lossy.pipeline.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert len(await lossy.pipeline.deliveries(message_id)) == 1


async def test_outcome_is_stored_once_and_not_sent_again_when_the_response_to_its_commit_is_lost(
    lossy: LossyStorePipeline,
) -> None:
    lossy.between.let_webhooks_pass = False
    lossy.store_connection.lose_response_to(array_member("enqueued"))

    message_id = await lossy.pipeline.send_text()

    await lossy.wait_for_loss()
    await lossy.wait_until_completed(QueueName.OUTBOUND)
    assert lossy.store_connection.lost == {CommitLoss.RESPONSE: 1, CommitLoss.REQUEST: 0}
    assert lossy.read_state(message_id) == "enqueued"
    assert lossy.events(message_id) == ["enqueued"]
    assert lossy.steps(message_id) == [("enqueued", True)]
    assert lossy.between.sends == len(await lossy.pipeline.deliveries(message_id)) == 1


async def test_inbound_message_is_called_back_once_when_the_response_to_its_commit_is_lost(
    lossy: LossyStorePipeline,
) -> None:
    lossy.store_connection.lose_response_to(array_member("text"))  # the event of its callback

    body = {"to": APP.phone_number, "text": "Once"}
    inbound = await lossy.pipeline.control("POST", f"phones/{ANN}/messages", body)

    await lossy.wait_for_loss()
    await lossy.wait_until_completed(QueueName.WEBHOOKS)
    events = Counter(event for (event,) in lossy.rows("SELECT event FROM callbacks"))
    assert lossy.store_connection.lost == {CommitLoss.RESPONSE: 1, CommitLoss.REQUEST: 0}
    assert events.total() == 2  # the message that opened the window, and this one
    assert [callback["payload"]["id"] for callback in lossy.pipeline.callbacks].count(inbound["wamid"]) == 1
