"""A review arrives while another process is writing the operator's id of the template."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence

import pytest
from sqlalchemy import Connection, text

from tests.support.builders import ACCOUNT, template
from tests.support.store_locations import StoreLocation
from waypost.domain.templates.template import Template
from waypost.store.database import Database
from waypost.store.templates.templates import adopt_template, change_template, find_operator_template

TEMPLATE = template()


@pytest.fixture
def engine() -> str:
    """The only engine with concurrent writers."""
    return "postgresql"


@pytest.fixture
async def writer(store_location: StoreLocation) -> AsyncIterator[Database]:
    """The process that writes the template's operator id."""
    database = Database(store_location.engine(sole=False))
    await database.open()
    yield database
    await database.close()


@pytest.fixture
async def reader(store_location: StoreLocation) -> AsyncIterator[Database]:
    """The process that applies its review."""
    database = Database(store_location.engine(sole=False))
    await database.open()
    yield database
    await database.close()


async def test_template_is_found_while_its_operator_id_is_being_written(writer: Database, reader: Database) -> None:
    await writer.write(adopt_template, TEMPLATE)
    written = threading.Event()

    def write_id(connection: Connection, items: Sequence[None]) -> Sequence[None]:
        change_template(connection, TEMPLATE.id, operator_template_id="77")
        written.set()
        while not connection.execute(_WAITS).scalar_one():
            pass  # until the reader waits for this row
        return items

    def find_template(connection: Connection, _items: Sequence[None]) -> list[Template | None]:
        written.wait(10)
        names = (TEMPLATE.draft.element_name or "", TEMPLATE.draft.language_code)
        return [find_operator_template(connection, ACCOUNT.id, "77", *names)]

    _, adopted = await asyncio.gather(writer.join(write_id, None), reader.join(find_template, None))

    assert adopted is not None
    assert (adopted.id, adopted.operator_template_id) == (TEMPLATE.id, "77")


_WAITS = text(
    "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid)))"
)
