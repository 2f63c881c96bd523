"""Direct connections to the store of a measurement: to fill it, to read it, to explain statements."""

from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.pool import NullPool

from benchmarks.processes import Child
from benchmarks.stores import Store
from waypost.config import Settings


@contextmanager
def connect_store(store: Store) -> Generator[Connection]:
    """Yield a new connection; its user commits."""
    if store.url is None:
        engine = create_engine(f"sqlite:///{Settings(data=store.folder).store_path}", poolclass=NullPool)
        event.listen(
            engine, "connect", lambda connection_made, _: connection_made.execute("PRAGMA busy_timeout = 5000")
        )
    else:
        url = store.url.replace("postgresql://", "postgresql+psycopg://")
        options = "-c enable_seqscan=off"  # as the sessions of the service: plans of its statements are explained here
        engine = create_engine(url, poolclass=NullPool, connect_args={"options": options})
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def seed_store(store: Store) -> None:
    """Create the store and the rows that every measurement needs, by starting and stopping a service."""
    child = Child("benchmarks.service", *store.options)
    child.wait_responding()
    child.end()
