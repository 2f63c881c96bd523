"""Contents too large for rows: one file each, in a folder next to the simulator's own file.

A file is written before the row that names it, so a crash leaves at most a file without a row; such
files are deleted when the simulator opens.
"""

import asyncio
import hashlib
import os
import shutil
from collections.abc import AsyncGenerator, Callable, Set
from pathlib import Path
from typing import BinaryIO, Final

from waypost.base.files import close_file, open_for_reading, open_on_thread
from waypost.simulator.apis.errors import disk_full_error

_CHUNK_BYTES: Final = 1024 * 1024


class Files:
    """The folder of contents. A file's name is a prefix of its user and an id.

    Args:
        reserved_bytes: disk space that is left free.
    """

    def __init__(self, folder: Path, *, reserved_bytes: int = 0) -> None:
        self._folder = folder
        self._reserved_bytes = reserved_bytes

    async def open(self) -> None:
        """Create the folder if it is missing."""
        await asyncio.to_thread(self._folder.mkdir, mode=0o700, parents=True, exist_ok=True)

    async def sweep(self, prefix: str, known: Set[str]) -> None:
        """Delete the files of a prefix that no row names."""

        def delete_unknown() -> None:
            for path in self._folder.glob(f"{prefix}*"):
                if path.name not in known:
                    path.unlink(missing_ok=True)

        await asyncio.to_thread(delete_unknown)

    async def remove(self, name: str) -> None:
        """Delete a file; a missing one is ignored."""
        await asyncio.to_thread((self._folder / name).unlink, missing_ok=True)

    async def read(self, name: str) -> bytes:
        """Return the whole content.

        Raises:
            FileNotFoundError: no file has this name.
        """
        return await asyncio.to_thread((self._folder / name).read_bytes)

    def path(self, name: str) -> Path:
        """Return a file's path."""
        return self._folder / name

    async def size(self, name: str) -> int:
        """Return a file's size in bytes; 0 if it is missing."""
        return await asyncio.to_thread(_size_of, self._folder / name)

    async def open_writer(self, name: str, offset: int) -> "FileWriter":
        """Open a file, created when absent, to write after its first `offset` bytes.

        Raises:
            GraphApiError: the disk has only the reserved space left.
        """
        if (await asyncio.to_thread(shutil.disk_usage, self._folder)).free < self._reserved_bytes:
            raise disk_full_error(self._reserved_bytes)
        file = await open_on_thread(lambda: _open_at(self._folder / name, offset), close_file)
        return FileWriter(self._folder, file, offset)

    async def write(self, name: str, content: bytes) -> None:
        """Write a whole file."""
        writing = await self.open_writer(name, 0)
        await writing.add(content)
        await writing.close()


class FileWriter:
    """A file open for appending; its content is on disk when `close` returns.

    Args:
        size_bytes: the offset at which writing begins.
    """

    def __init__(self, folder: Path, file: BinaryIO, size_bytes: int) -> None:
        self._folder = folder
        self._file = file
        self._buffer = bytearray()
        self.size_bytes = size_bytes
        self.digest = hashlib.sha256()

    async def add(self, chunk: bytes) -> None:
        """Add bytes; they are written in chunks of a megabyte."""
        self.size_bytes += len(chunk)
        self._buffer += chunk
        if len(self._buffer) >= _CHUNK_BYTES:
            await self._write()

    async def close(self) -> None:
        """Write the remaining bytes and sync the file and its folder."""
        await self._write()
        await asyncio.to_thread(self._sync_and_close)

    async def close_truncated(self, size_bytes: int) -> None:
        """Truncate the file to this size and close it."""
        self._buffer.clear()
        self.size_bytes = size_bytes
        await asyncio.to_thread(self._file.truncate, size_bytes)
        await asyncio.to_thread(self._sync_and_close)

    async def _write(self) -> None:
        chunk, self._buffer = bytes(self._buffer), bytearray()
        if chunk:
            await asyncio.to_thread(self.digest.update, chunk)
            await asyncio.to_thread(self._file.write, chunk)

    def _sync_and_close(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        if os.name == "nt":  # a folder cannot be opened on Windows, and needs no sync of its own
            return
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


async def read_chunks(path: Path) -> AsyncGenerator[bytes]:
    """Yield a file's content, a megabyte at a time.

    Raises:
        FileNotFoundError: the file is missing.
    """
    async with open_for_reading(path) as file:
        read: Callable[[int], bytes] = file.read
        while chunk := await asyncio.to_thread(read, _CHUNK_BYTES):
            yield chunk


def _open_at(path: Path, offset: int) -> BinaryIO:
    file = path.open("r+b" if path.exists() else "w+b")
    file.truncate(offset)
    file.seek(offset)
    return file


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
