"""A snapshot: the state of service and simulator, and of their clock, as one file.

It is a zip file of what both sides keep in the data folder, with a page in front that says what it is.
No key is in it: what is sealed can be opened with the instance key of the one who saved it.
"""

import contextlib
import hashlib
import os
import shutil
import sqlite3
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec

from waypost import __version__
from waypost.assembly import clock_file
from waypost.assembly.snapshots.bounds import MAX_MEMBERS, check_members, open_archive, read_page_bytes
from waypost.base.clock import Bearing
from waypost.base.error_texts import error_text
from waypost.simulator import FILE_REVISION, SnapshotError
from waypost.store.revision import OLDEST
from waypost.store.tables import REVISION

FORMAT: Final = 1
PAGE: Final = "snapshot.json"
SUFFIX: Final = ".waypost"
RESTORE: Final = "restore"
SIMULATOR: Final = "simulator.db"
STORES: Final = ("waypost.db", SIMULATOR)
FOLDERS: Final = ("media", "simulator.db.files")
_OLD: Final = "old"
"""The mark beside what has been laid ready: what is there now has not gone yet."""


@dataclass(frozen=True, slots=True)
class Page:
    """What a snapshot says of itself.

    Attributes:
        at_ms: where the clock stood.
        factor: how fast it ran.
        key: the mark of the instance key, by which another one is noticed; not the key.
    """

    format: int
    version: str
    revision: int
    at_ms: int
    factor: float
    key: str


def mark_of(secret_key: str) -> str:
    """A mark by which an instance key is told from others, and which says nothing of it."""
    return hashlib.sha256(f"snapshot {secret_key}".encode()).hexdigest()[:16]


def pack(data: Path, file: Path, *, bearing: Bearing, secret_key: str) -> None:
    """Write a snapshot of a data folder whose stores may be open, but at rest.

    An older file of that name stays until the new one is whole.
    """
    page = Page(FORMAT, __version__, REVISION, bearing.virtual_ms, bearing.factor, mark_of(secret_key))
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    with contextlib.ExitStack() as undone:
        undone.callback(beside.unlink, missing_ok=True)
        opened = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(opened, "wb") as raw:
            with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                archive.writestr(PAGE, msgspec.json.format(msgspec.json.encode(asdict(page))))
                for name in STORES:
                    copy = beside.with_suffix(f".{name}")
                    undone.callback(copy.unlink, missing_ok=True)
                    _copy_store(data / name, copy)
                    archive.write(copy, name)
                files = [path for folder in FOLDERS for path in _files_of(data / folder)]
                if len(files) + len(STORES) >= MAX_MEMBERS:
                    raise SnapshotError(f"{len(files)} files of media are more than a snapshot holds ({MAX_MEMBERS})")
                for path in files:
                    archive.write(path, path.relative_to(data).as_posix())
            raw.flush()
            os.fsync(raw.fileno())
        beside.replace(file)


def sweep(folder: Path) -> None:
    """Remove what a save that was stopped in the middle has left; no save may be going on."""
    for left in folder.glob(".*"):
        left.unlink(missing_ok=True)


def read_page(file: Path) -> Page:
    """What a snapshot says of itself.

    Raises:
        SnapshotError: it is none, or cannot be read.
    """
    try:
        with open_archive(file) as archive:
            return msgspec.json.decode(read_page_bytes(archive, PAGE, file), type=Page)
    except SnapshotError:
        raise
    except FileNotFoundError:
        raise SnapshotError(f"there is no file {file}") from None
    except Exception as why:  # of a damaged file the libraries raise a dozen kinds
        raise SnapshotError(f"{file.name} is no snapshot of waypost: {error_text(why)}") from why


def unpack(file: Path, data: Path, *, secret_key: str, machine_ms: int) -> None:
    """Lay a snapshot's content ready in the data folder, checked; `finish` puts it in place.

    Raises:
        SnapshotError: it is none, is damaged, or belongs to another version or instance key.
    """
    page = read_page(file)
    if page.format != FORMAT or not OLDEST <= page.revision <= REVISION:
        raise SnapshotError(
            f"{file.name} is of version {page.version} (store revision {page.revision}), and this one "
            f"works on revisions {OLDEST} to {REVISION}; load it with that version"
        )
    if page.key != mark_of(secret_key):
        raise SnapshotError(
            f"{file.name} was saved under another secret_key, and what it has sealed cannot be opened "
            "without it; set WAYPOST_SECRET_KEY to that key"
        )
    ready, making = data / RESTORE, data / f"{RESTORE}.new"
    for old in (ready, making):
        shutil.rmtree(old, ignore_errors=True)
    making.mkdir(parents=True, mode=0o700)
    try:
        _extract(file, making)
        for name in STORES:
            _check_store(making / name)
    except SnapshotError:
        shutil.rmtree(making, ignore_errors=True)
        raise
    except Exception as why:  # as above
        shutil.rmtree(making, ignore_errors=True)
        raise SnapshotError(f"{file.name} is damaged: {error_text(why)}") from why
    bearing = Bearing(page.at_ms, machine_ms, page.factor)
    clock_file.write_bearing(making / clock_file.NAME, bearing)
    (making / _OLD).touch()
    making.replace(ready)


def clear(data: Path) -> None:
    """Lay ready that nothing is there: both sides begin anew. `finish` puts it in place."""
    making = data / f"{RESTORE}.new"
    for old in (data / RESTORE, making):
        shutil.rmtree(old, ignore_errors=True)
    making.mkdir(parents=True, mode=0o700)
    (making / _OLD).touch()
    making.replace(data / RESTORE)


def finish(data: Path) -> bool:
    """Put what has been laid ready in place of what is there; whether there was anything.

    Also at a start: whoever was stopped in the middle is taken to the end. Nothing may be open.
    First all that is old goes, then the mark, then the new is moved in: so each step may be repeated.

    Raises:
        OSError: something old cannot be removed; the mark stays, and so does what has been laid ready.
    """
    ready = data / RESTORE
    if not ready.exists():
        return False
    if (ready / _OLD).exists():
        for name in STORES:
            for old in (data / name, data / f"{name}-wal", data / f"{name}-shm"):
                old.unlink(missing_ok=True)
        (data / clock_file.NAME).unlink(missing_ok=True)
        for folder in FOLDERS:
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(data / folder)
        (ready / _OLD).unlink()
    for path in ready.iterdir():
        path.replace(data / path.name)
    ready.rmdir()
    return True


def _files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file()) if folder.exists() else []


def _copy_store(store: Path, copy: Path) -> None:
    """By the library, never by bytes: closing a second handle of the file would drop its locks."""
    copy.unlink(missing_ok=True)
    connection = sqlite3.connect(store, isolation_level=None)
    try:
        connection.execute("VACUUM INTO ?", (str(copy),))
    finally:
        connection.close()


def _check_store(store: Path) -> None:
    """Return when a store is sound and of a revision that can be opened."""
    if not store.exists():
        raise sqlite3.DatabaseError(f"{store.name} is missing")
    [(revision,)] = _read_pragma(store, "user_version")
    if store.name == SIMULATOR and revision != FILE_REVISION:
        raise SnapshotError(
            f"{store.name} in it has revision {revision}, and this version of waypost works on "
            f"revision {FILE_REVISION}; load it with the version that saved it"
        )
    [(verdict,)] = _read_pragma(store, "quick_check(1)")
    if verdict != "ok":
        raise sqlite3.DatabaseError(f"{store.name}: {verdict}")


def _read_pragma(store: Path, pragma: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(f"{store.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        return connection.execute(f"PRAGMA {pragma}").fetchall()
    finally:
        connection.close()


def _extract(file: Path, into: Path) -> None:
    with open_archive(file) as archive:
        check_members(archive, file, into=into)
        members = [one for one in archive.infolist() if one.filename != PAGE and not one.is_dir()]
        for member in members:
            path = PurePosixPath(member.filename)
            is_ours = member.filename in STORES or (path.parts[0] in FOLDERS and len(path.parts) > 1)
            if not is_ours or path.is_absolute() or ".." in path.parts or "\\" in member.filename:
                raise zipfile.BadZipFile(f"it holds {member.filename[:100]!r}, which is nothing of ours")
            target = into / path
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with archive.open(member) as source, target.open("wb") as copy:
                shutil.copyfileobj(source, copy)
