"""Statements compiled once write what Core itself would have written."""

from sqlalchemy import Connection, select

from waypost.store.bulk_statements import BulkDelete, BulkInsert, BulkUpdate
from waypost.store.database import Database
from waypost.store.tables import store_facts

COLUMNS = store_facts.c
ADD = BulkInsert(store_facts, "value", "name")  # not the order of the table's columns
CHANGE = BulkUpdate(store_facts, "name", "value")
DROP = BulkDelete(store_facts, "name")


def facts(connection: Connection) -> dict[str, str]:
    rows = connection.execute(select(store_facts).where(COLUMNS.name.not_in(("revision", "works_with"))))
    return {row.name: row.value for row in rows}


async def test_prepared_statements_write_each_value_where_it_belongs(database: Database) -> None:
    await database.write(ADD.run, [{"name": "a", "value": "1"}, {"name": "b", "value": "2", "more": "is left out"}])
    await database.write(CHANGE.run, [{"at": "a", "value": "3"}])
    found = await database.read(facts)

    await database.write(DROP.run, ["a", "b"])
    await database.write(ADD.run, [])

    assert found == {"a": "3", "b": "2"}
    assert await database.read(facts) == {}
