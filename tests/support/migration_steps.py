"""Reads what a step of the store does, and says what a process of the revision before could not bear."""

import re
from typing import Any, Final

from alembic.operations import Operations
from alembic.operations.ops import (
    AddColumnOp,
    AlterColumnOp,
    CreateIndexOp,
    CreateTableOp,
    ExecuteSQLOp,
    MigrateOperation,
)
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection

ALLOWED_SQL: Final = ("ALTER TABLE {} SET (", "CREATE TABLE {}_default PARTITION OF {} DEFAULT")


def operations_of(connection: Connection, step: Any) -> list[MigrateOperation]:
    """What a step would do on a store of the revision before it; nothing is done."""
    heard: list[MigrateOperation] = []
    with Operations.context(MigrationContext.configure(connection)) as operations:
        unheard: Any = operations
        unheard.invoke = heard.append
        step.upgrade()
    return heard


def unbearable(operations: list[MigrateOperation], step: Any) -> list[str]:
    """What of it a process of the revision before could not go on with.

    A step may drop what its header says an earlier one replaced: `replaced = {"table.column": "4"}`.
    """
    replaced: dict[str, str] = getattr(step, "replaced", {})
    added = {_what(one) for one in operations if isinstance(one, AddColumnOp)}
    made = {one.table_name for one in operations if isinstance(one, CreateTableOp)}
    found: list[str] = []
    for one in operations:
        what = _what(one)
        match one:
            case CreateTableOp():
                continue
            case CreateIndexOp(unique=unique, table_name=table) if not unique or table in made:
                continue
            case AddColumnOp(column=column) if column.nullable or column.server_default is not None:
                continue
            case AlterColumnOp(modify_nullable=True, modify_name=None, modify_type=None):
                continue
            case ExecuteSQLOp(sqltext=text) if _is_allowed(str(text)) or _filled_column(str(text)) in added:
                continue
            case _ if what in replaced and int(replaced[what]) < int(step.revision):
                continue
            case _:
                found.append(f"{type(one).__name__} {what}")
    return found


def _what(operation: MigrateOperation) -> str:
    given: Any = operation
    names = [getattr(given, name, None) for name in ("table_name", "column_name", "index_name", "constraint_name")]
    if hasattr(given, "column"):
        names.append(given.column.name)
    return ".".join(str(name) for name in names if name)


def _filled_column(sql: str) -> str:
    """The one column that an UPDATE sets."""
    update = re.match(r"UPDATE (\w+) SET (\w+) = \w+ WHERE ", sql)
    return ".".join(update.groups()) if update else ""


def _is_allowed(sql: str) -> bool:
    words = sql.replace('"', "").split()
    table = words[2] if len(words) > 2 else ""
    return any(
        sql.startswith(allowed.format(table.removesuffix("_default"), table.removesuffix("_default")))
        for allowed in ALLOWED_SQL
    )
