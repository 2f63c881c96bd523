"""Everything that waits at one moment is one transaction, and nobody fails for a neighbour."""

import asyncio
import threading
from collections.abc import Sequence

import pytest
from sqlalchemy import Connection, func, insert, select

from tests.support.stores import Place
from tests.support.waiting import HANGS_AFTER_S
from waypost.base.batching import GroupCommitClosed
from waypost.store.database import Database
from waypost.store.tables import store_facts

OF_EVERY_STORE = ("revision", "works_with")


class Writer:
    """Keeps names, and remembers what came together; can be held up."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.may_go = threading.Event()
        self.may_go.set()

    def write(self, connection: Connection, names: Sequence[str]) -> list[str]:
        self.may_go.wait(5)
        self.batches.append(list(names))
        connection.execute(insert(store_facts), [{"name": name, "value": ""} for name in names])
        if "bad" in names:
            raise ValueError("bad")
        return [name.upper() for name in names]


async def kept(database: Database) -> set[str]:
    """The names in the store."""

    def look(connection: Connection) -> set[str]:
        found = select(store_facts.c.name).where(store_facts.c.name.not_in(OF_EVERY_STORE))
        return set(connection.execute(found).scalars())

    return await database.read(look)


async def test_work_that_waits_at_one_moment_is_one_transaction(database: Database) -> None:
    writer = Writer()
    writer.may_go.clear()
    first = asyncio.ensure_future(database.join(writer.write, "first"))
    await asyncio.sleep(0.01)
    rest = [asyncio.ensure_future(database.join(writer.write, f"n{n}")) for n in range(10)]
    await asyncio.sleep(0.01)

    writer.may_go.set()

    assert await first == "FIRST"
    assert await asyncio.gather(*rest) == [f"N{n}" for n in range(10)]
    assert [len(batch) for batch in writer.batches] == [1, 10]


async def test_lone_caller_waits_for_nobody(database: Database) -> None:
    writer = Writer()

    answer = await database.join(writer.write, "alone")

    assert answer == "ALONE"
    assert writer.batches == [["alone"]]


async def test_only_the_caller_at_fault_sees_the_error(database: Database) -> None:
    writer = Writer()

    answers = await asyncio.gather(
        *(database.join(writer.write, name) for name in ("one", "bad", "two")), return_exceptions=True
    )

    assert answers[0] == "ONE"
    assert isinstance(answers[1], ValueError)
    assert answers[2] == "TWO"
    assert await kept(database) == {"one", "two"}


async def test_different_kinds_of_work_share_a_transaction(database: Database) -> None:
    one, other = Writer(), Writer()

    answers = await asyncio.gather(
        database.join(one.write, "a"), database.join(other.write, "b"), database.join(one.write, "c")
    )

    assert answers == ["A", "B", "C"]
    assert (one.batches, other.batches) == ([["a", "c"]], [["b"]])


async def test_error_rolls_back_what_its_transaction_wrote(database: Database) -> None:
    def write_and_fail(connection: Connection) -> None:
        connection.execute(insert(store_facts), {"name": "half", "value": ""})
        raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        await database.write(write_and_fail)

    assert await kept(database) == set()


async def test_work_of_a_caller_that_went_away_is_committed_all_the_same(database: Database) -> None:
    writer = Writer()
    writer.may_go.clear()
    caller = asyncio.ensure_future(database.join(writer.write, "orphan"))
    await asyncio.sleep(0.01)
    caller.cancel()

    writer.may_go.set()

    await database.join(writer.write, "next")
    assert await kept(database) == {"orphan", "next"}


async def test_close_commits_what_waits_and_refuses_what_comes_after(place: Place) -> None:
    database = Database(place.engine())
    await database.open()
    writer = Writer()
    waiting = [asyncio.ensure_future(database.join(writer.write, f"n{n}")) for n in range(3)]
    await asyncio.sleep(0)

    await database.close()

    assert await asyncio.gather(*waiting) == ["N0", "N1", "N2"]
    with pytest.raises(GroupCommitClosed):
        await database.join(writer.write, "late")


async def test_what_was_answered_is_there_after_reopening(place: Place) -> None:
    database = Database(place.engine())
    await database.open()
    await database.join(Writer().write, "kept")
    await database.close()
    again = Database(place.engine())

    await again.open()

    assert await kept(again) == {"kept"}
    await again.close()


async def test_reader_is_not_held_up_by_the_writer(database: Database) -> None:
    writer = Writer()
    writer.may_go.clear()
    writing = asyncio.ensure_future(database.join(writer.write, "slow"))
    await asyncio.sleep(0.01)

    def count(connection: Connection) -> int:
        return connection.execute(select(func.count()).select_from(store_facts)).scalar_one()

    counted = await asyncio.wait_for(database.read(count), HANGS_AFTER_S)

    writer.may_go.set()
    await writing
    assert counted == len(OF_EVERY_STORE)
