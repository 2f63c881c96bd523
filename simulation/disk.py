"""A disk below SQLite that loses what was not flushed, can be full, and can fail to flush.

SQLite's own file system layer opens every file. In the method tables of the files of a `Disk`, only what changes a
file is replaced; all else stays native. No file is really flushed. Files that Python writes, such as media, are those
of a `MediaFolder`, which is on a `Disk` too.

Source: sqlite.org, "OS Interface" and "Atomic Commit": what SQLite assumes of a disk.
"""

import _sqlite3
import ctypes
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Protocol

SECTOR_BYTES: Final = 512
OK, FULL, IOERR, IOERR_WRITE, IOERR_FSYNC = 0, 13, 10, 10 | 3 << 8, 10 | 4 << 8  # Source: sqlite.org, "Result Codes"
_CREATES_NAME: Final = 0x00080000 | 0x00000800  # SQLITE_OPEN_WAL, SQLITE_OPEN_MAIN_JOURNAL

_Pointer, _Int, _Long = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
_OPEN: Final = ctypes.CFUNCTYPE(_Int, _Pointer, _Pointer, _Pointer, _Int, _Pointer)
_DELETE: Final = ctypes.CFUNCTYPE(_Int, _Pointer, ctypes.c_char_p, _Int)
_WRITE: Final = ctypes.CFUNCTYPE(_Int, _Pointer, _Pointer, _Int, _Long)
_TRUNCATE: Final = ctypes.CFUNCTYPE(_Int, _Pointer, _Long)
_SYNC: Final = ctypes.CFUNCTYPE(_Int, _Pointer, _Int)


class _Layer(ctypes.Structure):
    """`sqlite3_vfs`."""

    _fields_ = (
        ("version", _Int),
        ("file_bytes", _Int),
        ("path_bytes", _Int),
        ("next", _Pointer),
        ("name", ctypes.c_char_p),
        ("data", _Pointer),
        ("open", _OPEN),
        ("delete", _DELETE),
        ("others", _Pointer * 14),
    )


class _Methods(ctypes.Structure):
    """`sqlite3_io_methods`."""

    _fields_ = (
        ("version", _Int),
        ("close", _Pointer),
        ("read", _Pointer),
        ("write", _WRITE),
        ("truncate", _TRUNCATE),
        ("sync", _SYNC),
        ("others", _Pointer * 13),
    )


class DiskFault(StrEnum):
    """What operations of a kind meet while the fault lasts."""

    FULL = "full"  # a write finds no space: a file system that never overwrites
    FULL_FOR_GROWTH = "full for growth"  # only a write that makes its file longer finds none
    FAILED_SYNC = "failed sync"  # what was to be flushed is partly lost, and no later flush writes it


@dataclass
class _File:
    """A file: its flushed content, and in order what was done to it since.

    Attributes:
        size: in bytes, with what was not flushed.
        unflushed: offset and bytes of a write; the size and None of a truncation.
    """

    flushed: bytearray
    size: int
    unflushed: list[tuple[int, bytes | None]] = field(default_factory=list)
    has_flushed_name: bool = True

    def flush(self) -> None:
        for offset, content in self.unflushed:
            self.apply(offset, content)
        self.unflushed.clear()

    def apply(self, offset: int, content: bytes | None) -> None:
        flushed = self.flushed
        if content is None:
            del flushed[offset:]
            return
        if offset > len(flushed):
            flushed.extend(bytes(offset - len(flushed)))
        flushed[offset : offset + len(content)] = content


class LostFiles(Protocol):
    """Files beside the database."""

    def lose_unflushed(self, chance: random.Random) -> None:
        """Lose of what was not flushed as much as chance decides."""


class Disk:
    """The files of one SQLite database, and those of folders.

    Args:
        seed: decides what a loss of power keeps.

    Attributes:
        folders: what else loses what was not flushed.
        chance: decides what a failed flush has written.
        fault: met by some operations; None: all succeed.
        met_by_every: how many operations of its kind there are for each that meets it.
        on_operation: called before each write, flush and deletion with its name.
        counts: operations and losses, by name.
    """

    def __init__(self, database: Path, seed: int | str) -> None:
        self._path = str(database.parent.resolve() / database.name)
        self._seed = seed
        self._chance = random.Random(f"{seed} disk")
        self.chance = random.Random(f"{seed} folders")
        self.folders: list[LostFiles] = []
        self._files: dict[str, _File] = {}
        self._deleted: dict[str, _File] = {}
        self._is_off = False
        self.fault: DiskFault | None = None
        self.met_by_every = 1
        self._until_met = 0
        self.on_operation: Callable[[str], None] | None = None
        self.counts: Counter[str] = Counter()
        _layer().disks.append(self)

    def close(self) -> None:
        """Stop keeping account of the files."""
        _layer().disks.remove(self)

    def turn_off(self) -> None:
        """Let every operation fail, and change nothing, until `turn_on`."""
        self._is_off = True

    def turn_on(self, *, lost_power: bool) -> None:
        """Let operations succeed again; without power, first lose of what was not flushed as much as chance decides.

        No file may be open.
        """
        if lost_power:
            self.counts["loss of power"] += 1
            self._chance = random.Random(f"{self._seed} disk {self.counts['loss of power']}")
            self._lose_unflushed()
            for folder in self.folders:
                folder.lose_unflushed(random.Random(f"{self._seed} folder {self.counts['loss of power']}"))
        self._is_off = False

    def holds(self, path: str) -> bool:
        return path.startswith(self._path)

    def opened(self, path: str, flags: int) -> _File:
        file = self._files.get(path)
        if file is None:
            content = bytearray(Path(path).read_bytes())  # made outside of SQLite, and empty if it is new
            file = self._files[path] = _File(content, len(content), has_flushed_name=not flags & _CREATES_NAME)
        return file

    def wrote(self, path: str, offset: int, content: bytes) -> None:
        """Note what Python wrote, into a file of SQLite that is not open there."""
        self.opened(path, 0).unflushed.append((offset, content))

    def sync(self, path: str) -> int:
        """Flush such a file; return the error."""

        def rewrite(content: bytes) -> None:
            with Path(path).open("r+b") as file:
                file.write(content)

        return self.before("sync") or self.flushed(self.opened(path, 0), rewrite)

    def before(self, operation: str, *, grows: bool = False) -> int:
        """Count an operation; return the error that it meets, 0 if none.

        Args:
            grows: whether it makes its file longer.
        """
        if not self._is_off:
            self.counts[operation] += 1
            if self.on_operation is not None:
                self.on_operation(operation)
        if self._is_off:
            return IOERR_WRITE
        if self.fault is None or operation != "write" or not self._has_no_space(grows=grows):
            return OK
        return FULL

    def _has_no_space(self, *, grows: bool) -> bool:
        is_full = self.fault is DiskFault.FULL or (self.fault is DiskFault.FULL_FOR_GROWTH and grows)
        return is_full and self._is_met("no space")

    def _is_met(self, name: str) -> bool:
        """Count an operation that may meet the fault; return True if it does: the first of every few."""
        is_met = self._until_met == 0
        self._until_met = (self._until_met or self.met_by_every) - 1
        self.counts[name] += is_met
        return is_met

    def fails_flush(self) -> bool:
        """Return True if a flush that is about to be done fails."""
        return self.fault is DiskFault.FAILED_SYNC and self._is_met("failed flush")

    def flushed(self, file: _File, rewrite: Callable[[bytes], None]) -> int:
        """Flush a file, unless that fails; return the error.

        As on Linux, what a failed flush has not written counts as written: no later one writes it. It stays readable
        until the kernel needs its memory, which may be at once; the file then has its old content.

        Args:
            rewrite: called with what the file is to contain from its begin, if that is at once.
        """
        if self.fails_flush():
            self._keep_some(file, self._chance.choice((0, self._chance.random(), 1)))
            if self._chance.random() < 0.5:
                self.counts["dropped pages"] += 1
                rewrite(bytes(file.flushed).ljust(file.size, b"\0")[: file.size])
            return IOERR_FSYNC
        file.flush()
        if not file.has_flushed_name:  # then SQLite flushes the folder too
            self._flush_names()
        return OK

    def deleted(self, path: str, *, is_flushed: bool) -> None:
        file = self._files.pop(path, None)
        if file is not None and file.has_flushed_name:
            self._deleted.setdefault(path, file)
        if is_flushed:
            self._flush_names()

    def _flush_names(self) -> None:
        self._deleted.clear()
        for file in self._files.values():
            file.has_flushed_name = True

    def _lose_unflushed(self) -> None:
        share = self._chance.choice((0, 0.5, self._chance.random(), 1))
        for path in sorted({*self._files, *self._deleted}):
            file, deleted = self._files.get(path), self._deleted.get(path)
            if (file is None or not file.has_flushed_name) and self._chance.random() >= share:
                file = deleted  # the folder is as it was
            Path(path).unlink(missing_ok=True)
            if file is None:
                self._files.pop(path, None)
                continue
            self._keep_some(file, share)
            file.has_flushed_name, file.size = True, len(file.flushed)
            Path(path).write_bytes(file.flushed)
            self._files[path] = file
        self._deleted.clear()
        Path(f"{self._path}-shm").unlink(missing_ok=True)

    def _keep_some(self, file: _File, share: float) -> None:
        """Flush this share of the unflushed sectors, some only in part, and forget the others."""
        for offset, content in file.unflushed:
            if content is None:
                if self._chance.random() < share:
                    file.apply(offset, None)
                continue
            first, end = offset, offset + len(content)
            while first < end:
                after = min(end, (first // SECTOR_BYTES + 1) * SECTOR_BYTES)
                if self._chance.random() < share:
                    kept = after
                    if self._chance.random() < 0.02:
                        kept = self._chance.randint(first, after)
                    if kept > first:
                        file.apply(first, content[first - offset : kept - offset])
                first = after
        file.unflushed.clear()


class _SqliteLayer:
    """The layer that is SQLite's default from now on, as long as the process lives."""

    def __init__(self) -> None:
        self.disks: list[Disk] = []
        self._files: dict[int, tuple[Disk, _File]] = {}  # by the address of the `sqlite3_file`
        self._methods: dict[int, tuple[_Methods, _Methods]] = {}  # by the address of the native ones
        self._native, self._layer = _Layer(), _Layer()
        self._kept: tuple[Any, ...] = ()

    def install(self) -> None:
        # A dynamic `libsqlite3` is found through the module that was linked with it, as is a static one with symbols
        library: Any = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_Layer)
        native = library.sqlite3_vfs_find(None)
        self._native = native.contents
        ctypes.memmove(ctypes.byref(self._layer), native, ctypes.sizeof(_Layer))
        self._layer.name = b"simulated disk"
        self._layer.open, self._layer.delete = _OPEN(self._open), _DELETE(self._delete)
        self._kept = (library, native)
        if library.sqlite3_vfs_register(ctypes.byref(self._layer), 1) != OK:
            raise RuntimeError("SQLite does not take the layer of the simulated disk")

    def _open(self, _layer: int, name: int | None, file: int, flags: int, out_flags: int | None) -> int:
        result = self._native.open(ctypes.addressof(self._native), name, file, flags, out_flags)
        if result != OK or name is None:
            return result
        path = (ctypes.string_at(name)).decode()
        for disk in self.disks:
            if disk.holds(path):
                methods = ctypes.cast(file, ctypes.POINTER(_Pointer))
                native = methods.contents.value
                if native is None:
                    return IOERR
                methods[0] = ctypes.addressof(self._replace(native))
                self._files[file] = disk, disk.opened(path, flags)
        return result

    def _replace(self, native: int) -> _Methods:
        if native not in self._methods:
            original = _Methods.from_address(native)
            # Each access to such a field makes an object
            write_natively, truncate_natively = original.write, original.truncate
            replaced, files = _Methods(), self._files
            ctypes.memmove(ctypes.byref(replaced), native, ctypes.sizeof(_Methods))

            def write(file: int, content: int, size: int, offset: int) -> int:
                disk, written = files[file]
                end = offset + size
                grows = end > written.size
                result = disk.before("write", grows=grows) or write_natively(file, content, size, offset)
                if result == OK:
                    if grows:
                        written.size = end
                    written.unflushed.append((offset, ctypes.string_at(content, size)))
                return result

            def truncate(file: int, size: int) -> int:
                disk, truncated = files[file]
                result = disk.before("truncate") or truncate_natively(file, size)
                if result == OK:
                    truncated.size = min(truncated.size, size)
                    truncated.unflushed.append((size, None))
                return result

            def sync(file: int, _flags: int) -> int:
                disk, synced = files[file]

                def rewrite(content: bytes) -> None:
                    write_natively(file, ctypes.cast(ctypes.c_char_p(content), _Pointer), len(content), 0)

                return disk.before("sync") or disk.flushed(synced, rewrite)

            replaced.write, replaced.truncate, replaced.sync = _WRITE(write), _TRUNCATE(truncate), _SYNC(sync)
            self._methods[native] = original, replaced
        return self._methods[native][1]

    def _delete(self, _layer: int, name: bytes, is_flushed: int) -> int:
        path = name.decode()
        disk = next((disk for disk in self.disks if disk.holds(path)), None)
        if disk is None:
            return self._native.delete(ctypes.addressof(self._native), name, is_flushed)
        result = disk.before("delete") or self._native.delete(ctypes.addressof(self._native), name, 0)
        if result == OK:
            disk.deleted(path, is_flushed=bool(is_flushed))
        return result


def disk_of(path: str) -> Disk | None:
    """Return the simulated disk that has a file of SQLite; None if none has."""
    return next((disk for layer in _installed for disk in layer.disks if disk.holds(path)), None)


_installed: list[_SqliteLayer] = []


def _layer() -> _SqliteLayer:
    if not _installed:
        layer = _SqliteLayer()
        layer.install()
        _installed.append(layer)
    return _installed[0]
