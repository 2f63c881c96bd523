"""The operations of a migration, and those that a process of the previous revision could not work with."""

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

ALLOWED_SQL: Final = (
    "ALTER TABLE {} SET (",
    "ALTER TABLE {} ALTER COLUMN position SET DEFAULT ",
    "CREATE TABLE {}_default PARTITION OF {} DEFAULT",
)


def operations_of(connection: Connection, step: Any) -> list[MigrateOperation]:
    """Return the operations of a step on a store of the previous revision, without carrying them out."""
    recorded: list[MigrateOperation] = []
    with Operations.context(MigrationContext.configure(connection)) as operations:
        proxy: Any = operations
        proxy.invoke = recorded.append
        step.upgrade()
    return recorded


def incompatible_operations(operations: list[MigrateOperation], step: Any) -> list[str]:
    """Describe the operations that a process of the previous revision could not work with.

    A step may drop what its header names as replaced by an earlier step: `replaced = {"table.column": "4"}`.
    A step that no older process works with may move rows from one table to another: `moved = {"from": "to"}`.
    """
    replaced: dict[str, str] = getattr(step, "replaced", {})
    added = {_target(operation) for operation in operations if isinstance(operation, AddColumnOp)}
    created = {operation.table_name for operation in operations if isinstance(operation, CreateTableOp)}
    incompatible: list[str] = []
    for operation in operations:
        target = _target(operation)
        match operation:
            case CreateTableOp():
                continue
            case CreateIndexOp(unique=unique, table_name=table) if not unique or table in created:
                continue
            case AddColumnOp(column=column) if column.nullable or column.server_default is not None:
                continue
            case AlterColumnOp(modify_nullable=True, modify_name=None, modify_type=None):
                continue
            case ExecuteSQLOp(sqltext=text) if _is_allowed(str(text)) or _filled_column(str(text)) in added:
                continue
            case ExecuteSQLOp(sqltext=text) if _is_move(str(text), step):
                continue
            case _ if target in replaced and int(replaced[target]) < int(step.revision):
                continue
            case _:
                incompatible.append(f"{type(operation).__name__} {target}")
    return incompatible


def _target(operation: MigrateOperation) -> str:
    """Return the dotted name of the table, column, index or constraint that an operation changes."""
    untyped: Any = operation
    names = [getattr(untyped, name, None) for name in ("table_name", "column_name", "index_name", "constraint_name")]
    if hasattr(untyped, "column"):
        names.append(untyped.column.name)
    return ".".join(str(name) for name in names if name)


def _filled_column(sql: str) -> str:
    """Return the column that an UPDATE sets."""
    update = re.match(r"UPDATE (\w+) SET (\w+) = \w+ WHERE ", sql)
    return ".".join(update.groups()) if update else ""


def _is_move(sql: str, step: Any) -> bool:
    moved: dict[str, str] = getattr(step, "moved", {})
    is_exclusive = getattr(step, "works_with", 0) == int(step.revision)
    return is_exclusive and any(
        sql.startswith((f"UPDATE {target} SET ", f"DELETE FROM {source} WHERE ")) for source, target in moved.items()
    )


def _is_allowed(sql: str) -> bool:
    tokens = sql.replace('"', "").split()
    table = tokens[2] if len(tokens) > 2 else ""
    return any(
        sql.startswith(allowed.format(table.removesuffix("_default"), table.removesuffix("_default")))
        for allowed in ALLOWED_SQL
    )
