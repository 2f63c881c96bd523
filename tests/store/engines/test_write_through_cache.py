"""Rows cached in memory for the next reader: only committed ones, each returned once, within bounds."""

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
    """A row of a table that exists only here."""

    id: str
    text: str


NOTES: Final[CachedTable[str, Note]] = CachedTable("notes", lambda row: row.text)


def cache_notes(connection: Connection, *ids: str) -> None:
    for row_id in ids:
        cache_note_text(connection, row_id, "Hello")


def cache_note_text(connection: Connection, row_id: str, text: str) -> None:
    cache_new_rows(connection, NOTES, [Note(row_id, text)])


@pytest.fixture
def cache(database: Database) -> WriteThroughCache:
    """The cache of a store, after a first read of notes."""
    database.cache.pop_rows(NOTES, ())
    return database.cache


async def test_row_is_returned_once(database: Database, cache: WriteThroughCache) -> None:
    await database.write(cache_notes, "a", "b")

    first = cache.pop_rows(NOTES, ["b", "c"])

    assert {row_id: row.text for row_id, row in first.items()} == {"b": "Hello"}
    assert list(cache.pop_rows(NOTES, ["a", "b"])) == ["a"]


async def test_rows_of_a_table_that_is_never_read_are_not_cached(database: Database) -> None:
    await database.write(cache_notes, "a")

    assert not database.cache.pop_rows(NOTES, ["a"])


async def test_rows_of_a_failed_transaction_are_not_cached(database: Database, cache: WriteThroughCache) -> None:
    def cache_and_fail(connection: Connection) -> None:
        cache_notes(connection, "a")
        raise ValueError("not this time")

    with pytest.raises(ValueError, match="not this time"):
        await database.write(cache_and_fail)

    assert not cache.pop_rows(NOTES, ["a"])


async def test_long_rows_are_not_cached(database: Database, cache: WriteThroughCache) -> None:
    await database.write(cache_note_text, "just", "x" * MAX_CACHED_ROW_SIZE)
    await database.write(cache_note_text, "over", "x" * (MAX_CACHED_ROW_SIZE + 1))

    assert list(cache.pop_rows(NOTES, ["just", "over"])) == ["just"]


def test_oldest_rows_are_dropped_when_there_are_too_many() -> None:
    cache = WriteThroughCache()
    for number in range(MAX_CACHED_ROWS + 10):
        cache.put_rows({(NOTES, str(number)): Note(str(number), "Hello")})

    assert not cache.pop_rows(NOTES, map(str, range(10)))
    assert len(cache.pop_rows(NOTES, map(str, range(MAX_CACHED_ROWS + 10)))) == MAX_CACHED_ROWS
