"""A snapshot: the state of service and simulator, and of their clock, as one file.

It is a zip file of the data folder's stores and files of both sides, with a manifest as its first member.
It contains no key: encrypted secrets in it can be decrypted only with the instance key it was saved under.

Size limits of snapshot files, which may come from an untrusted source.

A small zip file can expand to any size, and its directory is read into memory before any member. So
all sizes it claims are checked before anything is extracted; the library reads no more of a member
than the directory claims.
"""

import contextlib
import hashlib
import os
import re
import shutil
import sqlite3
import struct
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec

from waypost import __version__
from waypost.assembly import clock_file
from waypost.base.clock import ClockSetting
from waypost.base.error_texts import error_text
from waypost.simulator import FILE_REVISION, Snapshot, SnapshotError, UnknownSnapshot
from waypost.store.revision import OLDEST_UPGRADABLE_REVISION
from waypost.store.tables import REVISION

SNAPSHOT_FOLDER: Final = "snapshots"
_SNAPSHOT_FILE_NAME: Final = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class SnapshotFiles:
    """The snapshot files of a data folder; `snapshot.py` reads and writes their content."""

    def __init__(self, data: Path) -> None:
        self._folder = data / SNAPSHOT_FOLDER

    def list_all(self) -> list[Snapshot]:
        """Return the readable snapshots, by name."""
        snapshots: list[Snapshot] = []
        for file in sorted(self._folder.glob(f"[!.]*{SNAPSHOT_SUFFIX}")):
            with contextlib.suppress(SnapshotError):  # using a damaged one raises the error
                snapshots.append(describe_snapshot(file))
        return snapshots

    def path_for(self, name: str) -> Path:
        """Return the path of a snapshot, which may not exist. Raises UnknownSnapshot: the name is not valid."""
        if not _SNAPSHOT_FILE_NAME.fullmatch(name):
            raise UnknownSnapshot(name)
        return self._folder / f"{name}{SNAPSHOT_SUFFIX}"

    def existing_path(self, name: str) -> Path:
        """Return the path of an existing snapshot. Raises UnknownSnapshot: there is no such snapshot."""
        file = self.path_for(name)
        if not file.exists():
            raise UnknownSnapshot(name)
        return file

    def drop(self, name: str) -> None:
        """Delete a snapshot. Raises UnknownSnapshot: there is no such snapshot."""
        try:
            self.path_for(name).unlink()
        except FileNotFoundError:
            raise UnknownSnapshot(name) from None

    def remove_temporary_files(self) -> None:
        """Remove the temporary files of interrupted saves; no save may be running."""
        for path in self._folder.glob(".*"):
            path.unlink(missing_ok=True)


def describe_snapshot(file: Path) -> Snapshot:
    """Return name, time and size of a snapshot file. Raises SnapshotError: the file is not a snapshot."""
    name = file.name.removesuffix(SNAPSHOT_SUFFIX)
    return Snapshot(name, read_manifest(file).at_ms, file.stat().st_size)


# fmt: off
MAX_BYTES: Final = 8 * 1024**3             # all members together, extracted
MAX_RATIO: Final = 100                     # of extracted size to file size; our stores have 3 to 20
RATIO_EXEMPT_BYTES: Final = 256 * 1024**2 # exempt from the ratio: empty pages of a small store compress better
MAX_MEMBERS: Final = 100_000
MAX_DIRECTORY_BYTES: Final = 16 * 1024**2
MAX_MANIFEST_BYTES: Final = 64 * 1024
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Source: APPNOTE.TXT 6.3.10, 4.3.14 to 4.3.16
_END: Final = struct.Struct("<4s4H2LH")
_LOCATOR: Final = struct.Struct("<4sLQL")
_END_64: Final = struct.Struct("<4sQ2H2L4Q")
_MAX_COMMENT: Final = 65_535
# fmt: on


def open_archive(file: Path) -> zipfile.ZipFile:
    """Open a snapshot, if its directory is small enough.

    Raises:
        SnapshotError: the directory is too large.
        OSError: the file cannot be read.
        zipfile.BadZipFile: it is not a zip file.
    """
    size = _directory_bytes(file)
    if size > MAX_DIRECTORY_BYTES:
        raise _too_large(file, f"its directory has {size} bytes", f"{MAX_DIRECTORY_BYTES}")
    return zipfile.ZipFile(file)


def read_manifest_bytes(archive: zipfile.ZipFile, name: str, file: Path) -> bytes:
    """Return the content of the manifest.

    Raises:
        SnapshotError: it is too large.
        KeyError: there is no manifest.
    """
    member = archive.getinfo(name)
    if member.file_size > MAX_MANIFEST_BYTES:
        raise _too_large(file, f"{name} in it has {member.file_size} bytes", f"{MAX_MANIFEST_BYTES}")
    return archive.read(member)


def check_members(archive: zipfile.ZipFile, file: Path, *, into: Path) -> None:
    """Return if all members can be extracted.

    Args:
        archive: of `file`.
        into: an existing folder on the target disk.

    Raises:
        SnapshotError: too many members, too large, a duplicate name, or an unknown compression method.
    """
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise _too_large(file, f"it has {len(members)} members", f"{MAX_MEMBERS}")
    if len({member.filename for member in members}) < len(members):
        raise SnapshotError(f"{file.name} is damaged: two members have the same name")
    unknown = next((member for member in members if member.compress_type not in _METHODS), None)
    if unknown is not None:
        raise SnapshotError(
            f"{file.name} is damaged: {unknown.filename[:100]!r} is compressed by method "
            f"{unknown.compress_type}; a snapshot uses 0 and 8"
        )
    total = sum(member.file_size for member in members)
    limit = min(MAX_BYTES, max(RATIO_EXEMPT_BYTES, MAX_RATIO * file.stat().st_size))
    if total > limit:
        raise _too_large(file, f"it expands to {total} bytes", f"{limit} for a file of its size")
    free = shutil.disk_usage(into).free
    if total > free:
        raise SnapshotError(f"{file.name} expands to {total} bytes, and the disk has {free} bytes free")


def _directory_bytes(file: Path) -> int:
    """Return the size of a zip file's directory, as its end record claims it; 0 if there is none."""
    with file.open("rb") as source:
        size = source.seek(0, 2)
        source.seek(max(0, size - _END.size - _MAX_COMMENT - _LOCATOR.size))
        start = source.tell()
        tail = source.read()
        index = tail.rfind(b"PK\x05\x06")
        if index < 0 or len(tail) - index < _END.size:
            return 0
        claimed: int = _END.unpack_from(tail, index)[5]
        before = index - _LOCATOR.size
        if before >= 0 and tail[before : before + 4] == b"PK\x06\x07":
            source.seek(max(0, start + before - _END_64.size))
            end = source.read(_END_64.size)
            if len(end) == _END_64.size and end[:4] == b"PK\x06\x06":
                claimed = max(claimed if claimed < 0xFFFFFFFF else 0, _END_64.unpack(end)[8])
        return claimed


def _too_large(file: Path, size: str, limit: str) -> SnapshotError:
    return SnapshotError(f"{file.name} is too large: {size}, and the limit is {limit}")


SNAPSHOT_FORMAT: Final = 1
MANIFEST_NAME: Final = "snapshot.json"
SNAPSHOT_SUFFIX: Final = ".waypost"
STAGING_FOLDER: Final = "restore"
SIMULATOR_FILE: Final = "simulator.db"
STORE_FILES: Final = ("waypost.db", SIMULATOR_FILE)
FILE_FOLDERS: Final = ("media", "simulator.db.files")
_REPLACE_MARK: Final = "old"
"""A mark in the staging folder: the current data has not been removed yet."""


@dataclass(frozen=True, slots=True)
class SnapshotManifest:
    """The manifest of a snapshot."""

    format: int
    version: str
    revision: int
    at_ms: int  # time of the clock
    factor: float  # speed of the clock
    key: str  # fingerprint of the instance key, to detect another one; not the key


def key_fingerprint(secret_key: str) -> str:
    """Return a fingerprint of an instance key, which does not reveal it."""
    return hashlib.sha256(f"snapshot {secret_key}".encode()).hexdigest()[:16]


def pack(data: Path, file: Path, *, setting: ClockSetting, secret_key: str) -> None:
    """Write a snapshot of a data folder. Its stores may be open, but must be at rest.

    An existing file of that name stays until the new one is complete.
    """
    manifest = SnapshotManifest(
        SNAPSHOT_FORMAT, __version__, REVISION, setting.virtual_ms, setting.factor, key_fingerprint(secret_key)
    )
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    with contextlib.ExitStack() as stack:
        stack.callback(temporary.unlink, missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as raw:
            with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                archive.writestr(MANIFEST_NAME, msgspec.json.format(msgspec.json.encode(asdict(manifest))))
                for name in STORE_FILES:
                    copy = temporary.with_suffix(f".{name}")
                    stack.callback(copy.unlink, missing_ok=True)
                    _copy_store(data / name, copy)
                    archive.write(copy, name)
                files = sorted(path for folder in FILE_FOLDERS for path in (data / folder).rglob("*") if path.is_file())
                if len(files) + len(STORE_FILES) >= MAX_MEMBERS:
                    raise SnapshotError(f"{len(files)} media files are more than a snapshot can hold ({MAX_MEMBERS})")
                for path in files:
                    archive.write(path, path.relative_to(data).as_posix())
            raw.flush()
            os.fsync(raw.fileno())
        temporary.replace(file)


def read_manifest(file: Path) -> SnapshotManifest:
    """Return the manifest of a snapshot. Raises SnapshotError: it is not a snapshot, or cannot be read."""
    try:
        with open_archive(file) as archive:
            return msgspec.json.decode(read_manifest_bytes(archive, MANIFEST_NAME, file), type=SnapshotManifest)
    except SnapshotError:
        raise
    except FileNotFoundError:
        raise SnapshotError(f"there is no file {file}") from None
    except msgspec.DecodeError as error:
        raise SnapshotError(f"{file.name} is not a snapshot of waypost: its manifest is damaged") from error
    except Exception as error:  # for a damaged file the libraries raise a dozen types
        raise SnapshotError(f"{file.name} is not a snapshot of waypost: {error_text(error)}") from error


def stage_snapshot(file: Path, data: Path, *, secret_key: str, machine_ms: int) -> None:
    """Check a snapshot and extract it into the staging folder; `apply_staged` puts it in place.

    Raises:
        SnapshotError: it is not a snapshot, is damaged, or belongs to another version or instance key.
    """
    manifest = read_manifest(file)
    if manifest.format != SNAPSHOT_FORMAT or not OLDEST_UPGRADABLE_REVISION <= manifest.revision <= REVISION:
        raise SnapshotError(
            f"{file.name} is of version {manifest.version} (store revision {manifest.revision}), and this version "
            f"supports revisions {OLDEST_UPGRADABLE_REVISION} to {REVISION}; load it with that version"
        )
    if manifest.key != key_fingerprint(secret_key):
        raise SnapshotError(
            f"{file.name} was saved under another secret_key, and its secrets cannot be decrypted without it; "
            "set WAYPOST_SECRET_KEY to that key"
        )
    staging, unfinished = data / STAGING_FOLDER, data / f"{STAGING_FOLDER}.new"
    for folder in (staging, unfinished):
        shutil.rmtree(folder, ignore_errors=True)
    unfinished.mkdir(parents=True, mode=0o700)
    try:
        _extract(file, unfinished)
        for name in STORE_FILES:
            _check_store(unfinished / name)
    except SnapshotError:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    except Exception as error:  # see above
        shutil.rmtree(unfinished, ignore_errors=True)
        raise SnapshotError(f"{file.name} is damaged: {error_text(error)}") from error
    setting = ClockSetting(manifest.at_ms, machine_ms, manifest.factor)
    clock_file.write_clock_setting(unfinished / clock_file.CLOCK_FILE_NAME, setting)
    (unfinished / _REPLACE_MARK).touch()
    unfinished.replace(staging)


def stage_empty(data: Path) -> None:
    """Stage an empty state, in which both sides start without data; `apply_staged` puts it in place."""
    unfinished = data / f"{STAGING_FOLDER}.new"
    for folder in (data / STAGING_FOLDER, unfinished):
        shutil.rmtree(folder, ignore_errors=True)
    unfinished.mkdir(parents=True, mode=0o700)
    (unfinished / _REPLACE_MARK).touch()
    unfinished.replace(data / STAGING_FOLDER)


def apply_staged(data: Path) -> bool:
    """Replace the current data with the staged data; return whether there was any.

    Also called at a start, to complete an interrupted replacement. No store may be open. First the old
    data is removed, then the mark, then the new data is moved in, so that each step can be repeated.

    Raises:
        OSError: old data cannot be removed; the mark and the staged data stay.
    """
    staging = data / STAGING_FOLDER
    if not staging.exists():
        return False
    if (staging / _REPLACE_MARK).exists():
        for name in STORE_FILES:
            for old in (data / name, data / f"{name}-wal", data / f"{name}-shm"):
                old.unlink(missing_ok=True)
        (data / clock_file.CLOCK_FILE_NAME).unlink(missing_ok=True)
        for folder in FILE_FOLDERS:
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(data / folder)
        (staging / _REPLACE_MARK).unlink()
    for path in staging.iterdir():
        path.replace(data / path.name)
    staging.rmdir()
    return True


def _copy_store(store: Path, copy: Path) -> None:
    """Copy a store with SQLite, not as bytes: closing a second handle of the file would drop its locks."""
    copy.unlink(missing_ok=True)
    connection = sqlite3.connect(f"{store.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
    try:
        connection.execute("VACUUM INTO ?", (str(copy),))
    finally:
        connection.close()


def _check_store(store: Path) -> None:
    """Return if a store is intact and has a supported revision."""
    if not store.exists():
        raise sqlite3.DatabaseError(f"{store.name} is missing")
    [(revision,)] = _read_pragma(store, "user_version")
    if store.name == SIMULATOR_FILE and revision != FILE_REVISION:
        raise SnapshotError(
            f"{store.name} in it has revision {revision}, and this version of waypost supports "
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
        members = [each for each in archive.infolist() if each.filename != MANIFEST_NAME and not each.is_dir()]
        for member in members:
            path = PurePosixPath(member.filename)
            is_ours = member.filename in STORE_FILES or (path.parts[0] in FILE_FOLDERS and len(path.parts) > 1)
            if not is_ours or path.is_absolute() or ".." in path.parts or "\\" in member.filename:
                raise zipfile.BadZipFile(f"it contains {member.filename[:100]!r}, which does not belong to a snapshot")
            target = into / path
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with archive.open(member) as source, target.open("wb") as copy:
                shutil.copyfileobj(source, copy)
