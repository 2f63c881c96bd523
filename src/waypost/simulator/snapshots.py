"""Snapshots of service and simulator: the interface that `assembly` implements for the control API."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class SnapshotError(Exception):
    """A snapshot cannot be created, read or found; the text has the reason and the way to fix it."""


class UnknownSnapshot(SnapshotError):
    """No snapshot has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no snapshot called {name!r}")


class SnapshotBusy(SnapshotError):
    """A snapshot was not created because something stayed in flight; the text names it."""


@dataclass(frozen=True)
class Snapshot:
    """A saved state of service and simulator.

    Args:
        at_ms: the virtual time at which it was saved.
        size_bytes: of its file.
    """

    name: str
    at_ms: int
    size_bytes: int


class SnapshotStore(Protocol):
    """Saves and restores the state of service and simulator."""

    async def snapshots(self) -> list[Snapshot]:
        """Return the snapshots, by name."""
        ...

    async def save(self, name: str) -> Snapshot:
        """Save a consistent state of both sides under a name.

        Raises:
            SnapshotBusy: something stays in flight; the text names it.
        """
        ...

    async def load(self, name: str) -> None:
        """Restore a snapshot of both sides, the clock included.

        Raises:
            SnapshotError: no snapshot has this name, or it cannot be used here.
        """
        ...

    async def drop(self, name: str) -> None:
        """Delete a snapshot.

        Raises:
            UnknownSnapshot: no snapshot has this name.
        """
        ...

    def file_of(self, name: str) -> Path:
        """Return the path of a snapshot's file.

        Raises:
            UnknownSnapshot: no snapshot has this name.
        """
        ...

    async def reset(self) -> None:
        """Restore both sides to the seed."""
        ...
