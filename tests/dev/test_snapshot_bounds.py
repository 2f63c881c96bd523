"""A snapshot file from anybody: what it claims is checked before anything is unfolded."""

import resource
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.dev.test_snapshots import small_snapshot
from waypost.assembly.snapshots import size_limits, snapshot
from waypost.simulator import SnapshotError

WHOLE = "whole.waypost"
Change = Callable[[Path], None]


def with_member(name: str, content: bytes, method: int = zipfile.ZIP_DEFLATED) -> Change:
    def change(file: Path) -> None:
        with zipfile.ZipFile(file, "a", method) as archive:
            archive.writestr(name, content)

    return change


def with_large_member(file: Path) -> None:
    """300 MB of zeros, in 0.3 MB."""
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("media/zeros", "w") as member:
        for _ in range(300):
            member.write(bytes(1_000_000))


def with_large_page(file: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        page = msgspec.json.decode(archive.read(snapshot.MANIFEST_NAME))
    file.unlink()
    page["note"] = "x" * 10_000_000
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(snapshot.MANIFEST_NAME, msgspec.json.encode(page))


def with_many_members(file: Path) -> None:
    with zipfile.ZipFile(file, "a") as archive:
        for nth in range(101_000):
            archive.writestr(f"media/{nth}", b"")


def with_directory_claimed(file: Path) -> None:
    """An end that claims a directory of 900 MB, in front of which there is nothing of the kind."""
    content = bytearray(file.read_bytes())
    at = content.rfind(b"PK\x05\x06")
    struct.pack_into("<L", content, at + 12, 900_000_000)
    file.write_bytes(content)


def with_zip64_directory_claimed(file: Path) -> None:
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
BOUNDS = (
    # what it is                  how it is made                                             what is refused
    ("unfolds to too much",       with_large_member,                                         "expands to"),
    ("a large page",              with_large_page,                                           "snapshot.json in it has 10"),
    ("many members",              with_many_members,                                         "it has 1010"),
    ("a directory too large",     with_directory_claimed,                                    "its directory has 900000000"),
    ("a zip64 directory",         with_zip64_directory_claimed,                              "its directory has 900000000"),
    ("another method",            with_member("media/a", b"x" * 1000, zipfile.ZIP_BZIP2),    "compressed by method 12"),
    ("a path that leads out",     with_member("media/../../escape", b"x"),                   "does not belong to a snapshot"),
    ("an absolute path",          with_member("/etc/escape", b"x"),                          "does not belong to a snapshot"),
    ("a path with backslashes",   with_member("media\\..\\escape", b"x"),                    "does not belong to a snapshot"),
)
# fmt: on


@pytest.mark.parametrize(("change", "refusal"), [row[1:] for row in BOUNDS], ids=[row[0] for row in BOUNDS])
def test_what_goes_beyond_a_bound_is_refused_and_leaves_nothing(change: Change, refusal: str, tmp_path: Path) -> None:
    small_snapshot(tmp_path)
    file, into = tmp_path / WHOLE, tmp_path / "into"
    change(file)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(SnapshotError, match=refusal) as refused:
        snapshot.stage_snapshot(file, into, secret_key="k", machine_ms=0)

    assert WHOLE in str(refused.value)
    assert not (into / snapshot.STAGING_FOLDER).exists()
    assert list(into.glob("**/*")) == [] or not any(path.is_file() for path in into.glob("**/*"))
    if sys.platform == "linux":
        grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
        assert grown_kb < 400_000


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    small_snapshot(tmp_path)
    with pytest.warns(UserWarning, match="Duplicate name"):
        with_member("waypost.db", b"another store")(tmp_path / WHOLE)

    with pytest.raises(SnapshotError, match="two members have the same name"):
        snapshot.stage_snapshot(tmp_path / WHOLE, tmp_path / "into", secret_key="k", machine_ms=0)


def test_everything_together_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that is lowered stands for a disk that is full."""
    small_snapshot(tmp_path)
    file = tmp_path / WHOLE
    monkeypatch.setattr(size_limits, "MAX_BYTES", 1000)

    with pytest.raises(SnapshotError, match="the limit is 1000"):
        snapshot.stage_snapshot(file, tmp_path / "into", secret_key="k", machine_ms=0)
