"""Differences between a store's schema and our tables, found by Alembic, and the operations that remove them.

`python -m tests.support.schema_differences FILE` prints what a step has to do from the SQLite store in a file, which an
older version has made.
"""

import re
import sys
from pathlib import Path
from typing import Any, Final

from alembic.autogenerate import produce_migrations, render_python_code
from alembic.operations.ops import MigrationScript
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, Integer, NullPool, create_engine, text

from waypost.store.schema import POSTGRESQL, STORAGE_PARAMETERS, build_schema

_SHORT: Final = {
    "sa.Text().with_variant(sa.Text(collation='C'), 'postgresql')": "TextColumn",
    "sa.BigInteger().with_variant(sa.Integer(), 'sqlite')": "Number",
}
_PARTITION: Final = re.compile(r"_(default|\d{6}|\d{8})$")


def differences(connection: Connection) -> str:
    """Return the missing operations, as the code of a step; empty if the schemas agree."""
    script = _script(connection)
    ops = script.upgrade_ops
    assert ops is not None
    if ops.is_empty():
        return ""
    code = render_python_code(ops)
    for rendered, short in _SHORT.items():
        code = code.replace(rendered, short)
    return "\n".join(line for line in code.splitlines() if "# ###" not in line)


def step_from(store: Path) -> str:
    """Return the operations from the schema of an SQLite store to the present tables."""
    with create_engine(f"sqlite:///{store}", poolclass=NullPool).begin() as connection:
        return differences(connection)


def storage_of(connection: Connection) -> dict[str, Any]:
    """Return PostgreSQL's partition keys, storage parameters, key constraints and column defaults."""
    ranges = connection.execute(
        text(
            "SELECT c.relname, pg_get_partkeydef(c.oid), "
            "EXISTS (SELECT 1 FROM pg_partitioned_table p WHERE p.partrelid = c.oid AND p.partdefid <> 0) "
            "FROM pg_class c WHERE c.relkind = 'p' ORDER BY 1"
        )
    ).all()
    options = connection.execute(
        text(
            "SELECT relname, reloptions FROM pg_class WHERE relname = ANY(:names) "
            "AND relnamespace = 'public'::regnamespace ORDER BY 1"
        ),
        {"names": list(STORAGE_PARAMETERS)},
    ).all()
    keys = connection.execute(
        text(
            "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint "
            "WHERE contype IN ('p', 'u') AND conparentid = 0 ORDER BY 1, 2"
        )
    ).all()
    defaults = connection.execute(
        text(
            "SELECT table_name, column_name, column_default, is_nullable, collation_name "
            "FROM information_schema.columns WHERE table_schema = 'public' "
            r"AND table_name !~ '_(default|\d{6}|\d{8})$' ORDER BY 1, 2"
        )
    ).all()
    return {"ranges": ranges, "options": options, "keys": keys, "columns": defaults}


def _script(connection: Connection) -> MigrationScript:
    dialect = connection.dialect.name
    context = MigrationContext.configure(
        connection,
        opts={
            "include_name": _is_ours,
            "compare_type": _types_differ if dialect == "sqlite" else True,
            "compare_server_default": dialect == POSTGRESQL,
        },
    )
    return produce_migrations(context, build_schema(dialect))


def _is_ours(name: str | None, kind: str, _parents: Any) -> bool:
    """True if this is one of our tables, and not a partition of one."""
    return kind != "table" or _PARTITION.search(name or "") is None


def _types_differ(_context: Any, _actual: Any, _expected: Any, actual: Any, expected: Any) -> bool | None:
    """Return False for two integers, which are one type to SQLite; None leaves it to Alembic."""
    return False if isinstance(actual, Integer) and isinstance(expected, Integer) else None


if __name__ == "__main__":
    sys.stdout.write(step_from(Path(sys.argv[1])) + "\n")
