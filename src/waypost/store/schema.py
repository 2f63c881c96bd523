"""The schema of a new store on each engine.

The tables are the same on both, except for those that grow fastest: PostgreSQL partitions them by
ranges of their ids, so that old rows are deleted by dropping a table. The partitioning column must be
part of the key there, and that key replaces the index that SQLite needs.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sqlalchemy import Connection, MetaData, PrimaryKeyConstraint, Table
from sqlalchemy.util import OrderedSet

from waypost.store.tables import attempts, callbacks, inbound_webhooks, message_events, metadata

POSTGRESQL: Final = "postgresql"


class PartitionInterval(StrEnum):
    """Length of time that one partition covers."""

    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class PartitionedTable:
    """A table that PostgreSQL partitions by ranges."""

    table: Table
    column: str  # the column that partitions it: an id that begins with its time, or refers to one that does
    primary_key: tuple[str, ...]  # the primary key there
    interval: PartitionInterval
    redundant_index: str | None = None  # the index that the key replaces there


PARTITIONED_TABLES: Final = (  # Source: decision 0051; what is retained for weeks is partitioned by weeks
    # table, column, primary key, interval
    PartitionedTable(inbound_webhooks, "id", ("id",), PartitionInterval.WEEK),
    PartitionedTable(callbacks, "id", ("id",), PartitionInterval.WEEK),
    PartitionedTable(attempts, "callback_id", ("callback_id", "id"), PartitionInterval.WEEK, "ix_attempts_callback_id"),
    PartitionedTable(
        message_events,
        column="message_id",
        primary_key=("message_id", "id"),
        interval=PartitionInterval.MONTH,
        redundant_index="ix_message_events_message_id",
    ),
)
STORAGE_PARAMETERS: Final[
    dict[str, str]
] = {  # Source: postgresql.org, "Storage Parameters"; the defaults wait for a fraction of the table
    #                   reason
    # small and rewritten constantly: vacuumed after a number of rows, without delay
    "queue_jobs": "autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000, "
    "autovacuum_vacuum_cost_delay=0, autovacuum_analyze_scale_factor=0, autovacuum_analyze_threshold=50000",
    "leases": "autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500, "
    "autovacuum_vacuum_cost_delay=0, fillfactor=50",
    "processes": "autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=100, fillfactor=50",
    "rate_windows": "autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500, fillfactor=50",
    "sequences": "autovacuum_vacuum_scale_factor=0.05, fillfactor=80",  # counted up in place
    # large: the default fraction is more than a day's rows; each message is updated four times soon after its insert
    "messages": "autovacuum_vacuum_scale_factor=0.01, autovacuum_analyze_scale_factor=0.02, fillfactor=85",
    "webhook_items": "autovacuum_vacuum_scale_factor=0.02",
}


def build_schema(dialect: str) -> MetaData:
    """Return the tables as an engine has them."""
    if dialect != POSTGRESQL:
        return metadata
    schema = MetaData()
    partitioned_tables = {table.table.name: table for table in PARTITIONED_TABLES}
    for table in metadata.sorted_tables:
        copy = table.to_metadata(schema)
        partitioned = partitioned_tables.get(table.name)
        if partitioned is None:
            continue
        copy.indexes = {index for index in copy.indexes if index.name != partitioned.redundant_index}
        if len(partitioned.primary_key) > 1:
            copy.c.id.autoincrement = True
            for column in copy.columns:
                column.primary_key = column.name in partitioned.primary_key
            copy.append_constraint(PrimaryKeyConstraint(*(copy.c[name] for name in partitioned.primary_key)))
        copy.dialect_options[POSTGRESQL]["partition_by"] = f"RANGE ({partitioned.column})"
    return schema


def create_schema(connection: Connection) -> None:
    """Create every table in an empty store."""
    dialect = connection.dialect.name
    schema = build_schema(dialect)
    for table in schema.tables.values():
        # SQLAlchemy has them in a set: their order, and with it the pages of a file, would follow from addresses
        table.indexes = OrderedSet(sorted(table.indexes, key=lambda index: str(index.name)))
    schema.create_all(connection)
    if dialect != POSTGRESQL:
        return
    for partitioned in PARTITIONED_TABLES:
        connection.exec_driver_sql(
            f'CREATE TABLE "{partitioned.table.name}_default" PARTITION OF "{partitioned.table.name}" DEFAULT'
        )
    # Callbacks are jobs too: their positions come from the sequence of the other jobs
    connection.exec_driver_sql(
        f"ALTER TABLE {callbacks.name} ALTER COLUMN position SET DEFAULT nextval('queue_jobs_position_seq')"
    )
    for name, parameters in STORAGE_PARAMETERS.items():
        connection.exec_driver_sql(f'ALTER TABLE "{name}" SET ({parameters})')
