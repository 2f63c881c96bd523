"""The revision of a store: whether this version works on it, and its upgrade."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, inspect, select, text

from waypost.store.contract import WrongStore
from waypost.store.properties import set_revision
from waypost.store.retention.partitions import create_first_partitions
from waypost.store.schema import create_schema
from waypost.store.tables import REVISION, store_properties

OLDEST_UPGRADABLE_REVISION: Final = 5
"""The oldest revision from which a store can be upgraded."""

MAX_NAMED_TABLES: Final = 3
MOVING_PROPERTY: Final = "moving"
"""Property of a store that `waypost move` is filling."""

MOVED_PROPERTY: Final = "moved"
"""Property of a store that has been moved to another: if both ran, everything would be sent twice."""


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """The schema state that a store records.

    Attributes:
        revision: of the schema.
        works_with: the lowest revision whose processes may work on it.
        is_moving: it is being filled, or filling it was interrupted.
        is_moved: another store has replaced it.
    """

    revision: int
    works_with: int
    is_moving: bool
    is_moved: bool = False

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
    """Return the tables that PostgreSQL's extensions have added."""
    if connection.dialect.name != "postgresql":
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
        if status.revision < OLDEST_UPGRADABLE_REVISION:
            raise WrongStore(
                f"this store has revision {status.revision}, which is too old to be upgraded; the oldest is "
                f"{OLDEST_UPGRADABLE_REVISION}; start with an empty folder"
            )
        if not upgrade:
            raise WrongStore(
                f"this store has revision {status.revision} and this version of waypost works on "
                f"revision {REVISION}; run `waypost store upgrade`"
            )
        from waypost.store.migrations import upgrade_store  # Alembic is slow to import

        upgrade_store(connection, status.revision)
    elif not status.is_compatible:
        raise WrongStore(
            f"this store has revision {status.revision} and needs a version with revision {status.works_with} "
            f"or newer; this version of waypost has revision {REVISION}; "
            "use a newer version"
        )
