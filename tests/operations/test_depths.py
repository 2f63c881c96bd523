"""Queue depths are counted up to a limit: a long queue costs no more than a short one."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import Connection, insert, update
from sqlalchemy.event import listen, remove

from tests.support.store_locations import ENGINES, StoreLocation
from waypost.store.database import Database
from waypost.store.queue import depths as counted_depths
from waypost.store.queue.depths import QueueDepths, read_dead_letters, read_queue_depths
from waypost.store.queue.job_subjects import JobState, QueueName
from waypost.store.tables import queue_jobs, subscriptions

LIMIT = 200
BEYOND_LIMIT = 50


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Run each test on every engine."""
    return request.param


@pytest.fixture
async def database(store_location: StoreLocation, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Database]:
    """Open a store with one queue that is longer than the limit, and a dead letter at its end."""
    monkeypatch.setattr(counted_depths, "MAX_COUNTED_PER_QUEUE", LIMIT)
    database = Database(store_location.engine())
    await database.open()
    await database.write(_fill)
    yield database
    await database.close()


def _fill(connection: Connection) -> None:
    queue = int(QueueName.CALLBACKS)
    rows = [
        {
            "queue": queue,
            "concurrency_group": "subscription 1",
            "ordering_key": str(at),
            "ref": str(at),
            "due_ms": 1000 + at,
        }
        for at in range(LIMIT + BEYOND_LIMIT)
    ]
    connection.execute(insert(queue_jobs), rows)
    last = queue_jobs.c.ref == str(LIMIT + BEYOND_LIMIT - 1)
    connection.execute(update(queue_jobs).where(last).values(state=int(JobState.DEAD_LETTER_IN_FLIGHT)))


async def test_long_queue_is_counted_up_to_the_limit_and_marked_as_longer(database: Database) -> None:
    depths: QueueDepths = await database.read(read_queue_depths)

    long, empty = depths.queues[QueueName.CALLBACKS], depths.queues[QueueName.MEDIA]
    assert long.jobs[JobState.OPEN] == LIMIT
    assert long.is_longer
    assert long.oldest_due_ms == 1000
    assert set(empty.jobs.values()) == {0}
    assert (empty.is_longer, empty.oldest_due_ms) == (False, None)


async def test_dead_letter_is_counted_behind_a_queue_of_any_length(database: Database) -> None:
    depths: QueueDepths = await database.read(read_queue_depths)

    assert depths.queues[QueueName.CALLBACKS].jobs[JobState.DEAD_LETTER_IN_FLIGHT] == 1
    assert len(await database.read(read_dead_letters)) == 1


async def test_paused_subscriptions_are_counted_by_who_paused_them(database: Database) -> None:
    await database.write(_pause)

    depths: QueueDepths = await database.read(read_queue_depths)

    assert depths.paused == {"service": 1, "partner": 2}


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
async def test_no_statement_of_the_count_scans_the_queue(database: Database) -> None:
    plans = await database.read(_plans, read_queue_depths) + await database.read(_plans, read_dead_letters)

    scans = [line for line in plans if line.startswith("SCAN queue_jobs")]
    assert any("queue_jobs_by_group" in line for line in plans)
    assert any("queue_jobs_dead_letters" in line for line in plans)
    assert [line for line in scans if "queue_jobs_dead_letters" not in line] == []


def _pause(connection: Connection) -> None:
    for number, (active, paused_on_ms) in enumerate([(True, None), (True, 5), (False, None), (False, None)]):
        row = {
            "partner_id": 1, "app_id": "a", "tag": str(number), "url": "http://a.test", "version": 2, "modes": "ALL",
            "active": active, "show_on_ui": True, "paused_on_ms": paused_on_ms, "created_on_ms": 1, "modified_on_ms": 1,
        }  # fmt: skip
        connection.execute(insert(subscriptions), row)


def _plans(connection: Connection, read: Any) -> list[str]:
    """Return SQLite's query plan for every statement of a read of the queue."""
    executed: list[tuple[str, Any]] = []

    def record(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_more: Any) -> None:
        executed.append((statement, parameters))

    listen(connection, "before_cursor_execute", record)
    read(connection)
    remove(connection, "before_cursor_execute", record)
    return [
        str(row[3])
        for statement, parameters in executed
        if "queue_jobs" in statement
        for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
    ]
