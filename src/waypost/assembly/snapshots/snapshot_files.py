"""The snapshots of a data folder, by name."""

import contextlib
import re
from pathlib import Path
from typing import Final

from waypost.assembly.snapshots import snapshot
from waypost.simulator import Snapshot, SnapshotError, UnknownSnapshot

SNAPSHOT_FOLDER: Final = "snapshots"
_SNAPSHOT_FILE_NAME: Final = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class SnapshotFiles:
    """The snapshot files of a data folder; `snapshot.py` reads and writes their content.

    Args:
        data: the data folder.
    """

    def __init__(self, data: Path) -> None:
        self._folder = data / SNAPSHOT_FOLDER

    def list_all(self) -> list[Snapshot]:
        """Return the readable snapshots, by name."""
        snapshots: list[Snapshot] = []
        for file in sorted(self._folder.glob(f"[!.]*{snapshot.SNAPSHOT_SUFFIX}")):
            with contextlib.suppress(SnapshotError):  # using a damaged one raises the error
                snapshots.append(describe_snapshot(file))
        return snapshots

    def path_for(self, name: str) -> Path:
        """Return the path of a snapshot, which may not exist.

        Raises:
            UnknownSnapshot: the name is not valid.
        """
        if not _SNAPSHOT_FILE_NAME.fullmatch(name):
            raise UnknownSnapshot(name)
        return self._folder / f"{name}{snapshot.SNAPSHOT_SUFFIX}"

    def existing_path(self, name: str) -> Path:
        """Return the path of an existing snapshot.

        Raises:
            UnknownSnapshot: there is no such snapshot.
        """
        file = self.path_for(name)
        if not file.exists():
            raise UnknownSnapshot(name)
        return file

    def drop(self, name: str) -> None:
        """Delete a snapshot.

        Raises:
            UnknownSnapshot: there is no such snapshot.
        """
        try:
            self.path_for(name).unlink()
        except FileNotFoundError:
            raise UnknownSnapshot(name) from None

    def remove_temporary_files(self) -> None:
        """Remove the temporary files of interrupted saves; no save may be running."""
        snapshot.remove_temporary_files(self._folder)


def describe_snapshot(file: Path) -> Snapshot:
    """Return name, time and size of a snapshot file.

    Raises:
        SnapshotError: the file is not a snapshot.
    """
    name = file.name.removesuffix(snapshot.SNAPSHOT_SUFFIX)
    return Snapshot(name, snapshot.read_manifest(file).at_ms, file.stat().st_size)
