"""Queries of the health probes."""

from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select

from waypost.store.tables import store_properties


def stored_revision(connection: Connection) -> int | None:
    """Return the revision that the store records; None where it records none."""
    revision = connection.execute(
        select(store_properties.c.value).where(store_properties.c.name == "revision")
    ).scalar_one_or_none()
    return int(revision) if revision is not None and revision.isdecimal() else None


def probe_write(connection: Connection, names: Sequence[str]) -> list[None]:
    """Run a write that needs space on the disk and a flush, and leaves nothing behind.

    Args:
        connection: the writer's.
        names: of this process, so that two of them never wait for each other.
    """
    for probe in {f"probe {name}" for name in names}:
        connection.execute(insert(store_properties), {"name": probe, "value": ""})
        connection.execute(delete(store_properties).where(store_properties.c.name == probe))
    return [None] * len(names)
