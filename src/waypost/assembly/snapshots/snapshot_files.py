"""The snapshots of a data folder, by name."""

import contextlib
import re
from pathlib import Path
from typing import Final

from waypost.assembly.snapshots import snapshot
from waypost.simulator import Snapshot, SnapshotError, UnknownSnapshot

FOLDER: Final = "snapshots"
_NAME: Final = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class Shelf:
    """Finds, shows and drops them; what is in one is the matter of `snapshots`.

    Args:
        data: the data folder.
    """

    def __init__(self, data: Path) -> None:
        self._folder = data / FOLDER

    def all(self) -> list[Snapshot]:
        """What is kept, by name."""
        known: list[Snapshot] = []
        for file in sorted(self._folder.glob(f"[!.]*{snapshot.SUFFIX}")):
            with contextlib.suppress(SnapshotError):  # a damaged one is told of when it is named
                known.append(snapshot_of(file))
        return known

    def place_of(self, name: str) -> Path:
        """Where one of that name is, or would be.

        Raises:
            UnknownSnapshot: no snapshot can be called that.
        """
        if not _NAME.fullmatch(name):
            raise UnknownSnapshot(name)
        return self._folder / f"{name}{snapshot.SUFFIX}"

    def file_of(self, name: str) -> Path:
        """One that is there.

        Raises:
            UnknownSnapshot: there is none of that name.
        """
        file = self.place_of(name)
        if not file.exists():
            raise UnknownSnapshot(name)
        return file

    def drop(self, name: str) -> None:
        """Forget one.

        Raises:
            UnknownSnapshot: there is none of that name.
        """
        try:
            self.place_of(name).unlink()
        except FileNotFoundError:
            raise UnknownSnapshot(name) from None

    def sweep(self) -> None:
        """Remove what a save that was stopped in the middle has left; no save may be going on."""
        snapshot.sweep(self._folder)


def snapshot_of(file: Path) -> Snapshot:
    """What a snapshot says of itself.

    Raises:
        SnapshotError: the file is none.
    """
    name = file.name.removesuffix(snapshot.SUFFIX)
    return Snapshot(name, snapshot.read_page(file).at_ms, file.stat().st_size)
