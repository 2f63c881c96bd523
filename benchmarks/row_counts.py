"""The rows that a store has written since its creation, by table and operation, and its size; counted by the engine.

A stopped service is required: SQLite's triggers are created between two runs, and PostgreSQL's sessions
report what they have written when they end.
"""

import time
from collections import Counter
from collections.abc import Iterable
from typing import Protocol

from sqlalchemy import Connection, text

from benchmarks.seeding import connect_store
from benchmarks.stores import Store

RowCounts = Counter[tuple[str, str]]
"""The number of rows by the name of the table and the operation."""

OPERATIONS = ("insert", "update", "delete")
SESSIONS_END_WITHIN_S = 30


class RowCounter(Protocol):
    """Counts the rows that are written in some tables of one store. Call its methods while no service runs."""

    def start(self) -> None:
        """Prepare the store, after its tables have been created."""
        ...

    def read(self) -> RowCounts:
        """Return the rows that have been written; only differences between two calls mean anything."""
        ...

    def read_sizes(self) -> dict[str, int]:
        """Return the bytes of each table with its indexes; the sum is the size of the store."""
        ...


class SqliteRowCounter:
    """Counts with triggers that write to a table of their own.

    A trigger runs for each row, also of a table WITHOUT ROWID, and also where a delete without a
    condition would otherwise empty the table in one step. `INSERT OR REPLACE` is counted as an
    insert only: the delete in it runs no trigger.
    """

    _TABLE = "benchmark_row_counts"
    _SIZES = (
        "SELECT tbl_name AS name, sum(pgsize) AS bytes FROM dbstat "
        "JOIN sqlite_schema AS objects ON objects.name = dbstat.name GROUP BY tbl_name"
    )

    def __init__(self, store: Store, tables: Iterable[str]) -> None:
        self._store = store
        self._tables = list(tables)

    def start(self) -> None:
        """See `RowCounter`."""
        with connect_store(self._store) as connection:
            connection.exec_driver_sql(
                f"CREATE TABLE {self._TABLE} (name TEXT, operation TEXT, count INTEGER, "
                "PRIMARY KEY (name, operation)) WITHOUT ROWID"
            )
            for table in self._tables:
                for operation in OPERATIONS:
                    connection.exec_driver_sql(f"INSERT INTO {self._TABLE} VALUES (?, ?, 0)", (table, operation))
                    connection.exec_driver_sql(
                        f'CREATE TRIGGER "count_{operation}_{table}" AFTER {operation} ON "{table}" BEGIN '
                        f"UPDATE {self._TABLE} SET count = count + 1 "
                        f"WHERE name = '{table}' AND operation = '{operation}'; END"
                    )
            connection.commit()

    def read(self) -> RowCounts:
        """See `RowCounter`."""
        with connect_store(self._store) as connection:
            rows = connection.exec_driver_sql(f"SELECT name, operation, count FROM {self._TABLE}")
            return Counter({(row.name, row.operation): row.count for row in rows})

    def read_sizes(self) -> dict[str, int]:
        """See `RowCounter`: pages of the file after a checkpoint; those of no table (free ones) are at the empty name."""
        sizes: dict[str, int] = {}
        with connect_store(self._store) as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            [[pages]] = connection.exec_driver_sql("PRAGMA page_count").all()
            [[page_bytes]] = connection.exec_driver_sql("PRAGMA page_size").all()
            if "ENABLE_DBSTAT_VTAB" in connection.exec_driver_sql("PRAGMA compile_options").scalars().all():
                sizes = {row.name: row.bytes for row in connection.exec_driver_sql(self._SIZES)}
        return {**sizes, "": pages * page_bytes - sum(sizes.values())}


class PostgresRowCounter:
    """Counts with the statistics of the server; partitions are added to the table that they belong to.

    A session reports its statistics at the latest when it ends, before it disappears from
    `pg_stat_activity`. So they are complete when no session is left, and no time has to be guessed.
    """

    _OTHERS = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    _COUNTS = text(
        "SELECT root::regclass::text AS name, sum(n_tup_ins) AS inserts, sum(n_tup_upd) AS updates, "
        "sum(n_tup_del) AS deletes FROM (SELECT coalesce(pg_partition_root(relid), relid) AS root, * "
        "FROM pg_stat_user_tables WHERE schemaname = current_schema()) AS tables GROUP BY root"
    )
    _SIZES = text(
        "SELECT root::regclass::text AS name, sum(bytes) AS bytes FROM (SELECT "
        "coalesce(pg_partition_root(oid), oid) AS root, pg_total_relation_size(oid) AS bytes FROM pg_class "
        "WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace) AS tables GROUP BY root"
    )

    def __init__(self, store: Store, tables: Iterable[str]) -> None:
        self._store = store
        self._tables = set(tables)

    def start(self) -> None:
        """See `RowCounter`: the server counts always."""

    def read(self) -> RowCounts:
        """See `RowCounter`."""
        with connect_store(self._store) as connection:
            self._wait_for_sessions(connection)
            rows = connection.execute(self._COUNTS).all()
        return Counter({
            (row.name, operation): int(count)
            for row in rows
            if row.name in self._tables
            for operation, count in zip(OPERATIONS, (row.inserts, row.updates, row.deletes), strict=True)
        })  # fmt: skip

    def read_sizes(self) -> dict[str, int]:
        """See `RowCounter`: after VACUUM, which frees the rows that were deleted or replaced, as SQLite does at once."""
        with connect_store(self._store) as connection:
            self._wait_for_sessions(connection)
            connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("VACUUM")
            rows = connection.execute(self._SIZES).all()
        return {row.name: int(row.bytes) for row in rows if row.name in self._tables}

    def _wait_for_sessions(self, connection: Connection) -> None:
        """Return when no other session uses the database.

        Raises:
            TimeoutError: a service is running.
        """
        deadline_s = time.monotonic() + SESSIONS_END_WITHIN_S
        while connection.exec_driver_sql(self._OTHERS).scalar_one():
            if time.monotonic() > deadline_s:
                raise TimeoutError("other sessions use the database")
            connection.rollback()  # the view shows one state for each transaction
            time.sleep(0.05)
        connection.rollback()


ROW_COUNTERS = {"sqlite": SqliteRowCounter, "postgresql": PostgresRowCounter}
"""The counter of each engine."""
