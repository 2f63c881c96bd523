"""Statements that more than one engine understands, where Core has them for one dialect at a time.

`insert_or` is an insert with `on_conflict_do_nothing`, `on_conflict_do_update` and `excluded`. Both
engines spell these alike, and SQLite's compiler reads what PostgreSQL's construct holds.
"""

from typing import Any

from sqlalchemy import Connection, Select
from sqlalchemy.dialects.postgresql import Insert as InsertOr
from sqlalchemy.dialects.postgresql import insert as insert_or

from waypost.store.bulk_statements import WAYS

__all__ = ["InsertOr", "insert_or", "to_change"]


def to_change(connection: Connection, statement: Select[Any]) -> Select[Any]:
    """What is read to be changed: locked until the transaction ends, where the connection is the writer's.

    Several processes write at once on PostgreSQL, and what one decides from must still be so when it
    writes. The statement says in which order rows are locked, so that two transactions cannot cross.
    """
    return statement.with_for_update() if WAYS in connection.info else statement
