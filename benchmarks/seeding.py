"""A store of a measurement opened beside the service: to fill it, to look into it, to explain statements."""

from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.pool import NullPool

from benchmarks.processes import Child
from benchmarks.stores import Store
from waypost.config import Settings


@contextmanager
def connected(store: Store) -> Generator[Connection]:
    """A connection of its own; what is done on it is committed by whoever does it."""
    if store.url is None:
        url = f"sqlite:///{Settings(data=store.folder).store_path}"
    else:
        url = store.url.replace("postgresql://", "postgresql+psycopg://")
    engine = create_engine(url, poolclass=NullPool)
    if store.url is None:
        event.listen(engine, "connect", lambda made, _: made.execute("PRAGMA busy_timeout = 5000"))
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def seed(store: Store) -> None:
    """Make the store and what every measurement needs in it: by a service that starts and stops."""
    child = Child("benchmarks.service", *store.options)
    child.wait_answering()
    child.end()
