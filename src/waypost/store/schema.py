"""The schema of a new store, as its engine has it.

The tables are the same everywhere, but for those that grow fastest: PostgreSQL has them in ranges of
their ids, so that what is too old goes by dropping a table. The column that is cut by must be part
of the key there. What SQLite would need an index for, that key gives already.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sqlalchemy import Connection, MetaData, PrimaryKeyConstraint, Table

from waypost.store.tables import attempts, callbacks, inbound_webhooks, message_events, metadata

POSTGRESQL: Final = "postgresql"


class Every(StrEnum):
    """How much time one range covers."""

    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class Ranged:
    """A table that PostgreSQL has in ranges.

    Attributes:
        by: the column it is cut by: an id that begins with its time, or refers to one that does.
        key: the primary key there.
        needless: the index that the key makes needless there.
    """

    table: Table
    by: str
    key: tuple[str, ...]
    every: Every
    needless: str | None = None


# fmt: off
RANGED: Final = (  # Source: decision 0051; what is kept for weeks is cut by weeks
    #      table           by             key                   every
    Ranged(inbound_webhooks,       "id",          ("id",),              Every.WEEK),
    Ranged(callbacks,      "id",          ("id",),              Every.WEEK),
    Ranged(attempts,       "callback_id", ("callback_id", "id"), Every.WEEK,  "ix_attempts_callback_id"),
    Ranged(message_events, "message_id",  ("message_id", "id"), Every.MONTH, "ix_message_events_message_id"),
)
STORAGE: Final[dict[str, str]] = {  # Source: postgresql.org, "Storage Parameters"; the defaults wait for a share of the table
    #                   why
    # small and rewritten all the time: vacuumed by a number of rows, and at once
    "queue_jobs":          "autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000, "
                        "autovacuum_vacuum_cost_delay=0, autovacuum_analyze_scale_factor=0, autovacuum_analyze_threshold=50000",
    "leases":           "autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500, "
                        "autovacuum_vacuum_cost_delay=0, fillfactor=50",
    "processes":        "autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=100, fillfactor=50",
    "rate_windows":     "autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500, fillfactor=50",
    "sequences":        "autovacuum_vacuum_scale_factor=0.05, fillfactor=80",  # counted up in place
    # large: a share of it is more than a day's work; each message is changed some four times soon after it is added
    "messages":         "autovacuum_vacuum_scale_factor=0.01, autovacuum_analyze_scale_factor=0.02, fillfactor=85",
    "webhook_items":    "autovacuum_vacuum_scale_factor=0.02",
}
# fmt: on


def schema_of(dialect: str) -> MetaData:
    """The tables as an engine has them."""
    if dialect != POSTGRESQL:
        return metadata
    schema = MetaData()
    ranged = {one.table.name: one for one in RANGED}
    for table in metadata.sorted_tables:
        copy = table.to_metadata(schema)
        one = ranged.get(table.name)
        if one is None:
            continue
        copy.indexes = {index for index in copy.indexes if index.name != one.needless}
        if len(one.key) > 1:
            copy.c.id.autoincrement = True
            for column in copy.columns:
                column.primary_key = column.name in one.key
            copy.append_constraint(PrimaryKeyConstraint(*(copy.c[name] for name in one.key)))
        copy.dialect_options[POSTGRESQL]["partition_by"] = f"RANGE ({one.by})"
    return schema


def make_schema(connection: Connection) -> None:
    """Make every table in an empty store."""
    dialect = connection.dialect.name
    schema_of(dialect).create_all(connection)
    if dialect != POSTGRESQL:
        return
    for one in RANGED:
        connection.exec_driver_sql(f'CREATE TABLE "{one.table.name}_default" PARTITION OF "{one.table.name}" DEFAULT')
    for name, parameters in STORAGE.items():
        connection.exec_driver_sql(f'ALTER TABLE "{name}" SET ({parameters})')
