"""Upgrades of an older store to the newest revision, one revision after another, written with Alembic.

Imported only when there is something to upgrade. Alembic's own table of versions is not used: the
store's revision and the revisions it works with are properties of the store, which every version reads.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from alembic.config import Config
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from waypost.base.telemetry.logs import log
from waypost.store.properties import set_revision
from waypost.store.schema import POSTGRESQL

VERSIONS_FOLDER: Final = Path(__file__).parent / "versions"

# fmt: off
UPGRADE_LIMITS: Final = (  # of an upgrade on PostgreSQL: running processes are blocked for this long at most
    #  name                  value
    ("lock_timeout",        "2s"),
    ("transaction_timeout", "0"),   # a revision locks only the tables that it changes
)
# fmt: on


def pending_revisions(revision: int, *, extra_folders: Sequence[Path] = ()) -> list[Any]:
    """Return the modules of the revisions that are still to be applied, in order.

    Args:
        revision: of the store; 0 has nothing.
        extra_folders: folders with more revisions.
    """
    config = Config()
    config.set_main_option("script_location", str(VERSIONS_FOLDER.parent))
    config.set_main_option("path_separator", "os")
    directory = ScriptDirectory(
        str(VERSIONS_FOLDER.parent), version_locations=[str(VERSIONS_FOLDER), *map(str, extra_folders)]
    )
    base = str(revision) if revision else "base"
    return [script.module for script in directory.walk_revisions(base, "heads") if int(script.revision) > revision][
        ::-1
    ]


def upgrade_store(connection: Connection, revision: int, *, extra_folders: Sequence[Path] = ()) -> int:
    """Apply every later revision, within the caller's transaction.

    Returns:
        The store's revision afterwards.
    """
    if connection.dialect.name == POSTGRESQL:
        for name, value in UPGRADE_LIMITS:
            if name != "transaction_timeout" or _version(connection) >= 170_000:
                connection.exec_driver_sql(f"SET LOCAL {name} = '{value}'")
    for script in pending_revisions(revision, extra_folders=extra_folders):
        with Operations.context(MigrationContext.configure(connection)):
            script.upgrade()
        revision = int(script.revision)
        set_revision(connection, revision, script.works_with)
        log("store").info("store upgraded", revision=revision, works_with=script.works_with)
    return revision


def _version(connection: Connection) -> int:
    return int(connection.exec_driver_sql("SHOW server_version_num").scalar_one())
