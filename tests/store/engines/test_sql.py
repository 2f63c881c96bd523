"""Many ids by one value: the same rows as by one parameter each, on each engine."""

import pytest
from sqlalchemy import Column, Connection, Integer, MetaData, Table, Text, insert, select

from waypost.store.database import Database
from waypost.store.sql import equals_any

sample_texts = Table("sample_texts", MetaData(), Column("number", Integer, primary_key=True), Column("word", Text))
TEXTS = ("plain", "", "it's", '"quoted" \\ back', "été 🙂", "[1,2]", "NULL", "line\nbreak", "7")
BY_TEXT = select(sample_texts.c.word).where(equals_any(sample_texts.c.word, "texts"))
BY_NUMBER = select(sample_texts.c.number).where(equals_any(sample_texts.c.number, "numbers"))


def create_table(connection: Connection) -> None:
    sample_texts.create(connection)
    rows = [{"number": at, "word": text} for at, text in enumerate(TEXTS)]
    connection.execute(insert(sample_texts), [*rows, {"number": 99, "word": None}])


def select_by_text(connection: Connection, texts: set[str]) -> set[str]:
    return set(connection.execute(BY_TEXT, {"texts": texts}).scalars())


def select_by_number(connection: Connection, numbers: set[int]) -> set[int]:
    return set(connection.execute(BY_NUMBER, {"numbers": numbers}).scalars())


async def test_texts_are_found_whatever_they_contain(database: Database) -> None:
    await database.write(create_table)

    assert await database.read(select_by_text, set(TEXTS)) == set(TEXTS)
    for text in TEXTS:
        assert await database.read(select_by_text, {text, "not there"}) == {text}


@pytest.mark.parametrize("numbers", [set[int](), {3}, {0, 8, 99, 2**40}])
async def test_numbers_are_found(database: Database, numbers: set[int]) -> None:
    await database.write(create_table)

    assert await database.read(select_by_number, numbers) == numbers - {2**40}
