"""A submission to the previous operator is resubmitted once, even when its outcome is written twice."""

import pytest
from sqlalchemy import Connection, select

from tests.support.builders import template
from tests.support.manual_clock import ManualClock
from waypost.base.ids import RandomIds
from waypost.dispatch.template_outcomes import TemplateOutcome, TemplateOutcomes
from waypost.domain.outcome import OperatorAccepted
from waypost.store.database import Database
from waypost.store.queue.job_subjects import SubjectKind
from waypost.store.tables import queue_jobs
from waypost.store.templates.templates import record_template


@pytest.fixture
def engine() -> str:
    """The engine on which the response to a commit can be lost, so that its work is written again."""
    return "postgresql"


async def test_outcome_that_is_written_twice_resubmits_once(database: Database) -> None:
    clock = ManualClock()
    outcomes = TemplateOutcomes(clock, RandomIds(clock))
    await database.write(record_template, template(1))
    [position] = await database.read(_positions)
    outcome = TemplateOutcome(
        position,
        SubjectKind.TEMPLATE_SUBMISSION,
        template(1).id,
        None,
        "the account that was left",
        OperatorAccepted("77"),
    )

    for _ in range(2):
        await database.join(outcomes.record, outcome)

    [resubmitted] = await database.read(_positions)
    assert resubmitted > position


def _positions(connection: Connection) -> list[int]:
    return list(connection.execute(select(queue_jobs.c.position)).scalars())
