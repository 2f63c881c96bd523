"""Bytes of media: one file for each content, named by its SHA-256.

A file is received under a temporary name, flushed, and only then renamed; the folder is flushed after
that. So every file with a final name is complete, and survives a power failure.

Where several processes share a store they must share the folder too, or a
file that one of them has acknowledged is missing for the one that has to send it. So the folder has a
name in a file of its own, and the store records the name of its folder.
"""

import asyncio
import contextlib
import errno
import hashlib
import os
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, insert, select

from waypost.base.clock import machine_ms
from waypost.base.files import open_on_thread
from waypost.store.contract import WrongStore
from waypost.store.tables import store_properties

NAME_FILE: Final = ".waypost-media"
_FOLDER_PROPERTY: Final = "media folder"


def ensure_folder_name(folder: Path, new_name: str) -> str:
    """Return the name of a folder; a folder without one gets the new name, from one process only."""
    path = folder / NAME_FILE
    if not path.exists():
        own_file = folder / f"{NAME_FILE}-{new_name}"
        with own_file.open("w", encoding="ascii") as file:
            file.write(new_name + "\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(own_file)  # complete, and never replacing another's
        _flush_folder(folder)  # the store is about to record the name
        own_file.unlink()
    return path.read_text(encoding="ascii").strip()


def check_folder(connection: Connection, folder: Path | str, name: str) -> None:
    """Record this folder as the store's, or compare it with the recorded one.

    Args:
        folder: or the URL of the bucket, for the error text.

    Raises:
        WrongStore: the store has another folder.
    """
    known = connection.execute(
        select(store_properties.c.value).where(store_properties.c.name == _FOLDER_PROPERTY)
    ).scalar_one_or_none()
    if known is None:
        connection.execute(insert(store_properties), {"name": _FOLDER_PROPERTY, "value": name})
    elif known != name:
        raise WrongStore(
            f"{folder} is not the media folder that the other processes of this store use: set the same one "
            f"for all of them with --data, on a network file system if they run on several machines, or the same "
            f"bucket with WAYPOST_MEDIA_URL (or, to use this one for the store, write {known} into "
            f"{folder}/{NAME_FILE})"
        )


HEAD_BYTES: Final = 4 * 1024
TAIL_BYTES: Final = 256 * 1024
MIN_SWEEP_AGE_MS: Final = 60 * 60 * 1000  # a file received more recently may belong to a row that is not written yet

_WRITE_BUFFER_BYTES: Final = 512 * 1024
_INCOMING_PREFIX: Final = "incoming-"
_SWEEP_BATCH_FILES: Final = 500

ReferencedNamesQuery = Callable[[Sequence[str]], Awaitable[set[str]]]
"""Returns those of these names that some row refers to."""


class NotEnoughSpace(OSError):
    """The free space on the disk is reserved for the store."""

    def __init__(self) -> None:
        super().__init__(errno.ENOSPC, "the remaining space on the disk is reserved for the store")


class MediaFiles:
    """A folder of files. File times are the machine's, whatever clock the rules follow.

    Each method raises `StoreUnavailable` if the place of the files cannot be reached.

    Args:
        reserved_bytes: how much space a new file must leave free on the disk.
    """

    def __init__(self, folder: Path, *, reserved_bytes: int = 0) -> None:
        self._folder = folder
        self._reserved_bytes = reserved_bytes
        self._rename_lock = threading.Lock()  # between renaming and deleting files
        self._offsets: deque[tuple[int, int]] = deque()  # when awake, and how far the machine's clock was ahead of that
        self.old_before_ms()

    async def open(self, *, exclusive: bool) -> None:
        """Create the folder, and delete incomplete files of an earlier process.

        Args:
            exclusive: no other process can be writing; otherwise recent files are left alone.
        """
        await asyncio.to_thread(self._open, exclusive)

    async def begin(self) -> "IncomingFile":
        """Begin a file.

        Raises:
            NotEnoughSpace: also raised while adding to it, once there is not enough space.
        """
        descriptor, name = await open_on_thread(self._begin, _discard_file)
        return IncomingFile(self, descriptor, Path(name))

    def check_space(self, size_bytes: int) -> None:
        """Check, on a thread, that so many more bytes leave the reserve free.

        Raises:
            NotEnoughSpace: they do not.
        """
        if self._reserved_bytes:
            free_bytes = shutil.disk_usage(self._folder).free
            if free_bytes < self._reserved_bytes + size_bytes:
                raise NotEnoughSpace

    @property
    def location(self) -> str:
        """The folder, for texts."""
        return str(self._folder)

    async def ensure_name(self, new_name: str) -> str:
        """Return the name of the place; one without a name gets the new one, from one process only."""
        return await asyncio.to_thread(ensure_folder_name, self._folder, new_name)

    def path(self, sha256: str) -> Path:
        """Return the path of the file with this digest, whether it exists or not."""
        return self._folder / sha256

    async def local_path(self, sha256: str) -> Path:
        """Return the path under which a file can be read now.

        Raises:
            FileNotFoundError: it does not exist; or reading the path raises it.
        """
        return self.path(sha256)

    async def store(self, sha256: str) -> None:
        """Do what is missing until a file that was just renamed to its digest is durable: here, nothing."""

    async def probe(self) -> str | None:
        """Check that files can be written, read and deleted; return why not."""
        return None

    async def sweep(self, referenced: ReferencedNamesQuery) -> int:
        """Delete files that no row refers to, unless they are recent; return how many."""
        before_ms = self.old_before_ms()
        names = await asyncio.to_thread(self._old_names, before_ms)
        removed = 0
        for first in range(0, len(names), _SWEEP_BATCH_FILES):
            batch = names[first : first + _SWEEP_BATCH_FILES]
            referenced_names = await referenced(batch)
            unreferenced = [name for name in batch if name not in referenced_names]
            removed += await asyncio.to_thread(self._remove, unreferenced, before_ms)
        return removed

    def old_before_ms(self) -> int:
        """Return since when a file may still be one that is being received, in milliseconds since the epoch.

        An hour in which the machine's clock was set forward, or the machine slept, does not count as one.
        """
        awake_ms = time.monotonic_ns() // 1_000_000
        self._offsets.append((awake_ms, machine_ms() - awake_ms))
        while len(self._offsets) > 1 and self._offsets[1][0] <= awake_ms - MIN_SWEEP_AGE_MS:
            self._offsets.popleft()
        return awake_ms + min(offset_ms for _, offset_ms in self._offsets) - MIN_SWEEP_AGE_MS

    async def delete(self, names: Sequence[str]) -> None:
        """Delete files that no row refers to, also recent ones."""
        await asyncio.to_thread(self._delete, names)

    def rename_to_digest(self, incoming: Path, sha256: str) -> None:
        """Rename a flushed file to its digest; a file with the same bytes may exist already."""
        with self._rename_lock:
            incoming.replace(self.path(sha256))
        _flush_folder(self._folder)

    def _begin(self) -> tuple[int, str]:
        self.check_space(0)
        return tempfile.mkstemp(dir=self._folder, prefix=_INCOMING_PREFIX)

    def _open(self, exclusive: bool) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        before_ms = self.old_before_ms()
        for path in self._folder.glob(f"{_INCOMING_PREFIX}*"):
            if exclusive or _is_older(path, before_ms):
                path.unlink(missing_ok=True)

    def _old_names(self, before_ms: int) -> list[str]:
        """Return the names of files, and of what a process that was killed has not received whole."""
        names = (path.name for path in self._folder.iterdir() if _is_older(path, before_ms))
        return sorted(name for name in names if len(name) == 64 or name.startswith(_INCOMING_PREFIX))

    def _remove(self, names: Sequence[str], before_ms: int) -> int:
        removed = 0
        for name in names:
            path = self.path(name)
            # Checked again here: the same bytes may have been received since the rows were read.
            with self._rename_lock:
                if _is_older(path, before_ms):
                    path.unlink()
                    removed += 1
        return removed

    def _delete(self, names: Sequence[str]) -> None:
        for name in names:
            with self._rename_lock:
                self.path(name).unlink(missing_ok=True)
        _flush_folder(self._folder)


class IncomingFile:
    """A file that is being received. It ends with `commit` or `discard`.

    Attributes:
        size_bytes: received so far.
        head: its first 4 KiB.
    """

    def __init__(self, files: MediaFiles, descriptor: int, path: Path) -> None:
        self._files = files
        self._path = path
        self._file = os.fdopen(descriptor, "w+b", buffering=0)
        self._digest = hashlib.sha256()
        self._buffer = bytearray()
        self.size_bytes = 0
        self.head = b""

    async def add(self, chunk: bytes) -> None:
        """Add bytes; they are written in larger chunks, off the loop."""
        self.size_bytes += len(chunk)
        if len(self.head) < HEAD_BYTES:
            self.head += chunk[: HEAD_BYTES - len(self.head)]
        self._buffer += chunk
        if len(self._buffer) >= _WRITE_BUFFER_BYTES:
            await asyncio.to_thread(self._write)

    async def tail(self) -> bytes:
        """Return the last bytes, at most 256 KiB."""
        return await asyncio.to_thread(self._tail)

    async def commit(self) -> str:
        """Flush it, rename it to its digest, flush the folder; return the digest, in hex, once it is durable."""
        sha256 = await asyncio.to_thread(self._commit)
        await self._files.store(sha256)
        return sha256

    async def discard(self) -> None:
        """Delete it, unless it was committed."""
        await asyncio.to_thread(self._discard)

    def _write(self) -> None:
        self._files.check_space(len(self._buffer))
        chunk, self._buffer = self._buffer, bytearray()
        self._digest.update(chunk)
        view = memoryview(chunk)
        while view:
            written = self._file.write(view)
            view = view[written:]

    def _tail(self) -> bytes:
        self._write()
        self._file.seek(max(0, self.size_bytes - TAIL_BYTES))
        tail = self._file.read(TAIL_BYTES)
        self._file.seek(0, os.SEEK_END)
        return tail

    def _commit(self) -> str:
        self._write()
        os.fsync(self._file.fileno())
        self._file.close()
        sha256 = self._digest.hexdigest()
        self._files.rename_to_digest(self._path, sha256)
        return sha256

    def _discard(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
        self._path.unlink(missing_ok=True)


def _is_older(path: Path, before_ms: int) -> bool:
    """Return True if there is such a file, unchanged since before this time."""
    try:
        return path.stat().st_mtime_ns // 1_000_000 < before_ms
    except FileNotFoundError:
        return False


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _discard_file(opened_file: tuple[int, str]) -> None:
    descriptor, name = opened_file
    os.close(descriptor)
    Path(name).unlink(missing_ok=True)
