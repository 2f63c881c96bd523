"""A folder of media on the simulated disk: what was not flushed is lost with the power, and its writes may find no space.

Python writes these files, and some of the database's before SQLite opens it, so the functions of `os` by which the service changes a folder are replaced, once in a
process. A file has the content of its last flush, and the folder the names of its own; of the rest a loss of power
keeps what chance decides: names that point to empty or half files, old names, and files that were deleted.

Source: POSIX, `fsync`; Pillai and others, "All File Systems Are Not Created Equal" (OSDI 2014): names and contents reach
the disk in any order.
"""

import errno
import io
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from simulation.disk import FULL, OK, SECTOR_BYTES, Disk, disk_of

REPLACED: Final = ("open", "fdopen", "fsync", "pwrite", "replace", "rename", "unlink", "remove", "link")
"""Of the functions of `os`."""
_folders: Final[list["MediaFolder"]] = []
_native_unlink: Final = os.unlink
_DELETED: Final = " (deleted)"
"""After the path of a file without a name. Source: proc(5), /proc/pid/fd."""


@dataclass(eq=False)
class _MediaFile:
    """The bytes of a file, under whatever names.

    Attributes:
        flushed: what a loss of power keeps at least.
        last: its content when its last name was deleted.
    """

    flushed: bytes = b""
    last: bytes = b""


class MediaFolder:
    """A folder without subfolders, on a disk.

    Args:
        folder: need not exist yet; it is never lost itself.
        disk: decides what its operations meet, and when the power is lost.
    """

    def __init__(self, folder: Path, disk: Disk) -> None:
        self.path = str(folder.resolve())
        self._disk = disk
        self._names: dict[str, _MediaFile] = {}  # as processes see them
        self._flushed_names: dict[str, _MediaFile] = {}
        self._changes: list[tuple[str | None, str | None, _MediaFile]] = []  # since: the name that went, and that came
        disk.folders.append(self)
        _folders.append(self)

    def meet(self, operation: str, *, grows: bool = False) -> None:
        """Count an operation. Raises OSError: it meets a fault, or the machine is off."""
        check(self._disk.before(operation, grows=grows))

    def change(self, old: str | None, new: str | None) -> None:
        """Note that a name came, went, or is another one now."""
        file = _MediaFile() if old is None else self._names.pop(old, None) or _MediaFile()
        if new is not None:
            self._names[new] = file
            self._touch(new)
        self._changes.append((old, new, file))

    def link(self, old: str, new: str) -> None:
        """Note that a file has a second name."""
        self._names[new] = file = self._names.setdefault(old, _MediaFile())
        self._changes.append((None, new, file))

    def keep_content(self, name: str) -> None:
        """Read a file that is about to lose its name: a loss of power may bring it back."""
        if name in self._names:
            self._names[name].last = Path(self.path, name).read_bytes()

    def flush_file(self, name: str) -> None:
        """Note that the content of a file was flushed. Raises OSError: a part of it was, and the rest never will be."""
        if name not in self._names:  # it was opened by other means
            self.change(None, name)
        file, content = self._names[name], Path(self.path, name).read_bytes()
        self._touch(name)
        if self._disk.fails_flush():
            file.flushed = _keep_some(file.flushed, content, 0.5, self._disk.chance)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        file.flushed = content

    def flush_names(self) -> None:
        """Note that the folder was flushed."""
        if self._disk.fails_flush():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._flushed_names = dict(self._names)
        self._changes.clear()

    def lose_unflushed(self, chance: random.Random) -> None:
        """Bring the folder into a state in which a loss of power may leave it."""
        share = chance.choice((0, 0.5, chance.random(), 1))
        seen = {file: Path(self.path, name).read_bytes() for name, file in self._names.items()}
        names = dict(self._flushed_names)
        for old, new, file in self._changes:
            if chance.random() < share:
                if old is not None:
                    names.pop(old, None)
                if new is not None:
                    names[new] = file
        for name in self._names:
            _native_unlink(Path(self.path, name))
        for name, file in names.items():
            file.flushed = _keep_some(file.flushed, seen.get(file, file.last), share, chance)
            Path(self.path, name).write_bytes(file.flushed)
            self._touch(name)
        self._names, self._flushed_names = names, dict(names)
        self._changes.clear()

    def _touch(self, name: str) -> None:
        """Give a file the time of the simulation: the kernel has its own."""
        os.utime(Path(self.path, name), ns=(time.time_ns(), time.time_ns()))


def _keep_some(flushed: bytes, seen: bytes, share: float, chance: random.Random) -> bytes:
    """Return flushed bytes with this share of the sectors that were written since."""
    if flushed == seen:
        return flushed
    kept = bytearray(flushed)
    for first in range(0, len(seen), SECTOR_BYTES):
        sector = seen[first : first + SECTOR_BYTES]
        if chance.random() < share:
            kept.extend(bytes(max(0, first + len(sector) - len(kept))))
            kept[first : first + len(sector)] = sector
    return bytes(kept)


class _WatchedFile(io.FileIO):
    """A file without a buffer, whose writes may fail."""

    folder: MediaFolder

    def write(self, content: Any, /) -> int:
        """Write bytes. Raises OSError: the disk does not."""
        self.folder.meet("write", grows=True)
        return super().write(content)


def _find(path: Any) -> tuple[MediaFolder, str] | None:
    """Return the folder of a file, and its name; None if it is in no folder of a simulated disk."""
    if not _folders or isinstance(path, int):
        return None
    parent, _, name = str(path).rpartition("/")
    return next(((folder, name) for folder in _folders if folder.path == parent), None)


def check(result: int) -> None:
    """Raise the OSError of an operation that the disk did not do."""
    if result != OK:
        number = errno.ENOSPC if result == FULL else errno.EIO
        raise OSError(number, os.strerror(number))


def _path_of(descriptor: int) -> str:
    return str(Path(f"/proc/self/fd/{descriptor}").readlink()) if _folders else ""


def _find_opened(descriptor: int) -> tuple[MediaFolder, str] | None:
    """Return what a descriptor is of: a file, or with an empty name the folder itself. A deleted file is in no folder."""
    path = _path_of(descriptor)
    if path.endswith(_DELETED):
        return None
    return next(((folder, "") for folder in _folders if folder.path == path), None) or _find(path)


def watch_files() -> None:
    """Replace the functions by which Python changes a folder; once in a process. Others' folders are not concerned."""
    native_open, native_fdopen = os.open, os.fdopen
    native_fsync, native_pwrite = os.fsync, os.pwrite
    native_replace, native_link = os.replace, os.link

    def open_(path: Any, flags: int, *args: Any, **options: Any) -> int:
        found = _find(path) if flags & os.O_CREAT else None
        if found is None or Path(path).exists():
            return native_open(path, flags, *args, **options)
        found[0].meet("write", grows=True)
        descriptor = native_open(path, flags, *args, **options)
        found[0].change(None, found[1])
        return descriptor

    def fdopen(descriptor: int, mode: str = "r", *args: Any, **options: Any) -> Any:
        found = _find_opened(descriptor)
        if found is None or options.get("buffering") != 0:
            return native_fdopen(descriptor, mode, *args, **options)
        file = _WatchedFile(descriptor, mode.replace("b", ""))
        file.folder = found[0]
        return file

    def fsync(descriptor: int) -> None:
        path = _path_of(descriptor)
        if (disk := disk_of(path)) is not None:
            check(disk.sync(path))
            return
        found = _find_opened(descriptor)
        if found is None:
            native_fsync(descriptor)
            return
        found[0].meet("sync")
        if found[1]:
            found[0].flush_file(found[1])
        else:
            found[0].flush_names()

    def pwrite(descriptor: int, content: Any, offset: int) -> int:
        path = _path_of(descriptor)
        disk = disk_of(path)
        if disk is not None:
            check(disk.before("write"))
            disk.wrote(path, offset, content)
        return native_pwrite(descriptor, content, offset)

    def replace(old: Any, new: Any, **options: Any) -> None:
        found = _find(old)
        if found is not None:
            found[0].meet("rename")
            found[0].keep_content(Path(new).name)
        native_replace(old, new, **options)
        if found is not None:
            found[0].change(found[1], Path(new).name)

    def unlink(path: Any, **options: Any) -> None:
        found = _find(path)
        if found is not None:
            found[0].meet("delete")
            found[0].keep_content(found[1])
        _native_unlink(path, **options)
        if found is not None:
            found[0].change(found[1], None)

    def link(old: Any, new: Any, **options: Any) -> None:
        found = _find(old)
        if found is not None:
            found[0].meet("write", grows=True)
        native_link(old, new, **options)
        if found is not None:
            found[0].link(found[1], Path(new).name)

    functions: tuple[Callable[..., Any], ...] = (open_, fdopen, fsync, pwrite, replace, replace, unlink, unlink, link)
    for name, function in zip(REPLACED, functions, strict=True):
        setattr(os, name, function)


def forget(folder: MediaFolder) -> None:
    """Stop keeping account of a folder."""
    _folders.remove(folder)
