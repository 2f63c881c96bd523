"""`waypost store`: read the revision of a store, upgrade it, back it up while it is in use."""

import contextlib
import fcntl
import os
import sqlite3
from pathlib import Path
from typing import Final

from sqlalchemy import create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from waypost.assembly.service import make_engine
from waypost.config import Settings
from waypost.store.contract import StoreUnavailable, WrongStore
from waypost.store.engines.sqlite import raise_damage
from waypost.store.revision import SchemaStatus, check_upgradable, read_schema_status

UNFINISHED_SUFFIX: Final = ".waypost-backup"
"""Ends the name of a copy that is not complete; the process that writes it holds a lock on it."""


def read_status(settings: Settings) -> SchemaStatus | None:
    """Return the schema status of a store, also while it is in use; None if there is no store yet.

    Raises:
        WrongStore: it is not a store of Waypost, or too old for this version.
        StoreUnavailable: no server responds.
        StoreDamaged: its file cannot be read.
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
            status = read_schema_status(connection)
    except DBAPIError as error:
        raise_damage(settings.store_path, error)
        raise StoreUnavailable(f"the store cannot be read: {str(error.orig).splitlines()[0]}") from error
    if status is not None:
        check_upgradable(status)
    return status


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
        StoreDamaged: it cannot be read.
    """
    if settings.database_url is not None:
        raise WrongStore("the store is a PostgreSQL database; back it up with pg_dump or pg_basebackup")
    if not settings.store_path.exists():
        raise WrongStore(f"there is no store at {settings.store_path}; set its folder with --data")
    if file.exists():
        raise WrongStore(f"{file} exists already; choose another file")
    _remove_unfinished_backups(file.parent)
    temporary = file.with_name(f".{file.name}.{os.getpid()}{UNFINISHED_SUFFIX}")
    lock = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # private from the start
    fcntl.flock(lock, fcntl.LOCK_EX)  # until this process ends, in whatever way
    source = sqlite3.connect(settings.store_path, isolation_level=None)
    try:
        source.execute("VACUUM INTO ?", (str(temporary),))
        _flush(temporary)
        temporary.replace(file)
        _flush(file.parent)
    except sqlite3.DatabaseError as error:
        raise_damage(settings.store_path, error)
        raise
    finally:
        source.close()
        temporary.unlink(missing_ok=True)
        os.close(lock)
    return file.stat().st_size


def _remove_unfinished_backups(folder: Path) -> None:
    """Remove the copies of backups that were killed: they have everything that the store had."""
    for copy in folder.glob(f".*{UNFINISHED_SUFFIX}"):
        with contextlib.suppress(OSError):  # another process has removed it, or still writes it
            descriptor = os.open(copy, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                copy.unlink()
            finally:
                os.close(descriptor)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
