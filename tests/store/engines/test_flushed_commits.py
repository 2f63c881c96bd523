"""PostgreSQL: a commit is acknowledged only where the server waits for what makes it durable."""

import asyncio
from collections.abc import Callable, Iterator, Sequence

import psycopg
import pytest
from sqlalchemy import Connection, insert, select

from tests.support.polling import poll_until
from tests.support.postgres import UNSAFE, Server, running_server
from tests.support.store_locations import PostgresLocation
from waypost.store.bulk_statements import BulkInsert, BulkUpdate
from waypost.store.contract import StoreUnavailable
from waypost.store.database import Database
from waypost.store.engines.postgresql import PostgresEngine
from waypost.store.tables import store_properties


@pytest.fixture
def engine() -> str:
    """The only engine that has such settings."""
    return "postgresql"


@pytest.mark.parametrize(("set_to", "expected"), [("off", "on"), ("on", "on"), ("remote_apply", "remote_apply")])
async def test_each_commit_waits_for_its_flush_whatever_the_servers_default_is(
    store_location: PostgresLocation, set_to: str, expected: str
) -> None:
    database = Database(PostgresEngine(f"{store_location.url}?options=-c%20synchronous_commit%3D{set_to}"))
    await database.open()

    settings = [await database.write(_setting), await database.write_in_background(_setting)]

    await database.close()
    assert settings == [expected, expected]


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server whose settings a test may change."""
    with running_server({**UNSAFE, "synchronous_commit": "on"}) as server:
        yield server


def _add_fact(connection: Connection, items: Sequence[None]) -> list[None]:
    connection.execute(insert(store_properties), {"name": "a fact", "value": ""})
    return list(items)


def _add_fact_alone(connection: Connection, items: Sequence[None]) -> list[None]:
    _INSERT.run(connection, [("a fact", "")])
    return list(items)


def _add_fact_with_others(connection: Connection, items: Sequence[None]) -> list[None]:
    _INSERT.run(connection, [("a fact", "")])
    _UPDATE.run(connection, [("1", "a fact")])
    return list(items)


@pytest.mark.parametrize("write", [_add_fact, _add_fact_alone, _add_fact_with_others])
async def test_commit_that_was_cut_off_from_its_standby_is_not_acknowledged(
    own_server: Server, write: Callable[[Connection, Sequence[None]], list[None]]
) -> None:
    database = Database(PostgresEngine(own_server.url()))
    await database.open()
    with psycopg.connect(own_server.url(), autocommit=True) as admin:
        admin.execute("ALTER SYSTEM SET synchronous_standby_names = 'one_that_is_not_there'")
        admin.execute("SELECT pg_reload_conf()")

        async def read_standbys() -> str:
            return await database.join(_standbys, None)

        await poll_until(read_standbys)  # the writer's process has read them

        async def cut_off() -> int:
            return len(admin.execute(_CANCEL_WAITING).fetchall())

        # A commit waits once the server's checkpointer has read them, too, which nothing shows but a commit.
        async with await psycopg.AsyncConnection.connect(own_server.url(), autocommit=True) as other:
            await other.execute("SET synchronous_commit = on")
            committing = asyncio.ensure_future(other.execute(_COMMIT_NOTHING))

            async def cut_off_another() -> int:
                nonlocal committing
                if committing.done():
                    committing = asyncio.ensure_future(other.execute(_COMMIT_NOTHING))
                return await cut_off()

            await poll_until(cut_off_another)
            await committing
        writing = asyncio.ensure_future(database.join(write, None))
        await poll_until(cut_off)
        with pytest.raises(StoreUnavailable):
            await writing
        admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
        admin.execute("SELECT pg_reload_conf()")

    assert await database.read(_count_facts) == 1, "it is stored: it must not be run again"
    await database.close()


def _setting(connection: Connection) -> str:
    return connection.exec_driver_sql("SHOW synchronous_commit").scalar_one()


def _standbys(connection: Connection, items: Sequence[None]) -> list[str]:
    return [connection.exec_driver_sql("SHOW synchronous_standby_names").scalar_one() for _ in items]


def _count_facts(connection: Connection) -> int:
    query = select(store_properties.c.name).where(store_properties.c.name == "a fact")
    return len(connection.execute(query).all())


_INSERT = BulkInsert(store_properties, "name", "value")
_UPDATE = BulkUpdate(store_properties, "name", "value")
_COMMIT_NOTHING = "SELECT pg_logical_emit_message(true, 'a', 'b')"
_CANCEL_WAITING = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
