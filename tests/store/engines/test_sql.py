"""Many ids by one value: the same rows as by one parameter each, on each engine."""

import pytest
from sqlalchemy import Column, Connection, Integer, MetaData, Table, Text, insert, select

from waypost.store.database import Database
from waypost.store.sql import equals_any

odd_things = Table("odd_things", MetaData(), Column("number", Integer, primary_key=True), Column("word", Text))
WORDS = ("plain", "", "it's", '"quoted" \\ back', "été 🙂", "[1,2]", "NULL", "line\nbreak", "7")
BY_WORD = select(odd_things.c.word).where(equals_any(odd_things.c.word, "words"))
BY_NUMBER = select(odd_things.c.number).where(equals_any(odd_things.c.number, "numbers"))


def make(connection: Connection) -> None:
    odd_things.create(connection)
    rows = [{"number": at, "word": word} for at, word in enumerate(WORDS)]
    connection.execute(insert(odd_things), [*rows, {"number": 99, "word": None}])


def by_word(connection: Connection, words: set[str]) -> set[str]:
    return set(connection.execute(BY_WORD, {"words": words}).scalars())


def by_number(connection: Connection, numbers: set[int]) -> set[int]:
    return set(connection.execute(BY_NUMBER, {"numbers": numbers}).scalars())


async def test_words_are_found_whatever_is_in_them(database: Database) -> None:
    await database.write(make)

    assert await database.read(by_word, set(WORDS)) == set(WORDS)
    for word in WORDS:
        assert await database.read(by_word, {word, "not there"}) == {word}


@pytest.mark.parametrize("asked", [set[int](), {3}, {0, 8, 99, 2**40}])
async def test_numbers_are_found(database: Database, asked: set[int]) -> None:
    await database.write(make)

    assert await database.read(by_number, asked) == asked - {2**40}
