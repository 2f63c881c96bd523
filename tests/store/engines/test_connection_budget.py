"""A process opens no more connections to PostgreSQL than its stages are allowed, counted by the server under load."""

import asyncio
import io
from collections.abc import Callable, Iterator, Sequence

import psycopg
import pytest
from sqlalchemy import Connection

from tests.support.polling import poll_until
from tests.support.store_locations import PostgresLocation
from waypost.base.clock import SystemClock
from waypost.base.telemetry.logs import set_up_logs
from waypost.config import STAGES, convert_settings
from waypost.store.database import Database
from waypost.store.engines.postgresql import PostgresEngine
from waypost.store.postgresql_connections import MIN_CONNECTIONS, connection_budget

NAME = "budget_test"


@pytest.fixture
def engine() -> str:
    """The only engine with connections to a server."""
    return "postgresql"


@pytest.fixture
def warnings(logs: Callable[[], None]) -> Iterator[io.StringIO]:
    """Collect the warnings that are logged."""
    stream = io.StringIO()
    set_up_logs(SystemClock(), as_json=True, level="warning", stream=stream)
    yield stream
    logs()


async def use_connections(database: Database) -> None:
    """Use every connection at the same time."""
    database.notify("subject", "content")
    await asyncio.gather(
        *(database.read(_sleep) for _ in range(20)),
        *(database.join(_sleep_each, None) for _ in range(20)),
        *(database.join_from_request(_sleep_each, None) for _ in range(20)),
        *(database.write_in_background(_sleep) for _ in range(3)),
    )


@pytest.mark.parametrize(
    ("stages", "at_most", "expected"),
    [
        (("api",), None, 6),
        (("callbacks",), None, 8),
        (STAGES, None, 9),
        (STAGES, 100, 9),
        (STAGES, 7, 7),
        (STAGES, MIN_CONNECTIONS, 4),
    ],
)
async def test_server_counts_as_many_connections_as_the_budget_has(
    store_location: PostgresLocation, stages: tuple[str, ...], at_most: int | None, expected: int
) -> None:
    budget = connection_budget(stages, at_most=at_most)
    assert budget.total == expected
    database = Database(PostgresEngine(f"{store_location.url}?application_name={NAME}", budget=budget))
    await database.open()
    opened = 0
    with psycopg.connect(store_location.url, autocommit=True) as server:

        async def count() -> int:
            [number] = server.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", (NAME,)
            ).fetchone() or (0,)
            return int(number)

        async def use_all() -> int:
            nonlocal opened
            await use_connections(database)
            opened = max(opened, await count())
            return await count()

        try:
            await poll_until(use_all, lambda number: number >= budget.total)
            await use_all()
        finally:
            await database.close()
        await poll_until(count, lambda number: number == 0)
    assert opened == budget.total


async def test_server_with_too_few_connections_for_the_workers_is_warned_about(
    store_location: PostgresLocation, warnings: io.StringIO
) -> None:
    with psycopg.connect(store_location.url) as server:
        [allowed] = server.execute(
            "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"
        ).fetchone() or (0,)
    enough = allowed // connection_budget(STAGES).total

    logged: list[int] = []
    for processes in (enough, enough + 1):
        database = Database(PostgresEngine(store_location.url, processes=processes))
        await database.open()
        await database.close()
        logged.append(warnings.getvalue().count("allows fewer connections"))

    assert logged == [0, 1]


@pytest.mark.parametrize("at_most", [None, MIN_CONNECTIONS])
async def test_rewriting_tables_stays_within_the_budget(store_location: PostgresLocation, at_most: int | None) -> None:
    """Every connection is open and a reader's is used to rewrite a table, while another transaction holds the table."""
    budget = connection_budget(STAGES, at_most=at_most)
    database = Database(PostgresEngine(f"{store_location.url}?application_name={NAME}", budget=budget))
    await database.open()
    with psycopg.connect(store_location.url, autocommit=True) as server, psycopg.connect(store_location.url) as holder:

        async def count(condition: str = "true") -> int:
            query = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND {condition}"
            [number] = server.execute(query, (NAME,)).fetchone() or (0,)  # pyright: ignore[reportArgumentType]
            return int(number)

        async def use_all() -> int:
            await use_connections(database)
            return await count()

        try:
            await poll_until(use_all, lambda number: number >= budget.total)
            holder.execute("LOCK TABLE messages IN ACCESS SHARE MODE")
            rewriting = asyncio.create_task(database.compact(["messages"]))
            await poll_until(
                lambda: count("query LIKE 'VACUUM%%' AND wait_event_type = 'Lock'"), lambda number: number == 1
            )
            at_once = await count()
            holder.commit()
            await rewriting
            await database.read(_sleep)
        finally:
            await database.close()
    assert at_once == budget.total


@pytest.mark.parametrize("connections", ["3", "0", "-1"])
def test_bound_below_the_minimum_is_rejected(connections: str) -> None:
    with pytest.raises(ValueError, match="database_connections must be at least 4"):
        convert_settings({"database_connections": connections})


def _sleep(connection: Connection) -> None:
    connection.exec_driver_sql("SELECT pg_sleep(0.02)")


def _sleep_each(connection: Connection, items: Sequence[None]) -> Sequence[None]:
    _sleep(connection)
    return items
