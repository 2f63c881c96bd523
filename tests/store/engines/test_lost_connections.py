"""PostgreSQL, when a connection breaks and the server is there all the time."""

import pytest
from sqlalchemy import Connection

from waypost.store.bulk_statements import BULK_STATEMENTS
from waypost.store.contract import StoreUnavailable
from waypost.store.database import Database


@pytest.fixture
def engine() -> str:
    """The only engine with connections that break."""
    return "postgresql"


async def test_writing_goes_on_after_its_connection_was_broken(database: Database) -> None:
    with pytest.raises(StoreUnavailable):
        await database.write(_end_own_connection)

    knows_its_ways, is_writable = await database.write(_look)

    assert (knows_its_ways, is_writable) == (True, "off")


async def test_reading_goes_on_read_only_after_its_connections_were_broken(database: Database) -> None:
    for _ in range(8):  # as many as there are readers, and more
        with pytest.raises(StoreUnavailable):
            await database.read(_end_own_connection)

    _, is_read_only = await database.read(_look)

    assert is_read_only == "on"


def _end_own_connection(connection: Connection) -> None:
    connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")


def _look(connection: Connection) -> tuple[bool, str]:
    shown = connection.exec_driver_sql("SHOW transaction_read_only").scalar_one()
    return BULK_STATEMENTS in connection.info, shown
