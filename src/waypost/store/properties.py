"""What a store knows of itself, and how it is written down."""

from collections.abc import Mapping

from sqlalchemy import Connection

from waypost.store.dialects import insert_or
from waypost.store.tables import store_facts


def set_revision(connection: Connection, revision: int, works_with: int) -> None:
    """Write which revision the store has now, and with which it works."""
    set_facts(connection, {"revision": str(revision), "works_with": str(works_with)})


def set_facts(connection: Connection, facts: Mapping[str, str]) -> None:
    """Write what the store knows of itself, in place of what it knew."""
    statement = insert_or(store_facts)
    replacing = statement.on_conflict_do_update(index_elements=["name"], set_={"value": statement.excluded.value})
    for name, value in sorted(facts.items()):
        connection.execute(replacing, {"name": name, "value": value})
