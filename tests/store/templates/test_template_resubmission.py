"""What was asked while the operator was being switched is handed in anew once, however often it is written."""

import pytest
from sqlalchemy import Connection, select

from tests.support.builders import template
from waypost.base.clock import ManualClock
from waypost.base.ids import RandomIds
from waypost.dispatch.template_outcomes import TemplateOutcome, TemplateOutcomes
from waypost.domain.outcome import Sent
from waypost.store.database import Database
from waypost.store.queue.job_subjects import SubjectKind
from waypost.store.tables import queue_jobs
from waypost.store.templates.templates import record_template


@pytest.fixture
def engine() -> str:
    """The engine on which the answer to a commit can be lost, and its work is written again."""
    return "postgresql"


async def test_outcome_that_is_written_again_hands_nothing_in_twice(database: Database) -> None:
    clock = ManualClock()
    outcomes = TemplateOutcomes(clock, RandomIds(clock))
    await database.write(record_template, template(1))
    [position] = await database.read(_positions)
    asked = TemplateOutcome(
        position, SubjectKind.TEMPLATE_SUBMISSION, template(1).id, None, "the account that was left", Sent("77")
    )

    for _ in range(2):
        await database.join(outcomes.record, asked)

    [anew] = await database.read(_positions)
    assert anew > position


def _positions(connection: Connection) -> list[int]:
    return list(connection.execute(select(queue_jobs.c.position)).scalars())
