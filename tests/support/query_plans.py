"""Query plans of an engine, and the steps in them that read a whole table or sort."""

from typing import Any

from sqlalchemy import Connection


def plan_of(connection: Connection, statement: str, parameters: Any = ()) -> list[str]:
    """Return the steps of a statement's plan, as if the tables were large.

    PostgreSQL scans a small table whatever indexes it has, so sequential scans are disabled where it can avoid them.
    """
    if connection.dialect.name == "sqlite":
        rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        return [row.detail for row in rows]
    connection.exec_driver_sql("SET enable_seqscan = off")
    rows = connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)
    return [str(row[0]) for row in rows]


def full_scans(plan: list[str]) -> list[str]:
    """Return the steps that scan a whole table."""
    return [step for step in plan if step.startswith("SCAN") or "Seq Scan" in step]


def sorts(plan: list[str]) -> list[str]:
    """Return the steps that sort rows after reading them."""
    return [step for step in plan if "TEMP B-TREE" in step or "Sort" in step]
