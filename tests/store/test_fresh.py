"""Rows kept in memory for whoever asks next: only those that are on disk, each once, within bounds."""

import pytest
from sqlalchemy import Connection

from waypost.store.database import Database
from waypost.store.fresh import LARGEST, MOST, Fresh, are_fresh


def note(connection: Connection, *ids: str) -> None:
    for one in ids:
        note_words(connection, one, "Hello")


def note_words(connection: Connection, row_id: str, words: str) -> None:
    are_fresh(connection, "notes", [{"id": row_id, "words": words}], "words")


@pytest.fixture
def fresh(database: Database) -> Fresh:
    """Of a store, after somebody has asked for notes."""
    database.fresh.take("notes", ())
    return database.fresh


async def test_a_row_is_given_once(database: Database, fresh: Fresh) -> None:
    await database.write(note, "a", "b")

    first = fresh.take("notes", ["b", "c"])

    assert {row_id: row.words for row_id, row in first.items()} == {"b": "Hello"}
    assert list(fresh.take("notes", ["a", "b"])) == ["a"]


async def test_rows_that_nobody_asks_for_are_not_kept(database: Database) -> None:
    await database.write(note, "a")

    assert not database.fresh.take("notes", ["a"])


async def test_rows_of_a_transaction_that_failed_are_not_kept(database: Database, fresh: Fresh) -> None:
    def note_and_fail(connection: Connection) -> None:
        note(connection, "a")
        raise ValueError("not this time")

    with pytest.raises(ValueError, match="not this time"):
        await database.write(note_and_fail)

    assert not fresh.take("notes", ["a"])


async def test_long_rows_are_not_kept(database: Database, fresh: Fresh) -> None:
    await database.write(note_words, "just", "x" * LARGEST)
    await database.write(note_words, "over", "x" * (LARGEST + 1))

    assert list(fresh.take("notes", ["just", "over"])) == ["just"]


def test_the_oldest_go_when_there_are_too_many() -> None:
    fresh = Fresh()
    for number in range(MOST + 10):
        fresh.keep({("notes", number): {"id": number}})

    assert not fresh.take("notes", range(10))
    assert len(fresh.take("notes", range(MOST + 10))) == MOST
