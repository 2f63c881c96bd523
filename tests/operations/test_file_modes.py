"""Other users of the machine can read no file in the data folder, however it was created."""

import contextlib
import os
import stat
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from crashes.processes import Child
from tests.support.polling import poll_until
from waypost.base.files import readable_by_others, remove_others_access

KEY = "long-key" * 8
ADMIN_TOKEN = "admin-token" * 4


@contextlib.contextmanager
def open_umask() -> Generator[None]:
    """Set the umask of a login shell."""
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)


def modes_of(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): oct(stat.S_IMODE(path.stat().st_mode)) for path in folder.rglob("*")}


@pytest.mark.parametrize("command", ["dev", "serve"])
async def test_only_the_owner_can_read_an_existing_folder(command: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with open_umask():
        data.mkdir(mode=0o755)
        data.chmod(0o755)
        (data / "media").mkdir(mode=0o755)
        (data / "waypost.db.old").write_text("a copy that somebody made")
        ports = ["--port", "0", *(["--simulator-port", "0"] if command == "dev" else [])]
        env = ["--env-file", str(tmp_path / "dev.env")] if command == "dev" else []
        child = Child(
            command,
            [sys.executable, "-m", "waypost", command, "--data", str(data), *ports, *env],
            {"WAYPOST_SECRET_KEY": KEY, "WAYPOST_ADMIN_TOKEN": ADMIN_TOKEN},
            tmp_path / "child.log",
        )
        child.start()
    try:
        ready = {"dev": "Waypost is running", "serve": "waypost serves at"}[command]

        async def log() -> str:
            return (tmp_path / "child.log").read_text()

        await poll_until(log, lambda text: ready in text, within_s=30)
        modes = modes_of(data)
        assert "waypost.db" in modes, modes
        assert "waypost.db-wal" in modes, modes
        expected = {name: "0o700" if (data / name).is_dir() else "0o600" for name in modes}
        assert modes == expected
        assert readable_by_others(data) == []
    finally:
        child.kill()


def test_a_file_is_reported_only_if_others_can_reach_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    closed, opened = tmp_path / "closed", tmp_path / "opened"
    for folder, mode in ((closed, 0o700), (opened, 0o755)):
        folder.mkdir()
        (folder / "file").write_text("x")
        (folder / "file").chmod(0o644)
        folder.chmod(mode)
    (tmp_path / "group").write_text("x")
    (tmp_path / "group").chmod(0o640)
    (tmp_path / "own").write_text("x")
    (tmp_path / "own").chmod(0o600)

    assert readable_by_others(tmp_path) == [(tmp_path / "group", 0o640), (opened / "file", 0o644)]

    remove_others_access(tmp_path)
    assert readable_by_others(tmp_path) == []
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_a_missing_folder_has_no_files_to_report(tmp_path: Path) -> None:
    assert readable_by_others(tmp_path / "missing") == []
    remove_others_access(tmp_path / "missing")
