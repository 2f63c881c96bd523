"""Queued callbacks of a receiver: counted up to a bound, whatever is queued, the same on every engine."""

import sqlite3
from functools import partial
from typing import Any, Final

import pytest
from sqlalchemy import Connection, insert

from benchmarks.statements import Statement, Statements
from tests.support import store_locations
from tests.support.builders import APP, AT_MS, PARTNER
from waypost.store.callbacks.callbacks import CallbackRow, enqueue_callbacks
from waypost.store.callbacks.receivers import MAX_COUNTED_CALLBACKS, SubscriptionFilter, list_receivers
from waypost.store.database import Database
from waypost.store.queue.job_subjects import JobSubject, QueueName, SubjectKind
from waypost.store.queue.jobs import NewJob, enqueue_jobs, replay_group
from waypost.store.tables import subscriptions

MANY: Final = 5_000
BOUND: Final = 100
OURS: Final = SubscriptionFilter(id=1)


def _seed(connection: Connection, waiting: int, replaying: int, others: int = 0) -> None:
    row = {
        "id": 1, "partner_id": PARTNER.id, "app_id": APP.id, "tag": "t", "url": "http://127.0.0.1:9/",
        "version": 2, "modes": "SENT", "active": True, "show_on_ui": False, "created_on_ms": AT_MS,
        "modified_on_ms": AT_MS,
    }  # fmt: skip
    connection.execute(insert(subscriptions), row)
    _add_callbacks(connection, 1, waiting)
    _add_callbacks(connection, 2, others)
    group = replay_group(1)
    enqueue_jobs(
        connection,
        [
            NewJob(
                QueueName.CALLBACKS, group, f"{group} ann", JobSubject(SubjectKind.CALLBACK, f"{group} {number}"), AT_MS
            )
            for number in range(replaying)
        ],
    )


def _add_callbacks(connection: Connection, subscription_id: int, count: int, *, first: int = 0) -> None:
    rows = [
        CallbackRow(f"{subscription_id} {n}", PARTNER.id, APP.id, subscription_id, "ann", n, None, "sent", b"{}", AT_MS)
        for n in range(first, first + count)
    ]
    enqueue_callbacks(connection, rows, [AT_MS] * count)


async def counted(database: Database, max_counted: int = MAX_COUNTED_CALLBACKS) -> tuple[Any, ...]:
    """Return how many callbacks wait and whether more do, then the same of replays."""
    [row] = await database.read(partial(list_receivers, query=OURS, max_counted=max_counted))
    names = ("waiting", "waiting_is_longer", "replaying", "replaying_is_longer")
    return tuple(row[name] for name in names)


async def test_queued_callbacks_are_counted_exactly_up_to_a_bound(database: Database) -> None:
    await database.write(_seed, 100, 99, 7)

    assert await counted(database) == (100, False, 99, False)
    assert await counted(database, 100) == (100, False, 99, False)
    assert await counted(database, 99) == (99, True, 99, False)
    assert await counted(database, 10) == (10, True, 10, True)


async def test_receiver_without_queued_callbacks_counts_zero(database: Database) -> None:
    await database.write(_seed, 0, 0, 7)

    assert await counted(database) == (0, False, 0, False)


@pytest.mark.parametrize("engine", ["postgresql"])
async def test_count_of_a_long_queue_reads_no_more_than_the_bound_on_postgresql(
    database: Database, store_location: store_locations.StoreLocation
) -> None:
    await database.write(_seed, MANY, 0)
    await database.write(_analyze)

    count = await _count_statement(database, store_location)
    plan = await database.read(_explain, count)

    read = sum(int(float(line.partition("rows=")[2].split()[0])) for line in plan if "Scan" in line and "rows=" in line)
    assert read == BOUND + 1, "\n".join(plan)


@pytest.mark.parametrize("engine", ["sqlite"])
async def test_count_of_a_long_queue_reads_no_more_than_the_bound_on_sqlite(
    database: Database, store_location: store_locations.StoreLocation
) -> None:
    await database.write(_seed, 2 * BOUND, 0)
    count = await _count_statement(database, store_location)
    steps = _steps(store_location, count)

    await database.write(_append_more)

    assert _steps(store_location, count) == steps


def _analyze(connection: Connection) -> None:
    """Analyze the tables as autovacuum does for a long queue."""
    connection.exec_driver_sql("ANALYZE queue_jobs")
    connection.exec_driver_sql("ANALYZE callbacks")


async def _count_statement(database: Database, store_location: store_locations.StoreLocation) -> Statement:
    """Return the statement that counts the open callbacks."""
    statements = Statements(store_location.name)
    try:
        await counted(database, BOUND)
    finally:
        statements.end()
    [count] = [
        statement for statement in statements.all() if "count(" in statement.text and "callbacks" in statement.text
    ]
    return count


def _explain(connection: Connection, count: Statement) -> list[str]:
    driver: Any = connection.connection.driver_connection
    explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF)"
    return [row[0] for row in driver.execute(f"{explain} {count.text}", count.parameters)]


def _steps(store_location: store_locations.StoreLocation, count: Statement) -> int:
    """Return how many steps of its virtual machine SQLite takes for the statement."""
    steps = 0

    def count_step() -> None:
        nonlocal steps
        steps += 1

    connection = sqlite3.connect(store_location.name)
    try:
        connection.set_progress_handler(count_step, 1)
        [(result,)] = connection.execute(count.text, count.parameters).fetchall()
    finally:
        connection.close()
    assert result == BOUND + 1
    return steps


def _append_more(connection: Connection) -> None:
    _add_callbacks(connection, 1, MANY, first=MANY)
