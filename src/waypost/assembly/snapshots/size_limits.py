"""Size limits of snapshot files, which may come from an untrusted source.

A small zip file can expand to any size, and its directory is read into memory before any member. So
all sizes it claims are checked before anything is extracted; the library reads no more of a member
than the directory claims.
"""

import shutil
import struct
import zipfile
from pathlib import Path
from typing import Final

from waypost.simulator import SnapshotError

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
        file: the snapshot.
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
