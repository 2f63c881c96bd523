"""A new store is the same whatever the addresses of SQLAlchemy's objects are: runs of the simulation repeat."""

from itertools import groupby

from sqlalchemy import create_engine, text

from waypost.store.schema import create_schema


def test_indexes_of_a_table_are_created_in_the_order_of_their_names() -> None:
    query = "SELECT tbl_name, name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY rowid"
    with create_engine("sqlite://").connect() as connection:
        create_schema(connection)
        created = connection.execute(text(query)).all()

    names = [[name for _, name in of_table] for _, of_table in groupby(created, key=lambda row: row.tbl_name)]
    assert max(map(len, names)) > 2
    assert names == [sorted(each) for each in names]
