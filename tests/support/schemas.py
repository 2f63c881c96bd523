"""What a store's schema differs in from the tables, as Alembic sees it, and as steps that would mend it.

`python -m tests.support.schemas 5` prints what a step after revision 5 has to do.
"""

import re
import sys
from typing import Any, Final

from alembic.autogenerate import produce_migrations, render_python_code
from alembic.operations import Operations
from alembic.operations.ops import MigrationScript
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, Integer, create_engine, text

from waypost.store.migrations import pending_revisions
from waypost.store.schema import POSTGRESQL, STORAGE_PARAMETERS, build_schema

_SHORT: Final = {
    "sa.Text().with_variant(sa.Text(collation='C'), 'postgresql')": "Words",
    "sa.BigInteger().with_variant(sa.Integer(), 'sqlite')": "Number",
}
_PART: Final = re.compile(r"_(default|\d{6}|\d{8})$")


def differences(connection: Connection) -> str:
    """The operations that are missing, as they would stand in a step; empty where the schemas agree."""
    script = _script(connection)
    ops = script.upgrade_ops
    assert ops is not None
    if ops.is_empty():
        return ""
    code = render_python_code(ops)
    for written, short in _SHORT.items():
        code = code.replace(written, short)
    return "\n".join(line for line in code.splitlines() if "# ###" not in line)


def step_from(revision: int) -> str:
    """The operations from a revision's steps to the tables as they are now, for SQLite and PostgreSQL alike."""
    with create_engine("sqlite://").begin() as connection:
        for step in pending_revisions(0):
            if int(step.revision) <= revision:
                with Operations.context(MigrationContext.configure(connection)):
                    step.upgrade()
        return differences(connection)


def storage_of(connection: Connection) -> dict[str, Any]:
    """What PostgreSQL has besides tables, columns and indexes: ranges, default parts, storage parameters."""
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
    """Whether this is a table of ours, and not a part of one."""
    return kind != "table" or _PART.search(name or "") is None


def _types_differ(_context: Any, _there: Any, _wanted: Any, there: Any, wanted: Any) -> bool | None:
    """Whether two types are two for SQLite, to which all integers are one; None asks Alembic."""
    return False if isinstance(there, Integer) and isinstance(wanted, Integer) else None


if __name__ == "__main__":
    sys.stdout.write(step_from(int(sys.argv[1])) + "\n")
