"""Statements compiled once write what Core itself would have written."""

from sqlalchemy import Connection, select

from waypost.store.bulk_statements import BulkDelete, BulkInsert, BulkUpdate
from waypost.store.database import Database
from waypost.store.tables import store_properties

COLUMNS = store_properties.c
INSERT = BulkInsert(store_properties, "value", "name")  # not the order of the table's columns
UPDATE = BulkUpdate(store_properties, "name", "value")
DELETE = BulkDelete(store_properties, "name")


def facts(connection: Connection) -> dict[str, str]:
    rows = connection.execute(select(store_properties).where(COLUMNS.name.not_in(("revision", "works_with"))))
    return {row.name: row.value for row in rows}


async def test_prepared_statements_write_each_value_where_it_belongs(database: Database) -> None:
    await database.write(INSERT.run, [("1", "a"), ("2", "b")])
    await database.write(UPDATE.run, [("3", "a")])
    stored = await database.read(facts)

    await database.write(DELETE.run, ["a", "b"])
    await database.write(INSERT.run, [])

    assert stored == {"a": "3", "b": "2"}
    assert await database.read(facts) == {}
