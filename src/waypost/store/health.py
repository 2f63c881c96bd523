"""Whether a store works: what a probe asks of it."""

from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select

from waypost.store.tables import store_facts


def revision_of(connection: Connection) -> int | None:
    """The revision that the store says it has; None where it says none."""
    found = connection.execute(select(store_facts.c.value).where(store_facts.c.name == "revision")).scalar_one_or_none()
    return int(found) if found is not None and found.isdecimal() else None


def write_nothing(connection: Connection, names: Sequence[str]) -> list[None]:
    """A write that needs room on the disk and a flush, and leaves nothing behind.

    Args:
        connection: the writer's.
        names: of this process, so that two of them never wait for each other.
    """
    for fact in {f"probe {name}" for name in names}:
        connection.execute(insert(store_facts), {"name": fact, "value": ""})
        connection.execute(delete(store_facts).where(store_facts.c.name == fact))
    return [None] * len(names)
