"""Concurrent writes share one transaction, and no caller fails because of another's work."""

import asyncio
import threading
from collections.abc import Sequence

import pytest
from sqlalchemy import Connection, func, insert, select

from tests.support.polling import HANGS_AFTER_S
from tests.support.store_locations import StoreLocation
from waypost.base.batching import GroupCommitClosed
from waypost.store.database import Database
from waypost.store.tables import store_properties

DEFAULT_FACTS = ("revision", "works_with")


class Writer:
    """Stores names, and records its batches; can be blocked."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.may_continue = threading.Event()
        self.may_continue.set()

    def write(self, connection: Connection, names: Sequence[str]) -> list[str]:
        self.may_continue.wait(5)
        self.batches.append(list(names))
        connection.execute(insert(store_properties), [{"name": name, "value": ""} for name in names])
        if "bad" in names:
            raise ValueError("bad")
        return [name.upper() for name in names]


async def stored_names(database: Database) -> set[str]:
    """Return the names in the store."""

    def read_names(connection: Connection) -> set[str]:
        query = select(store_properties.c.name).where(store_properties.c.name.not_in(DEFAULT_FACTS))
        return set(connection.execute(query).scalars())

    return await database.read(read_names)


async def test_concurrent_writes_are_one_transaction(database: Database) -> None:
    writer = Writer()
    writer.may_continue.clear()
    first = asyncio.ensure_future(database.join(writer.write, "first"))
    await asyncio.sleep(0.01)
    rest = [asyncio.ensure_future(database.join(writer.write, f"n{n}")) for n in range(10)]
    await asyncio.sleep(0.01)

    writer.may_continue.set()

    assert await first == "FIRST"
    assert await asyncio.gather(*rest) == [f"N{n}" for n in range(10)]
    assert [len(batch) for batch in writer.batches] == [1, 10]


async def test_single_caller_does_not_wait_for_others(database: Database) -> None:
    writer = Writer()

    result = await database.join(writer.write, "alone")

    assert result == "ALONE"
    assert writer.batches == [["alone"]]


async def test_only_the_caller_at_fault_sees_the_error(database: Database) -> None:
    writer = Writer()

    results = await asyncio.gather(
        *(database.join(writer.write, name) for name in ("one", "bad", "two")), return_exceptions=True
    )

    assert results[0] == "ONE"
    assert isinstance(results[1], ValueError)
    assert results[2] == "TWO"
    assert await stored_names(database) == {"one", "two"}


async def test_different_kinds_of_work_share_a_transaction(database: Database) -> None:
    first, second = Writer(), Writer()

    results = await asyncio.gather(
        database.join(first.write, "a"), database.join(second.write, "b"), database.join(first.write, "c")
    )

    assert results == ["A", "B", "C"]
    assert (first.batches, second.batches) == ([["a", "c"]], [["b"]])


async def test_error_rolls_back_what_its_transaction_wrote(database: Database) -> None:
    def write_and_fail(connection: Connection) -> None:
        connection.execute(insert(store_properties), {"name": "half", "value": ""})
        raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        await database.write(write_and_fail)

    assert await stored_names(database) == set()


async def test_work_of_a_cancelled_caller_is_still_committed(database: Database) -> None:
    writer = Writer()
    writer.may_continue.clear()
    caller = asyncio.ensure_future(database.join(writer.write, "orphan"))
    await asyncio.sleep(0.01)
    caller.cancel()

    writer.may_continue.set()

    await database.join(writer.write, "next")
    assert await stored_names(database) == {"orphan", "next"}


async def test_close_commits_pending_work_and_rejects_later_work(store_location: StoreLocation) -> None:
    database = Database(store_location.engine())
    await database.open()
    writer = Writer()
    pending = [asyncio.ensure_future(database.join(writer.write, f"n{n}")) for n in range(3)]
    await asyncio.sleep(0)

    await database.close()

    assert await asyncio.gather(*pending) == ["N0", "N1", "N2"]
    with pytest.raises(GroupCommitClosed):
        await database.join(writer.write, "late")


async def test_acknowledged_work_is_stored_after_reopening(store_location: StoreLocation) -> None:
    database = Database(store_location.engine())
    await database.open()
    await database.join(Writer().write, "kept")
    await database.close()
    reopened = Database(store_location.engine())

    await reopened.open()

    assert await stored_names(reopened) == {"kept"}
    await reopened.close()


async def test_reader_is_not_blocked_by_the_writer(database: Database) -> None:
    writer = Writer()
    writer.may_continue.clear()
    writing = asyncio.ensure_future(database.join(writer.write, "slow"))
    await asyncio.sleep(0.01)

    def count(connection: Connection) -> int:
        return connection.execute(select(func.count()).select_from(store_properties)).scalar_one()

    counted = await asyncio.wait_for(database.read(count), HANGS_AFTER_S)

    writer.may_continue.set()
    await writing
    assert counted == len(DEFAULT_FACTS)
