"""The counter of written rows, which `make bench` uses: every row once, in each kind of table, on each engine."""

from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from benchmarks.row_counts import OPERATIONS, ROW_COUNTERS, RowCounter
from benchmarks.seeding import connect_store
from benchmarks.stores import Store
from benchmarks.written_rows import message_rows
from tests.support.store_locations import StoreLocation
from waypost.store.tables import metadata

# fmt: off
TABLES: Final = {  # of each engine: the kinds of table that a store has
    "sqlite": {
        "with_rowid":    "CREATE TABLE with_rowid (id TEXT PRIMARY KEY, n INTEGER)",
        "without_rowid": "CREATE TABLE without_rowid (id TEXT PRIMARY KEY, n INTEGER) WITHOUT ROWID",
    },
    "postgresql": {
        "plain":         "CREATE TABLE plain (id TEXT PRIMARY KEY, n INTEGER)",
        "partitioned":   "CREATE TABLE partitioned (id TEXT PRIMARY KEY, n INTEGER) PARTITION BY RANGE (id); "
                         "CREATE TABLE partitioned_low PARTITION OF partitioned FOR VALUES FROM ('a') TO ('c'); "
                         "CREATE TABLE partitioned_default PARTITION OF partitioned DEFAULT",
    },
}
CASES: Final = [(engine, table) for engine, tables in TABLES.items() for table in tables]
# fmt: on


@pytest.fixture
def store(engine: str, tmp_path: Path, store_location: StoreLocation) -> Store:
    """The location as the benchmarks describe it."""
    return Store(engine, tmp_path, store_location.settings.get("database_url"))


def started_counter(store: Store, *tables: str) -> RowCounter:
    """Create the tables, and return a counter of their rows."""
    run(store, *(TABLES[store.engine][table] for table in tables))
    counter = ROW_COUNTERS[store.engine](store, tables)
    counter.start()
    return counter


def run(store: Store, *statements: str) -> None:
    """Run statements in one transaction."""
    with connect_store(store) as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
        connection.commit()


@pytest.mark.parametrize(("engine", "table"), CASES)
def test_each_written_row_is_counted_once(store: Store, table: str) -> None:
    counter = started_counter(store, table)
    before = counter.read()

    run(
        store,
        f"INSERT INTO {table} VALUES ('a', 1), ('b', 1), ('x', 1)",
        f"INSERT INTO {table} VALUES ('a', 2) ON CONFLICT DO NOTHING",
        f"INSERT INTO {table} VALUES ('b', 2) ON CONFLICT (id) DO UPDATE SET n = excluded.n",
        f"UPDATE {table} SET n = 3 WHERE id = 'x'",
        f"DELETE FROM {table} WHERE id = 'a'",
    )
    run(store, f"DELETE FROM {table}")

    assert counter.read() - before == {(table, "insert"): 3, (table, "update"): 2, (table, "delete"): 3}


@pytest.mark.parametrize("engine", TABLES)
def test_only_the_given_tables_are_counted(store: Store) -> None:
    table, other = TABLES[store.engine]
    counter = started_counter(store, table)

    run(store, TABLES[store.engine][other], f"INSERT INTO {other} VALUES ('a', 1)")

    assert {name for name, _ in counter.read()} == {table}


@pytest.mark.parametrize("engine", TABLES)
def test_every_table_of_the_store_is_counted_and_measured(store: Store) -> None:
    counter = ROW_COUNTERS[store.engine](store, metadata.tables)
    counter.start()

    assert set(counter.read()) == {(table, operation) for table in metadata.tables for operation in OPERATIONS}
    assert sum(counter.read_sizes().values()) > 0


@pytest.mark.parametrize(("engine", "table"), CASES)
def test_size_grows_with_the_rows(store: Store, table: str) -> None:
    counter = started_counter(store, table)
    before = sum(counter.read_sizes().values())

    run(store, *(f"INSERT INTO {table} VALUES ('{n:01000}', 1)" for n in range(100)))

    assert sum(counter.read_sizes().values()) - before >= 100 * 1000


def test_rows_that_an_idle_run_writes_belong_to_no_message() -> None:
    loaded = Counter({("messages", "insert"): 500, ("leases", "update"): 512, ("jobs", "delete"): 501})
    idle = Counter({("leases", "update"): 768, ("jobs", "delete"): 1})

    assert message_rows(loaded, idle) == {("messages", "insert"): 500, ("jobs", "delete"): 500}
