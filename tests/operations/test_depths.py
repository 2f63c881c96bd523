"""What waits is counted with a bound: a long queue costs no more than a short one."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import Connection, insert, update
from sqlalchemy.event import listen, remove

from tests.support.stores import ENGINES, Place
from waypost.store.database import Database
from waypost.store.queue import depths as asked
from waypost.store.queue.depths import QueueDepths, read_queue_depths
from waypost.store.queue.jobs import JobState, QueueName, read_dead_letters
from waypost.store.tables import queue_jobs, subscriptions

MOST = 200
MORE = 50


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Each test runs once on each."""
    return request.param


@pytest.fixture
async def database(place: Place, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Database]:
    """A store with one queue that is longer than is counted, and one entry set aside at its very end."""
    monkeypatch.setattr(asked, "MAX_COUNTED_PER_QUEUE", MOST)
    database = Database(place.engine())
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
        for at in range(MOST + MORE)
    ]
    connection.execute(insert(queue_jobs), rows)
    last = queue_jobs.c.ref == str(MOST + MORE - 1)
    connection.execute(update(queue_jobs).where(last).values(state=int(JobState.DEAD_LETTER_IN_FLIGHT)))


async def test_long_lane_is_counted_so_far_and_said_to_be_longer(database: Database) -> None:
    found: QueueDepths = await database.read(read_queue_depths)

    long, empty = found.queues[QueueName.CALLBACKS], found.queues[QueueName.MEDIA]
    assert long.jobs[JobState.OPEN] == MOST
    assert long.is_longer
    assert long.oldest_due_ms == 1000
    assert set(empty.jobs.values()) == {0}
    assert (empty.is_longer, empty.oldest_due_ms) == (False, None)


async def test_what_is_set_aside_is_found_behind_a_lane_however_long(database: Database) -> None:
    found: QueueDepths = await database.read(read_queue_depths)

    assert found.queues[QueueName.CALLBACKS].jobs[JobState.DEAD_LETTER_IN_FLIGHT] == 1
    assert len(await database.read(read_dead_letters)) == 1


async def test_paused_subscriptions_are_told_apart_by_who_paused_them(database: Database) -> None:
    await database.write(_pause)

    found: QueueDepths = await database.read(read_queue_depths)

    assert found.paused == {"service": 1, "partner": 2}


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
async def test_no_statement_of_the_count_scans_the_journal(database: Database) -> None:
    plans = await database.read(_plans, read_queue_depths) + await database.read(_plans, read_dead_letters)

    scans = [line for line in plans if line.startswith("SCAN journal")]
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


def _plans(connection: Connection, look: Any) -> list[str]:
    """What SQLite would do for every statement of a read about the journal."""
    asked: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, text: str, given: Any, *_more: Any) -> None:
        asked.append((text, given))

    listen(connection, "before_cursor_execute", note)
    look(connection)
    remove(connection, "before_cursor_execute", note)
    return [
        str(row[3])
        for text, given in asked
        if "queue_jobs" in text
        for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", given)
    ]
