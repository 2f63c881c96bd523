"""No statement for a message scans a table that grows: its cost does not depend on what is stored."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from benchmarks.query_plans import grows
from benchmarks.statements import Statement, Statements, plan_of, scans
from tests.support.builders import ANN
from tests.support.pipeline import PipelineHarness
from tests.support.store_locations import SqliteLocation, StoreLocation
from waypost.store.database import Database

BUSY = {  # read or changed on either engine
    "messages",
    "inbound_webhooks",
    "webhook_items",
    "callbacks",
    "queue_jobs",
    "sequences",
}
LONG = "Thank you, so much. " * 200
"""Too long for a write-through cache: such rows are read from the store."""


@pytest.fixture
def statements(store_location: StoreLocation) -> Iterator[Statements]:
    """Record every statement on the store from now on."""
    statements = Statements(store_location.name)
    yield statements
    statements.end()


def explain(connection: Connection, recorded: list[Statement]) -> dict[str, list[str]]:
    return {statement.text: plan_of(connection, statement) for statement in recorded}


async def test_no_statement_for_a_message_scans_a_table_that_grows(
    pipeline: PipelineHarness, statements: Statements
) -> None:
    template = await pipeline.approved_template()
    sent = await pipeline.send(template)
    await pipeline.events_of(sent, until="delivered")
    await pipeline.reply(ANN, LONG)
    await pipeline.events_of(await pipeline.send_text(LONG), until="delivered")
    statements.end()
    plans = await pipeline.waypost.database.read(explain, statements.all())

    table_scans = [
        f"{step.text} in {text}" for text, plan in plans.items() for step in scans(plan) if grows(step.table)
    ]

    assert not table_scans, "\n".join(table_scans)
    assert {table for table in BUSY for text in plans if f" {table} " in f"{text} "} == BUSY


async def test_statement_without_an_index_would_be_found(pipeline: PipelineHarness) -> None:
    by_reason = "SELECT id FROM messages WHERE reason = 'none'"
    by_id = "SELECT id FROM messages WHERE id = 'none'"

    plans = await pipeline.waypost.database.read(explain, [Statement(text, None, 1) for text in (by_reason, by_id)])

    assert [step.table for step in scans(plans[by_reason]) if grows(step.table)]
    assert not scans(plans[by_id])


def _select_number(connection: Connection, number: int) -> None:
    connection.execute(text(f"SELECT {number} AS recorded_number"))


async def test_statements_on_another_store_of_the_process_are_not_recorded(
    pipeline: PipelineHarness, statements: Statements, tmp_path: Path
) -> None:
    other = Database(SqliteLocation(tmp_path / "other").engine())
    await other.open()
    await other.read(_select_number, 1)
    await pipeline.waypost.database.read(_select_number, 2)
    await other.close()

    recorded = [statement.text for statement in statements.all() if "recorded_number" in statement.text]

    assert recorded == ["SELECT 2 AS recorded_number"]
