"""PostgreSQL: connections that break while the server stays available."""

import pytest
from sqlalchemy import Connection

from waypost.store.bulk_statements import IS_WRITER
from waypost.store.contract import StoreUnavailable
from waypost.store.database import Database


@pytest.fixture
def engine() -> str:
    """The only engine with connections that break."""
    return "postgresql"


async def test_writing_continues_after_its_connection_breaks(database: Database) -> None:
    with pytest.raises(StoreUnavailable):
        await database.write(_end_own_connection)

    has_bulk_statements, read_only = await database.write(_connection_state)

    assert (has_bulk_statements, read_only) == (True, "off")


async def test_reading_continues_read_only_after_its_connections_break(database: Database) -> None:
    for _ in range(8):  # as many as there are readers, and more
        with pytest.raises(StoreUnavailable):
            await database.read(_end_own_connection)

    _, read_only = await database.read(_connection_state)

    assert read_only == "on"


async def test_transaction_with_a_canceled_statement_is_run_again(database: Database) -> None:
    for run in (database.write, database.read, database.write_in_background):
        runs: list[int] = []

        await run(_cancel_first_statement, runs)

        assert len(runs) == 2


def _cancel_first_statement(connection: Connection, runs: list[int]) -> None:
    runs.append(1)
    if len(runs) == 1:
        connection.exec_driver_sql("SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(60)")


def _end_own_connection(connection: Connection) -> None:
    connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")


def _connection_state(connection: Connection) -> tuple[bool, str]:
    read_only = connection.exec_driver_sql("SHOW transaction_read_only").scalar_one()
    return IS_WRITER in connection.info, read_only
