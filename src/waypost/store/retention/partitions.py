"""PostgreSQL's partitions of the tables that grow fastest: created ahead of time, dropped once all rows are too old.

Ids begin with 48 bits of their time, so a range of ids is a range of time. Rows outside every range are in
the table's default partition: a clock that is wrong, or that a test has moved, never fails an insert.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from waypost.base.telemetry.logs import log
from waypost.store.bulk_statements import BULK_STATEMENTS
from waypost.store.schema import PARTITIONED_TABLES, POSTGRESQL, PartitionedTable, PartitionInterval
from waypost.store.tables import callbacks, messages

# fmt: off
PARTITIONS_AHEAD: Final = {  # how many partitions there are after the current one
    PartitionInterval.WEEK:  3,
    PartitionInterval.MONTH: 2,
}
LOCK_LIMITS: Final = (  # adding and dropping a partition blocks the whole table: only for a moment, or retried later
    #  name               value
    ("lock_timeout",      "300ms"),
    ("statement_timeout", "3s"),
)
# fmt: on
BUSY_SQLSTATES: Final = ("55P03", "57014", "40P01")
"""A lock that was not obtained, a statement that took too long, a deadlock."""
UNATTACHABLE_SQLSTATES: Final = ("23514", "42P07", "42P17")
"""Rows of the range are in the default partition already; another process has just created it."""
_BOUNDS: Final = re.compile(r"FROM \('([0-9a-f-]*)'\) TO \('([0-9a-f-]*)'\)")


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition of a table."""

    parent: PartitionedTable
    name: str
    low: str  # the first id in its range
    high: str  # the first id after its range


def floor_id(at_ms: int) -> str:
    """Return the lower bound of all ids of that time and later."""
    digits = f"{max(at_ms, 0):012x}"
    return f"{digits[:8]}-{digits[8:]}"


def required_partitions(now_ms: int) -> list[Partition]:
    """Return the partitions that should exist: the current ones, and those ahead."""
    return [part for partitioned in PARTITIONED_TABLES for part in partitions_since(partitioned, now_ms, now_ms)]


def partitions_since(parent: PartitionedTable, from_ms: int, now_ms: int) -> list[Partition]:
    """Return the partitions of a table from a time on, up to those ahead of now."""
    begin = _interval_start(parent.interval, datetime.fromtimestamp(from_ms / 1000, UTC))
    last = _interval_start(parent.interval, datetime.fromtimestamp(now_ms / 1000, UTC))
    for _ in range(PARTITIONS_AHEAD[parent.interval]):
        last = _next_start(parent.interval, last)
    partitions: list[Partition] = []
    while begin <= last:
        end = _next_start(parent.interval, begin)
        stamp = f"{begin:%Y%m%d}" if parent.interval is PartitionInterval.WEEK else f"{begin:%Y%m}"
        low, high = (floor_id(int(at.timestamp() * 1000)) for at in (begin, end))
        partitions.append(Partition(parent, f"{parent.table.name}_{stamp}", low, high))
        begin = end
    return partitions


def existing_partitions(connection: Connection) -> list[Partition]:
    """Return the existing partitions, oldest first, without default partitions."""
    partitioned_tables = {partitioned.table.name: partitioned for partitioned in PARTITIONED_TABLES}
    rows = connection.execute(_EXISTING_PARTITIONS, {"names": list(partitioned_tables)}).all()
    partitions: list[Partition] = []
    for row in rows:
        if row.bound is None:  # it is being dropped: the catalogue's functions see a drop at once
            continue
        bounds = _BOUNDS.search(row.bound)
        if bounds is not None:
            partitions.append(Partition(partitioned_tables[row.parent], row.name, bounds[1], bounds[2]))
    return sorted(partitions, key=lambda part: (part.parent.table.name, part.low))


def missing_partitions(connection: Connection, now_ms: int) -> list[Partition]:
    """Return the partitions that should exist and do not."""
    existing = {part.name for part in existing_partitions(connection)}
    return [part for part in required_partitions(now_ms) if part.name not in existing]


def create_first_partitions(connection: Connection) -> None:
    """Create the partitions of a new store, in the transaction that creates its tables."""
    if connection.dialect.name != POSTGRESQL:
        return
    now_ms: int = connection.info[BULK_STATEMENTS].now_ms(connection)
    create_partitions(connection, required_partitions(now_ms))


def create_partitions(connection: Connection, partitions: Sequence[Partition]) -> None:
    """Create partitions of empty tables."""
    for part in partitions:
        connection.exec_driver_sql(
            f'CREATE TABLE "{part.name}" PARTITION OF "{part.parent.table.name}" '
            f"FOR VALUES FROM ('{part.low}') TO ('{part.high}')"
        )


def attach_partition(connection: Connection, partition: Partition) -> bool:
    """Add a partition, within a transaction of its own; return False if that is not possible now.

    It is created apart and then attached, which blocks reads and writes of the default partition only.
    """
    table = partition.parent.table.name
    try:
        _set_lock_limits(connection)
        connection.exec_driver_sql(f'CREATE TABLE "{partition.name}" (LIKE "{table}" INCLUDING ALL)')
        connection.exec_driver_sql(
            f'ALTER TABLE "{table}" ATTACH PARTITION "{partition.name}" '
            f"FOR VALUES FROM ('{partition.low}') TO ('{partition.high}')"
        )
    except DBAPIError as error:
        connection.rollback()
        if _sqlstate(error) not in (*BUSY_SQLSTATES, *UNATTACHABLE_SQLSTATES):
            raise
        log("store").info("partition not added", table=partition.name, sqlstate=_sqlstate(error))
        return False
    return True


def past_partitions(connection: Connection, table: str, before: str) -> list[Partition]:
    """Return the partitions of a table in which every id is lower than one."""
    return [part for part in existing_partitions(connection) if part.parent.table.name == table and part.high <= before]


def partition_start_ms(connection: Connection, table: str, at_ms: int) -> int:
    """Return the start of the partition that holds a time; the time itself if no partition holds it.

    Rows of a partition that is not entirely past are not deleted one by one: they go with the partition.
    """
    id_floor = floor_id(at_ms)
    for part in existing_partitions(connection):
        if part.parent.table.name == table and part.low <= id_floor < part.high:
            return int(part.low.replace("-", ""), 16)
    return at_ms


def is_partition_in_use(connection: Connection, partition: Partition) -> bool:
    """Return True if a partition has rows that must be retained although it is old.

    A callback without an outcome, and its attempts; the trace of a message whose row still exists.
    """
    statement = _IN_USE[partition.parent.table.name]
    if statement is None:
        return False
    if int(connection.exec_driver_sql("SHOW server_version_num").scalar_one()) >= 170_000:
        # A scan of a whole partition may take longer than a transaction may
        connection.exec_driver_sql("SET LOCAL transaction_timeout = 0")
    parameters = {"low": partition.low, "high": partition.high}
    return connection.execute(statement, parameters).first() is not None


def drop_partition(connection: Connection, partition: Partition) -> bool:
    """Drop a partition with all its rows, within a transaction of its own; return False if that is not possible now."""
    try:
        _set_lock_limits(connection)
        connection.exec_driver_sql(f'DROP TABLE IF EXISTS "{partition.name}"')
    except DBAPIError as error:
        connection.rollback()
        if _sqlstate(error) not in BUSY_SQLSTATES:
            raise
        return False
    log("store").info("partition dropped", table=partition.name)
    return True


def _set_lock_limits(connection: Connection) -> None:
    for name, value in LOCK_LIMITS:
        connection.exec_driver_sql(f"SET LOCAL {name} = '{value}'")


def _sqlstate(error: DBAPIError) -> str:
    return str(getattr(error.orig, "sqlstate", ""))


def _interval_start(interval: PartitionInterval, at: datetime) -> datetime:
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    return day - timedelta(days=day.weekday()) if interval is PartitionInterval.WEEK else day.replace(day=1)


def _next_start(interval: PartitionInterval, begin: datetime) -> datetime:
    if interval is PartitionInterval.WEEK:
        return begin + timedelta(days=7)
    return (begin + timedelta(days=32)).replace(day=1)


_EXISTING_PARTITIONS: Final = text(
    "SELECT p.relname AS parent, c.relname AS name, pg_get_expr(c.relpartbound, c.oid) AS bound "
    "FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent "
    "WHERE p.relname = ANY(:names) AND p.relnamespace = current_schema()::regnamespace"
)
_OPEN_CALLBACK: Final = text(
    f"SELECT 1 FROM {callbacks.name} WHERE id >= :low AND id < :high AND ended_on_ms IS NULL LIMIT 1"  # noqa: S608
)
_IN_USE: Final = {
    "inbound_webhooks": None,
    "callbacks": _OPEN_CALLBACK,
    "attempts": _OPEN_CALLBACK,
    "message_events": text(
        f"SELECT 1 FROM {messages.name} WHERE id >= :low AND id < :high LIMIT 1"  # noqa: S608
    ),
}
