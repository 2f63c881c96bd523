"""A review comes while another process writes down what the operator calls the template."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence

import pytest
from sqlalchemy import Connection, text

from tests.support.builders import ACCOUNT, template
from tests.support.stores import Place
from waypost.domain.templates.template import Template
from waypost.store.database import Database
from waypost.store.templates.templates import adopt_template, change_template, find_operator_template

TEMPLATE = template()


@pytest.fixture
def engine() -> str:
    """The only engine on which two write at once."""
    return "postgresql"


@pytest.fixture
async def learning(place: Place) -> AsyncIterator[Database]:
    """The process that is told the template's id."""
    database = Database(place.engine(sole=False))
    await database.open()
    yield database
    await database.close()


@pytest.fixture
async def hearing(place: Place) -> AsyncIterator[Database]:
    """The process that hears of its review."""
    database = Database(place.engine(sole=False))
    await database.open()
    yield database
    await database.close()


async def test_template_is_known_while_its_id_is_being_written_down(learning: Database, hearing: Database) -> None:
    await learning.write(adopt_template, TEMPLATE)
    written = threading.Event()

    def learn(connection: Connection, items: Sequence[None]) -> Sequence[None]:
        change_template(connection, TEMPLATE.id, operator_template_id="77")
        written.set()
        while not connection.execute(_WAITS).scalar_one():
            pass  # until the other one waits for this row
        return items

    def hear(connection: Connection, _items: Sequence[None]) -> list[Template | None]:
        written.wait(10)
        names = (TEMPLATE.draft.element_name or "", TEMPLATE.draft.language_code)
        return [find_operator_template(connection, ACCOUNT.id, "77", *names)]

    _, found = await asyncio.gather(learning.join(learn, None), hearing.join(hear, None))

    assert found is not None
    assert (found.id, found.operator_template_id) == (TEMPLATE.id, "77")


_WAITS = text(
    "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid)))"
)
