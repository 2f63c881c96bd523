"""Files: private files that no other user of the machine may read, and files opened on a thread."""

import asyncio
import contextlib
import os
import stat
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO, Final, Generic, TypeVar

UMASK: Final = 0o077
_OTHERS_MODE_BITS: Final = stat.S_IRWXG | stat.S_IRWXO
_MAX_CHECKED_FILES: Final = 10_000
_FLUSHED_BYTES: Final = 65_536


class InheritedUmask:
    """The mask of this process before `set_umask`, for a program of somebody else that it starts."""

    value: int | None = None  # it is as it was


def set_umask() -> None:
    """Make every file that this process and its children create from now on private to its user."""
    InheritedUmask.value = os.umask(UMASK)


def create_private(path: Path) -> None:
    """Create an empty file that only its owner can read, unless it exists."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def flush_again(path: Path, max_bytes: int | None = None) -> None:
    """Write the bytes of a file, or its first ones, once more, and flush them. Do nothing if there is no such file.

    After a flush that failed, Linux returns bytes that are not on the disk and that no later flush writes.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        size = os.fstat(descriptor).st_size
        for offset in range(0, size if max_bytes is None else min(size, max_bytes), _FLUSHED_BYTES):
            os.pwrite(descriptor, os.pread(descriptor, _FLUSHED_BYTES, offset), offset)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_others_access(folder: Path) -> None:
    """Remove other users' access to the files and subfolders directly in a folder, not to the folder itself.

    A subfolder that others cannot enter protects its content. Files of another user stay unchanged:
    `readable_by_others` reports them.
    """
    for entry in _entries(folder):
        with contextlib.suppress(OSError):
            mode = entry.stat(follow_symlinks=False).st_mode
            is_ours = stat.S_ISREG(mode) or stat.S_ISDIR(mode)
            if is_ours and mode & _OTHERS_MODE_BITS:
                Path(entry.path).chmod(stat.S_IMODE(mode) & ~_OTHERS_MODE_BITS)


def readable_by_others(folder: Path) -> list[tuple[Path, int]]:
    """Return the files in a folder that other users can read, each with its mode; checks at most 10,000."""
    readable: list[tuple[Path, int]] = []
    try:
        folder_mode = stat.S_IMODE(folder.stat().st_mode)
    except OSError:
        return readable
    pending, checked = [(folder, _access_classes(folder_mode, execute=True))], 0
    while pending and checked < _MAX_CHECKED_FILES:
        subfolder, classes = pending.pop()
        if not classes:
            continue
        for entry in _entries(subfolder):
            checked += 1
            with contextlib.suppress(OSError):
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode):
                    pending.append((Path(entry.path), classes & _access_classes(mode, execute=True)))
                elif stat.S_ISREG(mode) and classes & _access_classes(mode, execute=False):
                    readable.append((Path(entry.path), stat.S_IMODE(mode)))
    return sorted(readable)


def _access_classes(mode: int, *, execute: bool) -> frozenset[str]:
    """Return the classes other than the owner that may enter a folder or read a file: `group`, `right`."""
    group, other = (stat.S_IXGRP, stat.S_IXOTH) if execute else (stat.S_IRGRP, stat.S_IROTH)
    classes = (("group", group), ("other", other))
    return frozenset(name for name, bit in classes if mode & bit)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return


OpenedResource = TypeVar("OpenedResource")


async def open_on_thread(
    opener: Callable[[], OpenedResource], close: Callable[[OpenedResource], object]
) -> OpenedResource:
    """Return what a thread opens. If the caller is cancelled before it has it, it is closed again.

    Args:
        opener: opens it; its exceptions are raised to the caller.
        close: closes what the caller never received.
    """
    opening = _ThreadOpening(opener, close)
    try:
        return await asyncio.to_thread(opening.run)
    except asyncio.CancelledError:
        opening.abandon()
        raise


@asynccontextmanager
async def open_for_reading(path: Path) -> AsyncGenerator[BinaryIO]:
    """Open a file for reading. Raises FileNotFoundError: there is no such file."""
    file = await open_on_thread(lambda: path.open("rb"), close_file)
    with file:  # closed on the loop: another await could be cancelled too
        yield file


def close_file(file: BinaryIO) -> None:
    """Close a file. `BinaryIO.close` is a declaration that does nothing."""
    file.close()


class _ThreadOpening(Generic[OpenedResource]):
    def __init__(self, opener: Callable[[], OpenedResource], close: Callable[[OpenedResource], object]) -> None:
        self._opener = opener
        self._close = close
        self._resources: list[OpenedResource] = []
        self._is_abandoned = False
        self._lock = threading.Lock()  # held only briefly, by the thread and by `abandon`

    def run(self) -> OpenedResource:
        resource = self._opener()
        with self._lock:
            self._resources.append(resource)
            if self._is_abandoned:
                self._close(resource)
        return resource

    def abandon(self) -> None:
        with self._lock:
            self._is_abandoned = True
            for resource in self._resources:
                self._close(resource)
