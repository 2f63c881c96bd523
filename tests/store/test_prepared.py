"""Statements compiled once write what Core itself would have written."""

from pathlib import Path

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from waypost.store.database import Database
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.prepared import Prepared
from waypost.store.tables import store_facts

COLUMNS = store_facts.c
ADD = Prepared(insert(store_facts), "value", "name")  # not the order of the table's columns
CHANGE = Prepared(
    update(store_facts).where(COLUMNS.name == bindparam("at")).values(value=bindparam("new_value"))
)
DROP = Prepared(delete(store_facts).where(COLUMNS.name == bindparam("at")))


def facts(connection: Connection) -> dict[str, str]:
    rows = connection.execute(select(store_facts).where(COLUMNS.name != "revision"))
    return {row.name: row.value for row in rows}


async def test_prepared_statements_write_each_value_where_it_belongs(tmp_path: Path) -> None:
    database = Database(SqliteEngine(tmp_path / "waypost.db"))
    await database.open()
    await database.write(
        ADD.run, [{"name": "a", "value": "1"}, {"name": "b", "value": "2", "more": "is left out"}]
    )
    await database.write(CHANGE.run, [{"at": "a", "new_value": "3"}])
    found = await database.read(facts)

    await database.write(DROP.run, [{"at": "a"}, {"at": "b"}])
    await database.write(ADD.run, [])

    assert found == {"a": "3", "b": "2"}
    assert await database.read(facts) == {}
    await database.close()
