"""Which revision a store has, whether this version works on it, and how it gets to this version's."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, inspect, select

from waypost.store.contract import WrongStore
from waypost.store.properties import set_revision
from waypost.store.retention.partitions import make_first_parts
from waypost.store.schema import make_schema
from waypost.store.tables import REVISION, store_facts

OLDEST: Final = 5
"""The first revision from which a store can be upgraded."""

MOVING: Final = "moving"
"""The fact that a store is being filled by `waypost move`."""

MOVED: Final = "moved"
"""The fact that all of a store has been moved to another: two that go on would send everything twice."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What a store says of its schema.

    Attributes:
        revision: of the schema.
        works_with: the lowest revision whose processes may work on it.
        moving: it is being filled, or its filling was cut off.
        moved: another store goes on in its place.
    """

    revision: int
    works_with: int
    moving: bool
    moved: bool = False

    @property
    def is_older(self) -> bool:
        """Whether it must be upgraded before this version can work on it."""
        return self.revision < REVISION

    @property
    def fits(self) -> bool:
        """Whether this version works on it as it is: its own revision, or a newer one that allows it."""
        return not self.moving and not self.moved and self.works_with <= REVISION <= self.revision


def standing_of(connection: Connection) -> Standing | None:
    """What the store says of itself; None where it is empty.

    Raises:
        WrongStore: it is not a store of ours.
    """
    if not inspect(connection).has_table(store_facts.name):
        return None
    names = ("revision", "works_with", MOVING, MOVED)
    found = select(store_facts.c.name, store_facts.c.value).where(store_facts.c.name.in_(names))
    facts = {row.name: row.value for row in connection.execute(found)}
    revision = facts.get("revision", "")
    works_with = facts.get("works_with", revision)
    if not revision.isdecimal() or not works_with.isdecimal():
        raise WrongStore("this store does not say which revision it has; it is not one of waypost")
    return Standing(int(revision), int(works_with), MOVING in facts, MOVED in facts)


def make_or_check(connection: Connection, *, upgrade: bool = True) -> None:
    """Make the schema in an empty store; bring an older one to this revision; check any other.

    Args:
        connection: within a transaction, and nobody else's in the store's revision.
        upgrade: whether an older store may be upgraded.

    Raises:
        WrongStore: this version cannot work on it; the text says the remedy.
    """
    standing = standing_of(connection)
    if standing is None:
        make_schema(connection)
        make_first_parts(connection)
        set_revision(connection, REVISION, REVISION)
        return
    if standing.moving:
        raise WrongStore(
            "this database is being filled by `waypost move`, or was when that was stopped; "
            "run `waypost move` again, or drop the database"
        )
    if standing.moved:
        raise WrongStore("this store was moved to PostgreSQL, which goes on in its place; set WAYPOST_DATABASE_URL")
    if standing.is_older:
        if standing.revision < OLDEST:
            raise WrongStore(
                f"this store has revision {standing.revision}, which is older than any that can be upgraded "
                f"({OLDEST}); start with an empty folder"
            )
        if not upgrade:
            raise WrongStore(
                f"this store has revision {standing.revision} and this version of waypost works on "
                f"revision {REVISION}; run `waypost store upgrade`"
            )
        from waypost.store.migrations import upgrade_store  # Alembic costs a start much

        upgrade_store(connection, standing.revision)
    elif not standing.fits:
        raise WrongStore(
            f"this store has revision {standing.revision}, works with versions from revision "
            f"{standing.works_with} on, and this version of waypost has revision {REVISION}; "
            "use a newer version"
        )
