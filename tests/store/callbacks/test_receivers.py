"""How much waits for an address: counted as far as is useful, whatever waits, the same on every engine."""

import sqlite3
from functools import partial
from typing import Any, Final

import pytest
from sqlalchemy import Connection, insert

from benchmarks.statements import Statement, Statements
from tests.support import stores
from tests.support.builders import APP, AT_MS, PARTNER
from waypost.store.callbacks.receivers import MAX_COUNTED_CALLBACKS, SubscriptionFilter, list_receivers
from waypost.store.callbacks.subscriptions import live_group, replay_group
from waypost.store.database import Database
from waypost.store.queue.job_subjects import JobSubject, SubjectKind
from waypost.store.queue.jobs import NewJob, QueueName, enqueue_jobs
from waypost.store.tables import subscriptions

MANY: Final = 5_000
MOST: Final = 100
OURS: Final = SubscriptionFilter(id=1)


def _seed(connection: Connection, waiting: int, replaying: int, others: int = 0) -> None:
    row = {
        "id": 1, "partner_id": PARTNER.id, "app_id": APP.id, "tag": "t", "url": "http://127.0.0.1:9/",
        "version": 2, "modes": "SENT", "active": True, "show_on_ui": False, "created_on_ms": AT_MS,
        "modified_on_ms": AT_MS,
    }  # fmt: skip
    connection.execute(insert(subscriptions), row)
    groups = ((live_group(1), waiting), (replay_group(1), replaying), (live_group(2), others))
    enqueue_jobs(
        connection,
        [
            NewJob(
                QueueName.CALLBACKS, group, f"{group} ann", JobSubject(SubjectKind.CALLBACK, f"{group} {number}"), AT_MS
            )
            for group, count in groups
            for number in range(count)
        ],
    )


async def counted(database: Database, most: int = MAX_COUNTED_CALLBACKS) -> tuple[Any, ...]:
    """What waits and whether more does, then the same of what is told again."""
    [row] = await database.read(partial(list_receivers, query=OURS, max_counted=most))
    names = ("waiting", "waiting_is_longer", "replaying", "replaying_is_longer")
    return tuple(row[name] for name in names)


async def test_what_waits_is_counted_exactly_up_to_a_bound(database: Database) -> None:
    await database.write(_seed, 100, 99, 7)

    assert await counted(database) == (100, False, 99, False)
    assert await counted(database, 100) == (100, False, 99, False)
    assert await counted(database, 99) == (99, True, 99, False)
    assert await counted(database, 10) == (10, True, 10, True)


async def test_nothing_waits_for_an_address_that_takes_everything(database: Database) -> None:
    await database.write(_seed, 0, 0, 7)

    assert await counted(database) == (0, False, 0, False)


@pytest.mark.parametrize("engine", ["postgresql"])
async def test_count_of_a_long_line_reads_no_more_than_the_bound_on_postgresql(
    database: Database, place: stores.Place
) -> None:
    await database.write(_seed, MANY, 0)
    await database.write(_analyze)

    [count] = await _counts(database, place)
    plan = await database.read(_run, count)

    [read] = [int(float(line.partition("rows=")[2].split()[0])) for line in plan if "Scan" in line]
    assert read == MOST + 1, "\n".join(plan)


@pytest.mark.parametrize("engine", ["sqlite"])
async def test_count_of_a_long_line_reads_no_more_than_the_bound_on_sqlite(
    database: Database, place: stores.Place
) -> None:
    await database.write(_seed, 2 * MOST, 0)
    [count] = await _counts(database, place)
    steps = _steps(place, count)

    await database.write(_append_more)

    assert _steps(place, count) == steps


def _analyze(connection: Connection) -> None:
    """As autovacuum does once a line is long."""
    connection.exec_driver_sql("ANALYZE queue_jobs")


async def _counts(database: Database, place: stores.Place) -> list[Statement]:
    """The statements that count."""
    statements = Statements(place.name)
    try:
        await counted(database, MOST)
    finally:
        statements.end()
    return [one for one in statements.all() if "count(" in one.text]


def _run(connection: Connection, count: Statement) -> list[str]:
    driver: Any = connection.connection.driver_connection
    asked = {**count.parameters, **_named(count)}
    explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF)"
    return [row[0] for row in driver.execute(f"{explain} {count.text}", asked)]


def _named(count: Statement) -> dict[str, Any]:
    """The parameters of the live group: a statement is kept with those of its last time."""
    return {name: live_group(1) for name, value in count.parameters.items() if value == replay_group(1)}


def _steps(place: stores.Place, count: Statement) -> int:
    """How many steps of its machine SQLite takes for it."""
    steps = 0

    def one_more() -> None:
        nonlocal steps
        steps += 1

    asked = [live_group(1) if value == replay_group(1) else value for value in count.parameters]
    connection = sqlite3.connect(place.name)
    try:
        connection.set_progress_handler(one_more, 1)
        [(found,)] = connection.execute(count.text, asked).fetchall()
    finally:
        connection.close()
    assert found == MOST + 1
    return steps


def _append_more(connection: Connection) -> None:
    enqueue_jobs(
        connection,
        [
            NewJob(
                QueueName.CALLBACKS, live_group(1), "1 ann", JobSubject(SubjectKind.CALLBACK, f"more {number}"), AT_MS
            )
            for number in range(MANY)
        ],
    )
