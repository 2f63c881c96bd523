"""How much a snapshot file may ask of whoever reads it. The file may come from anybody.

A zip file is small and may unfold to anything, and its directory is read into memory before a member
is. So everything it claims is checked before anything is unfolded; the library reads no more of a
member than its directory claims.
"""

import shutil
import struct
import zipfile
from pathlib import Path
from typing import Final

from waypost.simulator import SnapshotError

# fmt: off
MAX_BYTES: Final = 8 * 1024**3             # all members together, unfolded
MAX_RATIO: Final = 100                     # of that to the file; our stores have 3 to 20
FREE_OF_RATIO_BYTES: Final = 256 * 1024**2 # empty pages of a small store compress better
MAX_MEMBERS: Final = 100_000
MAX_DIRECTORY_BYTES: Final = 16 * 1024**2
MAX_PAGE_BYTES: Final = 64 * 1024
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Source: APPNOTE.TXT 6.3.10, 4.3.14 to 4.3.16
_END: Final = struct.Struct("<4s4H2LH")
_LOCATOR: Final = struct.Struct("<4sLQL")
_END_64: Final = struct.Struct("<4sQ2H2L4Q")
_MAX_COMMENT: Final = 65_535
# fmt: on


def open_archive(file: Path) -> zipfile.ZipFile:
    """Open a snapshot whose directory is small enough to be read.

    Raises:
        SnapshotError: it is too large.
        OSError: the file cannot be read.
        zipfile.BadZipFile: it is no zip file.
    """
    size = _directory_bytes(file)
    if size > MAX_DIRECTORY_BYTES:
        raise _beyond(file, f"its directory has {size} bytes", f"{MAX_DIRECTORY_BYTES}")
    return zipfile.ZipFile(file)


def read_page_bytes(archive: zipfile.ZipFile, name: str, file: Path) -> bytes:
    """The content of the member that says what the snapshot is.

    Raises:
        SnapshotError: it is too large.
        KeyError: there is none.
    """
    member = archive.getinfo(name)
    if member.file_size > MAX_PAGE_BYTES:
        raise _beyond(file, f"{name} in it has {member.file_size} bytes", f"{MAX_PAGE_BYTES}")
    return archive.read(member)


def check_members(archive: zipfile.ZipFile, file: Path, *, into: Path) -> None:
    """Return when everything in it may be unfolded.

    Args:
        archive: of `file`.
        file: the snapshot.
        into: a folder that exists, on the disk that takes it.

    Raises:
        SnapshotError: too many members, too much in them, a name twice, or a method that we never use.
    """
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise _beyond(file, f"it has {len(members)} members", f"{MAX_MEMBERS}")
    if len({one.filename for one in members}) < len(members):
        raise SnapshotError(f"{file.name} is damaged: a name is in it twice")
    strange = next((one for one in members if one.compress_type not in _METHODS), None)
    if strange is not None:
        raise SnapshotError(
            f"{file.name} is damaged: {strange.filename[:100]!r} is compressed by method "
            f"{strange.compress_type}; a snapshot uses 0 and 8"
        )
    total = sum(one.file_size for one in members)
    most = min(MAX_BYTES, max(FREE_OF_RATIO_BYTES, MAX_RATIO * file.stat().st_size))
    if total > most:
        raise _beyond(file, f"it unfolds to {total} bytes", f"{most} for a file of its size")
    free = shutil.disk_usage(into).free
    if total > free:
        raise SnapshotError(f"{file.name} unfolds to {total} bytes, and the disk has {free} bytes free")


def _directory_bytes(file: Path) -> int:
    """The size of a zip file's directory, as its end claims it; 0 where there is no such end."""
    with file.open("rb") as source:
        size = source.seek(0, 2)
        source.seek(max(0, size - _END.size - _MAX_COMMENT - _LOCATOR.size))
        start = source.tell()
        tail = source.read()
        at = tail.rfind(b"PK\x05\x06")
        if at < 0 or len(tail) - at < _END.size:
            return 0
        claimed: int = _END.unpack_from(tail, at)[5]
        before = at - _LOCATOR.size
        if before >= 0 and tail[before : before + 4] == b"PK\x06\x07":
            source.seek(max(0, start + before - _END_64.size))
            end = source.read(_END_64.size)
            if len(end) == _END_64.size and end[:4] == b"PK\x06\x06":
                claimed = max(claimed if claimed < 0xFFFFFFFF else 0, _END_64.unpack(end)[8])
        return claimed


def _beyond(file: Path, found: str, most: str) -> SnapshotError:
    return SnapshotError(f"{file.name} is too large to be read: {found}, and the most is {most}")
