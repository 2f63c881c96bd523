"""Properties that the store records about itself, and checks of what it is for.

`dev` marks the store that it seeds, and `serve` rejects such a store.
"""

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, delete, func, insert, select

from waypost.domain.templates.template import Template
from waypost.store.accounts.credentials import CREDENTIAL_TABLES
from waypost.store.contract import WrongStore
from waypost.store.encoding import template_columns
from waypost.store.sql import upsert
from waypost.store.tables import partners, store_properties, templates


def set_revision(connection: Connection, revision: int, works_with: int) -> None:
    """Store the revision of the schema, and the lowest revision that works with it."""
    set_properties(connection, {"revision": str(revision), "works_with": str(works_with)})


def set_properties(connection: Connection, properties: Mapping[str, str]) -> None:
    """Store properties of the store, replacing older values."""
    statement = upsert(store_properties)
    replace = statement.on_conflict_do_update(index_elements=["name"], set_={"value": statement.excluded.value})
    for name, value in sorted(properties.items()):
        connection.execute(replace, {"name": name, "value": value})


DEMO = "demo"


def mark_demo(connection: Connection) -> bool:
    """Mark the store as the demonstration's; return False if it is marked already.

    Raises:
        WrongStore: it holds partners and is not marked.
    """
    if is_demo(connection):
        return False
    if connection.execute(select(func.count()).select_from(partners)).scalar_one():
        raise WrongStore(
            "this store belongs to `waypost serve`; choose another folder with --data, use --memory, or a terminal in "
            "which WAYPOST_DATA is not set"
        )
    connection.execute(insert(store_properties), {"name": "kind", "value": DEMO})
    return True


def is_demo(connection: Connection) -> bool:
    """Return True if the store is marked as the demonstration's."""
    kind = select(store_properties.c.value).where(store_properties.c.name == "kind")
    return connection.execute(kind).scalar_one_or_none() == DEMO


def check_production_ready(connection: Connection, known_hashes: Collection[str]) -> None:
    """Return if the store is fit for production; `known_hashes` are those of publicly known secrets.

    Raises:
        WrongStore: it is the demonstration's, or holds one of the secrets.
    """
    if is_demo(connection):
        raise WrongStore(
            "this store was made by `waypost dev` and its secrets are publicly known; choose another folder with --data"
        )
    for table in CREDENTIAL_TABLES.values():
        known = select(func.count()).where(table.c.hash.in_(known_hashes))
        if connection.execute(known).scalar_one():
            raise WrongStore(
                "this store holds a credential of the demonstration, which is publicly known; revoke it first"
            )


def seed_template(connection: Connection, template: Template) -> None:
    """Store a template that the operator already has; nothing is submitted."""
    connection.execute(delete(templates).where(templates.c.id == template.id))
    connection.execute(insert(templates), template_columns(template))
