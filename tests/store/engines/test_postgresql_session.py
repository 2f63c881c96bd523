"""PostgreSQL: the statements of a transaction are sent together, and fail or succeed together."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar

import psycopg
import pytest
from sqlalchemy import Connection, insert, select, text

from tests.support.commit_proxy import CommitLoss, CommitProxy, open_commit_proxy
from tests.support.polling import poll_until
from tests.support.store_locations import Databases
from waypost.store.bulk_statements import BulkDelete, BulkInsert, BulkSelect, BulkUpdate
from waypost.store.contract import StoreUnavailable
from waypost.store.database import NOTIFICATIONS_MISSED, Database
from waypost.store.engines.postgresql import PostgresEngine
from waypost.store.tables import store_properties
from waypost.store.writer import MAX_TRANSACTION_ATTEMPTS


class PropertyRow(NamedTuple):
    name: str
    value: str


INSERT: Final = BulkInsert(store_properties, "name", "value")
UPDATE: Final = BulkUpdate(store_properties, "name", "value")
DELETE: Final = BulkDelete(store_properties, "name")
SELECT: Final = BulkSelect(store_properties, PropertyRow, "name")
Result = TypeVar("Result")
NAMES: Final = ["a", "b", "c", "d"]


@pytest.fixture
def proxy(databases: Databases) -> Iterator[CommitProxy]:
    """Open a connection that can be cut, to a database of its own."""
    url = databases.acquire()
    with open_commit_proxy(url) as proxy:
        yield proxy
    databases.release(url)


@pytest.fixture
async def database(proxy: CommitProxy) -> AsyncIterator[Database]:
    """The open store, behind the proxy; the connection that listens is set up, so it makes no more round trips."""
    database = Database(PostgresEngine(proxy.url))
    await database.open()
    await poll_until(partial(is_listening, proxy.server_url), bool)
    yield database
    await database.close()


async def is_listening(url: str) -> bool:
    query = (
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle' AND query LIKE 'LISTEN %'"
    )
    async with await psycopg.AsyncConnection.connect(url) as connection:
        return await (await connection.execute(query)).fetchone() is not None


@pytest.fixture
async def unknown_commits(database: Database) -> list[str]:
    """The commits whose outcome is unknown."""
    unknown: list[str] = []
    database.add_notification_listener(lambda subject, _content: unknown.append(subject))
    return unknown


def read_values(connection: Connection) -> dict[str, str]:
    return {row.name: row.value for row in SELECT.run(connection, NAMES)}


async def run(database: Database, work: Callable[[Connection], Result]) -> Result:
    """Run a write without the lock of rare writes."""

    def run_work(connection: Connection, items: Sequence[None]) -> list[Result]:
        return [work(connection) for _ in items]

    return await database.join(run_work, None)


async def test_transaction_takes_a_round_trip_for_each_result_and_one_for_its_end(
    database: Database, proxy: CommitProxy
) -> None:
    def write(connection: Connection) -> list[int]:
        begin = proxy.round_trips
        INSERT.run(connection, [("a", "1"), ("b", "2")])
        UPDATE.run(connection, [("3", "a")])
        waiting = proxy.round_trips
        assert read_values(connection) == {"a": "3", "b": "2"}
        after_read = proxy.round_trips
        DELETE.run(connection, ["b"])
        UPDATE.run(connection, [("4", "a")])
        INSERT.run(connection, [("c", "5")])
        return [waiting - begin, after_read - begin, proxy.round_trips - begin]

    await run(database, write)  # prepares the statements
    await run(database, partial(DELETE.run, keys=NAMES))
    begin = proxy.round_trips

    trips = await run(database, write)

    assert trips == [0, 1, 1]
    assert proxy.round_trips - begin == 2
    assert await database.read(read_values) == {"a": "4", "c": "5"}


async def test_plans_made_while_a_table_is_empty_read_no_whole_table(database: Database) -> None:
    """They are kept while it grows (decision 0109), by sessions that write and by those that read."""
    assert await database.write(_seqscan_setting) == await database.read(_seqscan_setting) == "off"


def _seqscan_setting(connection: Connection) -> str:
    return connection.execute(text("SHOW enable_seqscan")).scalar_one()


async def test_statement_that_is_the_whole_transaction_takes_one_round_trip(
    database: Database, proxy: CommitProxy
) -> None:
    await run(database, read_values)  # connects

    for value in ("1", "2"):
        begin = proxy.round_trips
        await run(database, partial(INSERT.run, rows=[(value, value)]))
        assert proxy.round_trips - begin == 1

    begin = proxy.round_trips
    await run(database, partial(UPDATE.run, rows=[("x", "1")]))
    assert proxy.round_trips - begin == 1


async def test_sqlalchemys_statements_see_what_waited_and_are_followed_by_the_rest(database: Database) -> None:
    def write(connection: Connection) -> str:
        INSERT.run(connection, [("a", "1")])
        UPDATE.run(connection, [("2", "a")])
        seen = connection.execute(select(store_properties.c.value).where(store_properties.c.name == "a")).scalar_one()
        connection.execute(insert(store_properties), {"name": "b", "value": "b"})
        UPDATE.run(connection, [("3", "a"), ("4", "b")])
        return seen

    seen = await run(database, write)

    assert seen == "2"
    assert await database.read(read_values) == {"a": "3", "b": "4"}


async def test_error_of_a_statement_that_waited_is_psycopgs_and_undoes_the_transaction(
    database: Database, unknown_commits: list[str]
) -> None:
    def write(connection: Connection) -> None:
        read_values(connection)
        UPDATE.run(connection, [("2", "a")])
        INSERT.run(connection, [("b", "1"), ("b", "2")])  # violates the primary key
        UPDATE.run(connection, [("3", "a")])
        read_values(connection)

    await run(database, partial(INSERT.run, rows=[("a", "1")]))

    with pytest.raises(psycopg.errors.UniqueViolation) as raised:
        await run(database, write)

    assert raised.value.sqlstate == "23505"
    assert unknown_commits == []
    assert await database.read(read_values) == {"a": "1"}
    await run(database, partial(UPDATE.run, rows=[("4", "a")]))
    assert await database.read(read_values) == {"a": "4"}


async def test_error_before_the_commit_in_the_last_round_trip_undoes_the_transaction(database: Database) -> None:
    def write(connection: Connection) -> None:
        read_values(connection)
        UPDATE.run(connection, [("2", "a")])
        INSERT.run(connection, [("b", "1"), ("b", "2")])
        UPDATE.run(connection, [("3", "a")])

    await run(database, partial(INSERT.run, rows=[("a", "1")]))

    for _ in range(3):  # its statements are prepared or not, depending on where it failed
        with pytest.raises(psycopg.errors.UniqueViolation):
            await run(database, write)

    assert await database.read(read_values) == {"a": "1"}


async def test_error_of_the_commit_undoes_the_transaction(database: Database) -> None:
    def defer(connection: Connection) -> None:
        connection.execute(
            text(
                "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '23514'; END $$"
            )
        )
        connection.execute(
            text(
                "CREATE CONSTRAINT TRIGGER refused AFTER INSERT ON store_properties "
                "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.value = 'refused') EXECUTE FUNCTION fail()"
            )
        )

    def write(connection: Connection) -> None:
        INSERT.run(connection, [("a", "refused")])
        UPDATE.run(connection, [("2", "b")])

    await database.write(defer)

    with pytest.raises(psycopg.errors.CheckViolation):
        await run(database, write)
    for _ in range(2):  # a transaction of its own, prepared and then again
        with pytest.raises(psycopg.errors.CheckViolation):
            await run(database, partial(INSERT.run, rows=[("a", "refused")]))

    assert await database.read(read_values) == {}
    await run(database, partial(INSERT.run, rows=[("a", "1")]))
    assert await database.read(read_values) == {"a": "1"}
    await database.write(partial(Connection.execute, statement=text("DROP FUNCTION fail CASCADE")))


async def test_transaction_whose_error_was_caught_is_not_acknowledged(database: Database) -> None:
    def write(connection: Connection) -> None:
        INSERT.run(connection, [("a", "1"), ("a", "2")])
        with pytest.raises(psycopg.errors.UniqueViolation):
            read_values(connection)

    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        await run(database, write)


async def test_conflict_is_retried_with_all_statements(database: Database, proxy: CommitProxy) -> None:
    await run(database, partial(INSERT.run, rows=[("a", "1"), ("b", "1")]))
    attempts: list[int] = []

    def write(connection: Connection) -> None:
        attempts.append(1)
        read_values(connection)
        if len(attempts) == 1:
            connection.execute(text("SET LOCAL lock_timeout = '50ms'"))
        UPDATE.run(connection, [("2", "c")])
        INSERT.run(connection, [("d", "1")])

    async def count_attempts() -> int:
        return len(attempts)

    with psycopg.connect(proxy.server_url) as other:
        other.execute("INSERT INTO store_properties (name, value) VALUES ('d', 'x')")
        writing = asyncio.ensure_future(run(database, write))
        await poll_until(count_attempts, lambda count: count == 2)
        other.rollback()
        await writing

    assert await database.read(read_values) == {"a": "1", "b": "1", "d": "1"}


async def test_conflict_that_comes_again_and_again_counts_as_a_store_that_is_away(
    database: Database, proxy: CommitProxy
) -> None:
    """Else it would be a defect of the job, of which five make a dead letter."""
    attempts: list[int] = []

    def write(connection: Connection) -> None:
        attempts.append(1)
        connection.execute(text("SET LOCAL lock_timeout = '10ms'"))
        INSERT.run(connection, [("d", "1")])

    with psycopg.connect(proxy.server_url) as other:
        other.execute("INSERT INTO store_properties (name, value) VALUES ('d', 'x')")
        with pytest.raises(StoreUnavailable, match="the store is too busy: "):
            await run(database, write)
        other.rollback()

    assert len(attempts) == MAX_TRANSACTION_ATTEMPTS


async def test_writing_continues_after_a_rollback_when_psycopg_would_have_deallocated(database: Database) -> None:
    def fail(connection: Connection) -> None:
        for _ in range(8):  # psycopg prepares what it has executed a few times
            connection.execute(select(store_properties.c.value)).all()
        raise LookupError

    await run(database, partial(INSERT.run, rows=[("a", "1")]))

    with pytest.raises(LookupError):
        await run(database, fail)

    await run(database, partial(INSERT.run, rows=[("b", "1")]))
    assert await database.read(read_values) == {"a": "1", "b": "1"}


async def test_savepoint_undoes_what_waited_after_it(database: Database) -> None:
    def write(connection: Connection) -> None:
        INSERT.run(connection, [("a", "1")])  # the connection's first statement
        savepoint = connection.begin_nested()
        INSERT.run(connection, [("b", "1")])
        savepoint.rollback()
        INSERT.run(connection, [("c", "1")])

    await run(database, write)

    assert await database.read(read_values) == {"a": "1", "c": "1"}


async def test_many_rows_in_both_directions_do_not_block(database: Database) -> None:
    rows = [(f"row {n}", "x" * 1_000) for n in range(5_000)]
    names = [name for name, _ in rows]

    def write(connection: Connection) -> int:
        INSERT.run(connection, rows)
        deleted = DELETE.run(connection, names)
        INSERT.run(connection, rows)
        found = SELECT.run(connection, names)
        return len(found) + len(deleted) + len(DELETE.run(connection, names))

    assert await run(database, write) == 15_000


async def test_deleted_keys_are_read_when_they_are_needed(database: Database) -> None:
    await run(database, partial(INSERT.run, rows=[("a", "1"), ("b", "1")]))

    def write(connection: Connection) -> list[bool]:
        deleted = DELETE.run(connection, ["a", "c"])
        return ["a" in deleted, "c" in deleted, len(deleted) == 1]

    assert await run(database, write) == [True, False, True]
    assert await database.read(read_values) == {"b": "1"}


async def test_connection_that_broke_while_idle_is_replaced_before_anything_is_sent(
    database: Database, proxy: CommitProxy, unknown_commits: list[str]
) -> None:
    proxy.end_connections()

    await run(database, partial(INSERT.run, rows=[("a", "1")]))

    assert await database.read(read_values) == {"a": "1"}
    assert unknown_commits == []


async def test_connection_that_breaks_before_the_last_round_trip_has_written_nothing(
    database: Database, proxy: CommitProxy, unknown_commits: list[str]
) -> None:
    attempts: list[int] = []

    def write(connection: Connection) -> None:
        attempts.append(1)
        INSERT.run(connection, [("a", "1")])
        if len(attempts) == 1:
            proxy.end_connections()
        read_values(connection)
        UPDATE.run(connection, [("2", "a")])

    await run(database, write)

    assert len(attempts) == 2, "it is certain that nothing was written, so it was run again"
    assert await database.read(read_values) == {"a": "2"}
    assert unknown_commits == []


async def test_connection_that_breaks_between_two_round_trips_has_written_nothing(
    database: Database, proxy: CommitProxy, unknown_commits: list[str]
) -> None:
    attempts: list[int] = []

    def write(connection: Connection) -> None:
        attempts.append(1)
        INSERT.run(connection, [("a", "1")])
        read_values(connection)
        if len(attempts) == 1:
            proxy.end_connections()
        UPDATE.run(connection, [("2", "a")])
        read_values(connection)

    await run(database, write)

    assert (len(attempts), unknown_commits) == (2, [])


def insert_alone(connection: Connection) -> None:
    INSERT.run(connection, [("a", "1")])


def insert_and_update(connection: Connection) -> None:
    INSERT.run(connection, [("a", "1")])
    UPDATE.run(connection, [("1", "a")])


def insert_after_reading(connection: Connection) -> None:
    read_values(connection)
    INSERT.run(connection, [("a", "1")])


def insert_and_read(connection: Connection) -> None:
    INSERT.run(connection, [("a", "1")])
    read_values(connection)


@pytest.mark.parametrize("is_prepared", [False, True])
@pytest.mark.parametrize("write", [insert_alone, insert_and_update, insert_after_reading, insert_and_read])
@pytest.mark.parametrize("loss", CommitLoss)
async def test_outcome_is_unknown_when_the_connection_breaks_in_the_last_round_trip(
    database: Database,
    proxy: CommitProxy,
    unknown_commits: list[str],
    write: Callable[[Connection], None],
    loss: CommitLoss,
    is_prepared: bool,
) -> None:
    if is_prepared:
        await run(database, write)
        await run(database, partial(DELETE.run, keys=["a"]))
    proxy.lose_next(loss)

    with pytest.raises(StoreUnavailable):
        await run(database, write)

    assert proxy.lost[loss] == 1
    await asyncio.sleep(0)
    assert unknown_commits == [NOTIFICATIONS_MISSED]
    expected = {"a": "1"} if loss is CommitLoss.RESPONSE else {}
    assert await database.read(read_values) == expected
    await run(database, partial(INSERT.run, rows=[("b", "1")]))
    assert await database.read(read_values) == {**expected, "b": "1"}
