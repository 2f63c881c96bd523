"""Rows kept in memory for whoever asks next: only those that are on disk, each once, within bounds."""

from typing import Final, NamedTuple

import pytest
from sqlalchemy import Connection

from waypost.store.database import Database
from waypost.store.write_through_cache import LARGEST, MOST, Fresh, FreshTable, are_fresh


class Note(NamedTuple):
    """A row of a table that nobody has."""

    id: str
    words: str


NOTES: Final[FreshTable[str, Note]] = FreshTable("notes", lambda row: len(row.words))


def note(connection: Connection, *ids: str) -> None:
    for one in ids:
        note_words(connection, one, "Hello")


def note_words(connection: Connection, row_id: str, words: str) -> None:
    are_fresh(connection, NOTES, [(row_id, Note(row_id, words))])


@pytest.fixture
def fresh(database: Database) -> Fresh:
    """Of a store, after somebody has asked for notes."""
    database.fresh.take(NOTES, ())
    return database.fresh


async def test_a_row_is_given_once(database: Database, fresh: Fresh) -> None:
    await database.write(note, "a", "b")

    first = fresh.take(NOTES, ["b", "c"])

    assert {row_id: row.words for row_id, row in first.items()} == {"b": "Hello"}
    assert list(fresh.take(NOTES, ["a", "b"])) == ["a"]


async def test_rows_that_nobody_asks_for_are_not_kept(database: Database) -> None:
    await database.write(note, "a")

    assert not database.fresh.take(NOTES, ["a"])


async def test_rows_of_a_transaction_that_failed_are_not_kept(database: Database, fresh: Fresh) -> None:
    def note_and_fail(connection: Connection) -> None:
        note(connection, "a")
        raise ValueError("not this time")

    with pytest.raises(ValueError, match="not this time"):
        await database.write(note_and_fail)

    assert not fresh.take(NOTES, ["a"])


async def test_long_rows_are_not_kept(database: Database, fresh: Fresh) -> None:
    await database.write(note_words, "just", "x" * LARGEST)
    await database.write(note_words, "over", "x" * (LARGEST + 1))

    assert list(fresh.take(NOTES, ["just", "over"])) == ["just"]


def test_the_oldest_go_when_there_are_too_many() -> None:
    fresh = Fresh()
    for number in range(MOST + 10):
        fresh.keep({(NOTES, str(number)): Note(str(number), "Hello")})

    assert not fresh.take(NOTES, map(str, range(10)))
    assert len(fresh.take(NOTES, map(str, range(MOST + 10)))) == MOST
