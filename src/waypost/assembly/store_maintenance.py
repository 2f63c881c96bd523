"""What `waypost store` does: say which revision a store has, upgrade it, copy it while it is used."""

import os
import sqlite3
from pathlib import Path

from sqlalchemy import create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from waypost.assembly.service import engine_of
from waypost.config import Settings
from waypost.store.contract import StoreAway, WrongStore
from waypost.store.revision import Standing, standing_of


def standing(settings: Settings) -> Standing | None:
    """What a store says of its schema, whoever uses it; None where there is none yet.

    Raises:
        WrongStore: it is not a store of ours.
        StoreAway: no server answers.
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
            return standing_of(connection)
    except DBAPIError as error:
        raise StoreAway(f"the store cannot be read: {str(error.orig).splitlines()[0]}") from error


def upgrade(settings: Settings) -> Standing:
    """Make a store, or bring it to this version's revision.

    Raises:
        StoreInUse: a service has the SQLite store open.
        WrongStore: it cannot be upgraded; the text says the remedy.
        StoreAway: no server answers, or its processes do not let the upgrade in.
    """
    engine = engine_of(settings.model_copy(update={"upgrade_store": True}))
    engine.open()
    engine.close()
    found = standing(settings)
    if found is None:
        raise WrongStore("the store is gone")
    return found


def back_up(settings: Settings, file: Path) -> int:
    """Copy an SQLite store as it is at one moment, also while a service uses it; give its bytes.

    The copy gets its name once it is whole and on disk.

    Raises:
        WrongStore: the store is not of SQLite, there is none, or there is a file of that name.
    """
    if settings.database_url is not None:
        raise WrongStore("the store is a PostgreSQL database; back it up with pg_dump or pg_basebackup")
    if not settings.store_path.exists():
        raise WrongStore(f"there is no store at {settings.store_path}; name its folder with --data")
    if file.exists():
        raise WrongStore(f"{file} is there already; name another file")
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))  # ours alone from the start
    source = sqlite3.connect(settings.store_path, isolation_level=None)
    try:
        source.execute("VACUUM INTO ?", (str(beside),))
        _flush(beside)
        beside.replace(file)
        _flush(file.parent)
    finally:
        source.close()
        beside.unlink(missing_ok=True)
    return file.stat().st_size


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
