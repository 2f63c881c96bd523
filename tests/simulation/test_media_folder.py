"""A media folder on the simulated disk keeps what was flushed, and loses some of the rest, so that a missing flush shows."""

import asyncio
import errno
import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulation import media_folder
from simulation.disk import Disk, DiskFault
from simulation.media_folder import MediaFolder
from waypost.store.media import files
from waypost.store.media.files import MediaFiles, ensure_folder_name

CONTENT = bytes(range(256)) * 20


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    for name in media_folder.REPLACED:
        monkeypatch.setattr(f"os.{name}", getattr(os, name))  # restored at the end
    media_folder.watch_files()
    disk = Disk(tmp_path / "store.db", 1)
    folder = MediaFolder(tmp_path / "media", disk)
    yield disk
    media_folder.forget(folder)
    disk.close()


async def receive(folder: Path) -> str:
    """Receive a file as the service does; return its name."""
    media = MediaFiles(folder)
    await media.open(exclusive=True)
    incoming = await media.begin()
    try:
        await incoming.add(CONTENT)
        return await incoming.commit()
    finally:
        await incoming.discard()


def do_nothing(*_args: object) -> None:
    """Stand for a flush that is missing."""


def lose_power(disk: Disk) -> None:
    disk.turn_off()
    disk.turn_on(lost_power=True)


def test_received_file_survives_losses_of_power(tmp_path: Path, disk: Disk) -> None:
    name = asyncio.run(receive(tmp_path / "media"))

    for _ in range(20):
        lose_power(disk)
        assert (tmp_path / "media" / name).read_bytes() == CONTENT


@pytest.mark.parametrize("missing", ["content", "name"])
def test_file_that_was_not_flushed_is_lost_or_half_there(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    if missing == "name":
        monkeypatch.setattr(files, "_flush_folder", do_nothing)
    else:
        monkeypatch.setattr(MediaFolder, "flush_file", do_nothing)
    lost = 0
    for _ in range(30):
        name = asyncio.run(receive(tmp_path / "media"))
        lose_power(disk)
        path = tmp_path / "media" / name
        lost += not path.exists() or path.read_bytes() != CONTENT

    assert lost > 5


@pytest.mark.parametrize(("fault", "number"), [(DiskFault.FULL, errno.ENOSPC), (DiskFault.FAILED_SYNC, errno.EIO)])
def test_fault_fails_a_file_and_leaves_nothing(tmp_path: Path, disk: Disk, fault: DiskFault, number: int) -> None:
    (tmp_path / "media").mkdir()
    disk.fault = fault
    with pytest.raises(OSError, match=rf"Errno {number}"):
        asyncio.run(receive(tmp_path / "media"))

    assert [*(tmp_path / "media").iterdir()] == []


def test_files_of_other_folders_are_not_concerned(tmp_path: Path, disk: Disk) -> None:
    disk.fault = DiskFault.FULL
    descriptor, name = tempfile.mkstemp(dir=tmp_path)
    with open(descriptor, "wb") as file:  # noqa: PTH123  of a descriptor
        file.write(random.Random(1).randbytes(100))

    assert Path(name).stat().st_size == 100


def test_name_of_a_shared_folder_survives_a_loss_of_power(tmp_path: Path, disk: Disk) -> None:
    """Otherwise the next start gives it another one than the store has recorded, and no process starts."""
    folder = tmp_path / "media"
    folder.mkdir()
    ensure_folder_name(folder, "first")

    for _ in range(20):
        lose_power(disk)
        assert ensure_folder_name(folder, "second") == "first"


def test_flush_of_a_deleted_file_changes_nothing(tmp_path: Path, disk: Disk) -> None:
    """A thread may still flush a file whose upload has ended."""
    media = tmp_path / "media"
    media.mkdir()
    descriptor, name = tempfile.mkstemp(dir=media)
    os.unlink(name)  # noqa: PTH108  the function that is replaced
    os.fsync(descriptor)
    os.close(descriptor)

    lose_power(disk)

    assert [*media.iterdir()] in ([], [Path(name)])
