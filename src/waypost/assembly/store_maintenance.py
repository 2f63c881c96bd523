"""`waypost store`: read the revision of a store, upgrade it, back it up while it is in use."""

import os
import sqlite3
from pathlib import Path

from sqlalchemy import create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from waypost.assembly.service import make_engine
from waypost.config import Settings
from waypost.store.contract import StoreUnavailable, WrongStore
from waypost.store.revision import SchemaStatus, read_schema_status


def read_status(settings: Settings) -> SchemaStatus | None:
    """Return the schema status of a store, also while it is in use; None if there is no store yet.

    Raises:
        WrongStore: it is not a store of Waypost.
        StoreUnavailable: no server responds.
    """
    if settings.database_url is None:
        if not settings.store_path.exists():
            return None
        url = f"sqlite:///file:{settings.store_path.resolve()}?mode=ro&uri=true"
    else:
        _, _, rest = settings.database_url.partition("://")
        url = f"postgresql+psycopg://{rest}"
    engine = create_engine(url, poolclass=NullPool, hide_parameters=True)
    try:
        with engine.connect() as connection:
            return read_schema_status(connection)
    except DBAPIError as error:
        raise StoreUnavailable(f"the store cannot be read: {str(error.orig).splitlines()[0]}") from error


def upgrade(settings: Settings) -> SchemaStatus:
    """Create a store, or upgrade it to this version's revision.

    Raises:
        StoreInUse: a service has the SQLite store open.
        WrongStore: it cannot be upgraded; the text has a fix hint.
        StoreUnavailable: no server responds, or other processes hold locks that the upgrade needs.
    """
    engine = make_engine(settings.model_copy(update={"upgrade_store": True}))
    engine.open()
    engine.close()
    status = read_status(settings)
    if status is None:
        raise WrongStore("the store has been removed")
    return status


def back_up(settings: Settings, file: Path) -> int:
    """Copy an SQLite store as it is at one moment, also while a service uses it; return the copy's size.

    The copy gets its name once it is complete and on disk.

    Raises:
        WrongStore: the store is not SQLite, or does not exist, or the file exists.
    """
    if settings.database_url is not None:
        raise WrongStore("the store is a PostgreSQL database; back it up with pg_dump or pg_basebackup")
    if not settings.store_path.exists():
        raise WrongStore(f"there is no store at {settings.store_path}; set its folder with --data")
    if file.exists():
        raise WrongStore(f"{file} exists already; choose another file")
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))  # private from the start
    source = sqlite3.connect(settings.store_path, isolation_level=None)
    try:
        source.execute("VACUUM INTO ?", (str(temporary),))
        _flush(temporary)
        temporary.replace(file)
        _flush(file.parent)
    finally:
        source.close()
        temporary.unlink(missing_ok=True)
    return file.stat().st_size


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
