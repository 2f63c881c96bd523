"""Rows kept in memory for whoever asks next: only those that are on disk, each once, within bounds."""

from typing import Final, NamedTuple

import pytest
from sqlalchemy import Connection

from waypost.store.database import Database
from waypost.store.write_through_cache import (
    MAX_CACHED_ROW_SIZE,
    MAX_CACHED_ROWS,
    CachedTable,
    WriteThroughCache,
    cache_new_rows,
)


class Note(NamedTuple):
    """A row of a table that nobody has."""

    id: str
    words: str


NOTES: Final[CachedTable[str, Note]] = CachedTable("notes", lambda row: len(row.words))


def note(connection: Connection, *ids: str) -> None:
    for one in ids:
        note_words(connection, one, "Hello")


def note_words(connection: Connection, row_id: str, words: str) -> None:
    cache_new_rows(connection, NOTES, [(row_id, Note(row_id, words))])


@pytest.fixture
def fresh(database: Database) -> WriteThroughCache:
    """Of a store, after somebody has asked for notes."""
    database.cache.pop_rows(NOTES, ())
    return database.cache


async def test_a_row_is_given_once(database: Database, fresh: WriteThroughCache) -> None:
    await database.write(note, "a", "b")

    first = fresh.pop_rows(NOTES, ["b", "c"])

    assert {row_id: row.words for row_id, row in first.items()} == {"b": "Hello"}
    assert list(fresh.pop_rows(NOTES, ["a", "b"])) == ["a"]


async def test_rows_that_nobody_asks_for_are_not_kept(database: Database) -> None:
    await database.write(note, "a")

    assert not database.cache.pop_rows(NOTES, ["a"])


async def test_rows_of_a_transaction_that_failed_are_not_kept(database: Database, fresh: WriteThroughCache) -> None:
    def note_and_fail(connection: Connection) -> None:
        note(connection, "a")
        raise ValueError("not this time")

    with pytest.raises(ValueError, match="not this time"):
        await database.write(note_and_fail)

    assert not fresh.pop_rows(NOTES, ["a"])


async def test_long_rows_are_not_kept(database: Database, fresh: WriteThroughCache) -> None:
    await database.write(note_words, "just", "x" * MAX_CACHED_ROW_SIZE)
    await database.write(note_words, "over", "x" * (MAX_CACHED_ROW_SIZE + 1))

    assert list(fresh.pop_rows(NOTES, ["just", "over"])) == ["just"]


def test_the_oldest_go_when_there_are_too_many() -> None:
    fresh = WriteThroughCache()
    for number in range(MAX_CACHED_ROWS + 10):
        fresh.put_rows({(NOTES, str(number)): Note(str(number), "Hello")})

    assert not fresh.pop_rows(NOTES, map(str, range(10)))
    assert len(fresh.pop_rows(NOTES, map(str, range(MAX_CACHED_ROWS + 10)))) == MAX_CACHED_ROWS
