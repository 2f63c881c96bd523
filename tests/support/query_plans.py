"""How an engine would carry out a statement, and what in that reads a whole table."""

from typing import Any

from sqlalchemy import Connection


def plan_of(connection: Connection, statement: str, parameters: Any = ()) -> list[str]:
    """The steps, one a line, as if the tables were large.

    PostgreSQL reads a small table whole whatever indexes there are, so it is told not to where it can.
    """
    if connection.dialect.name == "sqlite":
        rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        return [row.detail for row in rows]
    connection.exec_driver_sql("SET enable_seqscan = off")
    rows = connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)
    return [str(row[0]) for row in rows]


def whole_reads(plan: list[str]) -> list[str]:
    """The steps that read a table from end to end."""
    return [step for step in plan if step.startswith("SCAN") or "Seq Scan" in step]


def sorts(plan: list[str]) -> list[str]:
    """The steps that put rows in order after reading them."""
    return [step for step in plan if "TEMP B-TREE" in step or "Sort" in step]
