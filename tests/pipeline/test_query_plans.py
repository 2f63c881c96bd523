"""No statement of the busy path reads a whole table that grows: whatever is stored, a message costs the same."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from benchmarks.plans import grows
from benchmarks.statements import Statement, Statements, plan_of, scans
from tests.support.builders import ANN
from tests.support.pipeline import PipelineHarness
from tests.support.stores import Place, SqlitePlace
from waypost.store.database import Database

BUSY = {  # what is asked or changed on either engine; PostgreSQL copies new rows in, which has no plan
    "messages",
    "inbound_webhooks",
    "webhook_items",
    "callbacks",
    "queue_jobs",
    "sequences",
}
LONG = "Thank you, so much. " * 200
"""Too long for what a process keeps of its own writing: such rows are read from the store."""


@pytest.fixture
def statements(place: Place) -> Iterator[Statements]:
    """What is asked of the store from now on, by whatever code."""
    statements = Statements(place.name)
    yield statements
    statements.end()


def explained(connection: Connection, asked: list[Statement]) -> dict[str, list[str]]:
    return {one.text: plan_of(connection, one) for one in asked}


async def test_no_statement_on_a_messages_way_reads_a_table_that_grows(
    pipeline: PipelineHarness, statements: Statements
) -> None:
    template = await pipeline.approved_template()
    sent = await pipeline.send(template)
    await pipeline.events_of(sent, until="delivered")
    await pipeline.reply(ANN, LONG)
    await pipeline.events_of(await pipeline.send_text(LONG), until="delivered")
    statements.end()
    plans = await pipeline.waypost.database.read(explained, statements.all())

    wrong = [f"{step.text} in {text}" for text, plan in plans.items() for step in scans(plan) if grows(step.table)]

    assert not wrong, "\n".join(wrong)
    assert {table for table in BUSY for text in plans if f" {table} " in f"{text} "} == BUSY


async def test_a_statement_without_an_index_would_be_found(pipeline: PipelineHarness) -> None:
    by_reason = "SELECT id FROM messages WHERE reason = 'none'"
    by_id = "SELECT id FROM messages WHERE id = 'none'"

    plans = await pipeline.waypost.database.read(explained, [Statement(text, None, 1) for text in (by_reason, by_id)])

    assert [step.table for step in scans(plans[by_reason]) if grows(step.table)]
    assert not scans(plans[by_id])


def _ask(connection: Connection, number: int) -> None:
    connection.execute(text(f"SELECT {number} AS of_somebody"))


async def test_another_store_of_the_process_is_not_heard(
    pipeline: PipelineHarness, statements: Statements, tmp_path: Path
) -> None:
    other = Database(SqlitePlace(tmp_path / "other").engine())
    await other.open()
    await other.read(_ask, 1)
    await pipeline.waypost.database.read(_ask, 2)
    await other.close()

    heard = [one.text for one in statements.all() if "of_somebody" in one.text]

    assert heard == ["SELECT 2 AS of_somebody"]
