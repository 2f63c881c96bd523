"""The media folder: a file under its final name is complete, and no file in use is removed."""

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from waypost.store.media.files import MIN_SWEEP_AGE_MS, TAIL_BYTES, MediaFiles

CONTENT = os.urandom(1_300_000)


@pytest.fixture
async def files(tmp_path: Path) -> MediaFiles:
    files = MediaFiles(tmp_path / "media")
    await files.open(exclusive=True)
    return files


async def store_file(files: MediaFiles, content: bytes, part_bytes: int = 65_536) -> str:
    incoming = await files.begin()
    for first in range(0, len(content), part_bytes):
        await incoming.add(content[first : first + part_bytes])
    sha256 = await incoming.commit()
    await incoming.discard()
    return sha256


def names(files: MediaFiles) -> list[str]:
    return sorted(path.name for path in files.path("x").parent.iterdir())


def make_old(files: MediaFiles, sha256: str) -> None:
    os.utime(files.path(sha256), (0, 0))


async def no_references(_names: Sequence[str]) -> set[str]:
    return set()


async def test_file_is_named_by_its_digest(files: MediaFiles) -> None:
    sha256 = await store_file(files, CONTENT)

    assert sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert files.path(sha256).read_bytes() == CONTENT
    assert names(files) == [sha256]


async def test_same_bytes_share_one_file(files: MediaFiles) -> None:
    first, second = await store_file(files, CONTENT), await store_file(files, CONTENT, 1000)

    assert first == second
    assert names(files) == [first]


async def test_head_and_tail_are_known_before_the_file_is_committed(files: MediaFiles) -> None:
    incoming = await files.begin()
    for first in range(0, len(CONTENT), 1000):
        await incoming.add(CONTENT[first : first + 1000])

    tail = await incoming.tail()

    assert incoming.head == CONTENT[:4096]
    assert tail == CONTENT[-TAIL_BYTES:]
    assert await incoming.commit() == hashlib.sha256(CONTENT).hexdigest()


async def test_discarded_file_leaves_nothing(files: MediaFiles) -> None:
    incoming = await files.begin()
    await incoming.add(CONTENT)

    await incoming.discard()

    assert names(files) == []


async def test_file_left_incomplete_by_a_crash_is_removed_at_the_next_start(files: MediaFiles) -> None:
    sha256 = await store_file(files, CONTENT)
    incoming = await files.begin()
    await incoming.add(CONTENT)

    await MediaFiles(files.path("x").parent).open(exclusive=True)

    assert names(files) == [sha256]
    await incoming.discard()


async def test_start_beside_other_processes_leaves_their_incomplete_files(files: MediaFiles) -> None:
    incoming = await files.begin()

    await MediaFiles(files.path("x").parent).open(exclusive=False)

    assert len(names(files)) == 1
    await incoming.discard()


async def test_sweep_removes_old_files_that_nothing_refers_to(files: MediaFiles) -> None:
    unused, needed, recent = await store_file(files, b"1"), await store_file(files, b"2"), await store_file(files, b"3")
    make_old(files, unused)
    make_old(files, needed)

    async def referenced(_names: Sequence[str]) -> set[str]:
        return {needed}

    removed = await files.sweep(referenced)

    assert removed == 1
    assert names(files) == sorted([needed, recent])


async def test_sweep_removes_what_a_process_that_was_killed_has_not_received_whole(files: MediaFiles) -> None:
    """Where processes share the folder, the next start does not know whose it is."""
    old = await files.begin()
    [name] = names(files)
    make_old(files, name)
    recent = await files.begin()

    async def referenced(_names: Sequence[str]) -> set[str]:
        return set()

    assert await files.sweep(referenced) == 1
    assert len(names(files)) == 1
    for incoming in (old, recent):
        await incoming.discard()


async def test_file_that_is_stored_again_during_a_sweep_stays(files: MediaFiles) -> None:
    sha256 = await store_file(files, CONTENT)
    make_old(files, sha256)

    async def referenced(_names: Sequence[str]) -> set[str]:
        await store_file(files, CONTENT)  # its row is not written yet
        return set()

    removed = await files.sweep(referenced)

    assert removed == 0
    assert files.path(sha256).read_bytes() == CONTENT


async def test_many_files_are_swept(files: MediaFiles) -> None:
    for number in range(600):
        path = files.path(hashlib.sha256(str(number).encode()).hexdigest())
        path.write_bytes(b"x")
        os.utime(path, (0, 0))

    assert await files.sweep(no_references) == 600


async def test_clock_that_is_set_makes_no_file_old(files: MediaFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns, awake_ns = time.time_ns, time.monotonic_ns

    def set_clocks(*, ahead_h: int, awake_h: int = 0) -> None:
        monkeypatch.setattr(time, "time_ns", lambda: now_ns() + (ahead_h + awake_h) * 3_600_000_000_000)
        monkeypatch.setattr(time, "monotonic_ns", lambda: awake_ns() + awake_h * 3_600_000_000_000)

    incoming = await files.begin()
    for ahead_h in (2, 4, 3, -9, 1):
        set_clocks(ahead_h=ahead_h)
        assert await files.sweep(no_references) == 0
    sha256 = await incoming.commit()
    assert await files.sweep(no_references) == 0  # its row is not written yet
    assert names(files) == [sha256]

    set_clocks(ahead_h=1, awake_h=2)
    assert await files.sweep(no_references) == 1


def test_an_hour_is_longer_than_any_upload_takes() -> None:
    assert MIN_SWEEP_AGE_MS == 3_600_000
