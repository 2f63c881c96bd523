"""The revision of a store: whether this version works on it, and its upgrade, one step after another.

The schema of a new store is made from the tables. A step is a file `revision_N.py` in `STEPS_FOLDER`, written with
Alembic's operations; there is none before the first release (decisions 0013, 0050).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any, Final

from sqlalchemy import Connection, inspect, select, text

from waypost.base.telemetry.logs import log
from waypost.store.contract import WrongStore
from waypost.store.properties import set_revision
from waypost.store.retention.partitions import create_first_partitions
from waypost.store.schema import POSTGRESQL, create_schema
from waypost.store.tables import REVISION, store_properties

OLDEST_UPGRADABLE_REVISION: Final = 11
"""The oldest revision from which a store can be upgraded; until the first release, the only one."""

STEPS_FOLDER: Final = Path(__file__).parent / "steps"
UPGRADE_LIMITS: Final = {  # of an upgrade on PostgreSQL: running processes are blocked for this long at most
    "lock_timeout": "2s",
    "transaction_timeout": "0",  # a step locks only the tables that it changes
}

MAX_NAMED_TABLES: Final = 3
MOVING_PROPERTY: Final = "moving"  # property of a store that `waypost move` is filling

MOVED_PROPERTY: Final = "moved"
"""Property of a store that has been moved to another: if both ran, everything would be sent twice."""


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """The schema state that a store records."""

    revision: int  # of the schema
    works_with: int  # the lowest revision whose processes may work on it
    is_moving: bool  # it is being filled, or filling it was interrupted
    is_moved: bool = False  # another store has replaced it

    @property
    def is_older(self) -> bool:
        """True if it must be upgraded before this version can work on it."""
        return self.revision < REVISION

    @property
    def is_compatible(self) -> bool:
        """True if this version can work on it: it has this revision, or a newer one that allows it."""
        return not self.is_moving and not self.is_moved and self.works_with <= REVISION <= self.revision


def read_schema_status(connection: Connection) -> SchemaStatus | None:
    """Return the schema state that the store records; None where it is empty.

    Raises:
        WrongStore: it is not a Waypost store.
    """
    tables = inspect(connection).get_table_names()
    if store_properties.name not in tables:
        others = sorted(set(tables) - _tables_of_extensions(connection))
        if others:
            named = ", ".join(others[:MAX_NAMED_TABLES]) + (", …" if len(others) > MAX_NAMED_TABLES else "")
            raise WrongStore(
                f"this database has tables of another program, or of a version that this one does not know ({named}); "
                "it is left unchanged: choose an empty database, or another folder with --data"
            )
        return None
    names = ("revision", "works_with", MOVING_PROPERTY, MOVED_PROPERTY)
    query = select(store_properties.c.name, store_properties.c.value).where(store_properties.c.name.in_(names))
    properties = {row.name: row.value for row in connection.execute(query)}
    revision = properties.get("revision", "")
    works_with = properties.get("works_with", revision)
    if not revision.isdecimal() or not works_with.isdecimal():
        raise WrongStore("this database has no schema revision; it is not a waypost store")
    return SchemaStatus(int(revision), int(works_with), MOVING_PROPERTY in properties, MOVED_PROPERTY in properties)


def _tables_of_extensions(connection: Connection) -> set[str]:
    if connection.dialect.name != POSTGRESQL:
        return set()
    rows = connection.execute(
        text(
            "SELECT relname FROM pg_class JOIN pg_depend ON objid = pg_class.oid AND deptype = 'e' WHERE relkind = 'r'"
        )
    )
    return set(rows.scalars())


def create_or_check_schema(connection: Connection, *, upgrade: bool = True) -> None:
    """Create the schema in an empty store; upgrade an older one to this revision; check any other.

    Args:
        connection: within a transaction that excludes other processes from the store's revision.
        upgrade: whether an older store may be upgraded.

    Raises:
        WrongStore: this version cannot work on it; the text gives the fix.
    """
    status = read_schema_status(connection)
    if status is None:
        create_schema(connection)
        create_first_partitions(connection)
        set_revision(connection, REVISION, REVISION)
        return
    if status.is_moving:
        raise WrongStore(
            "this database is being filled by `waypost move`, or that was interrupted; "
            "run `waypost move` again, or drop the database"
        )
    if status.is_moved:
        raise WrongStore("this store has been moved to PostgreSQL and is no longer used; set WAYPOST_DATABASE_URL")
    if status.is_older:
        check_upgradable(status)
        if not upgrade:
            raise WrongStore(
                f"this store has revision {status.revision} and this version of waypost works on "
                f"revision {REVISION}; run `waypost store upgrade`"
            )
        upgrade_store(connection, status.revision)
    elif not status.is_compatible:
        raise WrongStore(
            f"this store has revision {status.revision} and needs a version with revision {status.works_with} "
            f"or newer; this version of waypost has revision {REVISION}; "
            "use a newer version"
        )


def check_upgradable(status: SchemaStatus) -> None:
    """Return if no step would be missing in an upgrade of a store.

    Raises:
        WrongStore: it is too old; the text gives the fix.
    """
    if status.revision < OLDEST_UPGRADABLE_REVISION:
        raise WrongStore(
            f"this store has revision {status.revision}, which is too old to be upgraded; the oldest is "
            f"{OLDEST_UPGRADABLE_REVISION}; start with an empty folder"
        )


def upgrade_store(connection: Connection, revision: int, *, extra_folders: Sequence[Path] = ()) -> int:
    """Apply every later step to a store of a revision, within the caller's transaction; return its revision then."""
    from alembic.operations import Operations  # slow to import, and only needed here
    from alembic.runtime.migration import MigrationContext

    if connection.dialect.name == POSTGRESQL:
        version = int(connection.exec_driver_sql("SHOW server_version_num").scalar_one())
        for name, value in UPGRADE_LIMITS.items():
            if name != "transaction_timeout" or version >= 170_000:
                connection.exec_driver_sql(f"SET LOCAL {name} = '{value}'")
    for step in pending_steps(revision, extra_folders=extra_folders):
        with Operations.context(MigrationContext.configure(connection)):
            step.upgrade()
        revision = int(step.revision)
        set_revision(connection, revision, step.works_with)
        log("store").info("store upgraded", revision=revision, works_with=step.works_with)
    return revision


def pending_steps(revision: int, *, extra_folders: Sequence[Path] = ()) -> list[Any]:
    """Return the members of the modules of the steps that come after a revision, in order."""
    files = [file for folder in (STEPS_FOLDER, *extra_folders) for file in folder.glob("revision_*.py")]
    steps = [
        step for step in (SimpleNamespace(**run_path(str(file))) for file in files) if int(step.revision) > revision
    ]
    return sorted(steps, key=lambda step: int(step.revision))
