"""Untrusted snapshot files: their claims are checked before anything is extracted."""

import resource
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.dev.test_snapshots import small_snapshot
from waypost.assembly import snapshot
from waypost.simulator import SnapshotError

FILE_NAME = "whole.waypost"
Change = Callable[[Path], None]


def add_member(name: str, content: bytes, method: int = zipfile.ZIP_DEFLATED) -> Change:
    def change(file: Path) -> None:
        with zipfile.ZipFile(file, "a", method) as archive:
            archive.writestr(name, content)

    return change


def add_large_member(file: Path) -> None:
    """Add 300 MB of zeros, compressed to 0.3 MB."""
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("media/zeros", "w") as member:
        for _ in range(300):
            member.write(bytes(1_000_000))


def enlarge_manifest(file: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        manifest = msgspec.json.decode(archive.read(snapshot.MANIFEST_NAME))
    file.unlink()
    manifest["note"] = "x" * 10_000_000
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(snapshot.MANIFEST_NAME, msgspec.json.encode(manifest))


def add_many_members(file: Path) -> None:
    with zipfile.ZipFile(file, "a") as archive:
        for index in range(101_000):
            archive.writestr(f"media/{index}", b"")


def claim_large_directory(file: Path) -> None:
    """Claim a directory of 900 MB that is not there, in the end record."""
    content = bytearray(file.read_bytes())
    at = content.rfind(b"PK\x05\x06")
    struct.pack_into("<L", content, at + 12, 900_000_000)
    file.write_bytes(content)


def claim_large_zip64_directory(file: Path) -> None:
    content = file.read_bytes()
    at = content.rfind(b"PK\x05\x06")
    size, offset = struct.unpack_from("<2L", content, at + 12)
    end = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, 900_000_000, offset)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, at, 1)
    last = bytearray(content[at:])
    struct.pack_into("<L", last, 12, 0xFFFFFFFF)
    assert size < 0xFFFFFFFF
    file.write_bytes(content[:at] + end + locator + last)


# fmt: off
LIMITS = (
    # case                      damage                                                 error
    ("expands to too much",     add_large_member,                                      "expands to"),
    ("a large page",            enlarge_manifest,                                      "snapshot.json in it has 10"),
    ("many members",            add_many_members,                                      "it has 1010"),
    ("a directory too large",   claim_large_directory,                                 "its directory has 900000000"),
    ("a zip64 directory",       claim_large_zip64_directory,                           "its directory has 900000000"),
    ("another method",          add_member("media/a", b"x" * 1000, zipfile.ZIP_BZIP2), "compressed by method 12"),
    ("a path that leads out",   add_member("media/../../escape", b"x"),                "does not belong to a snapshot"),
    ("an absolute path",        add_member("/etc/escape", b"x"),                       "does not belong to a snapshot"),
    ("a path with backslashes", add_member("media\\..\\escape", b"x"),                 "does not belong to a snapshot"),
)
# fmt: on


@pytest.mark.parametrize(("change", "error"), [row[1:] for row in LIMITS], ids=[row[0] for row in LIMITS])
def test_snapshot_beyond_a_limit_is_rejected_and_leaves_no_files(change: Change, error: str, tmp_path: Path) -> None:
    small_snapshot(tmp_path)
    file, into = tmp_path / FILE_NAME, tmp_path / "into"
    change(file)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(SnapshotError, match=error) as raised:
        snapshot.stage_snapshot(file, into, secret_key="k", machine_ms=0)

    assert FILE_NAME in str(raised.value)
    assert not (into / snapshot.STAGING_FOLDER).exists()
    assert list(into.glob("**/*")) == [] or not any(path.is_file() for path in into.glob("**/*"))
    if sys.platform == "linux":
        grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
        assert grown_kb < 400_000


def test_a_duplicate_name_is_rejected(tmp_path: Path) -> None:
    small_snapshot(tmp_path)
    with pytest.warns(UserWarning, match="Duplicate name"):
        add_member("waypost.db", b"another store")(tmp_path / FILE_NAME)

    with pytest.raises(SnapshotError, match="two members have the same name"):
        snapshot.stage_snapshot(tmp_path / FILE_NAME, tmp_path / "into", secret_key="k", machine_ms=0)


def test_the_total_size_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lowered limit stands for a full disk."""
    small_snapshot(tmp_path)
    file = tmp_path / FILE_NAME
    monkeypatch.setattr(snapshot, "MAX_BYTES", 1000)

    with pytest.raises(SnapshotError, match="the limit is 1000"):
        snapshot.stage_snapshot(file, tmp_path / "into", secret_key="k", machine_ms=0)
