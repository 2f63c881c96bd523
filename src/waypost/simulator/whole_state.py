"""What assembly lends to the control door where one process holds both sides: their state as a whole."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class NotKept(Exception):
    """A snapshot that cannot be made, read or found; says what is wrong and what would do."""


class UnknownSnapshot(NotKept):
    """There is no snapshot of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no snapshot called {name!r}")


class NotAtRest(NotKept):
    """A snapshot that could not be made, because something stayed in flight; says what."""


@dataclass(frozen=True)
class Snapshot:
    """A kept state of service and simulator.

    Args:
        name: as it was saved.
        at_ms: the virtual time at which it was saved.
        size_bytes: of its file.
    """

    name: str
    at_ms: int
    size_bytes: int


class Keeper(Protocol):
    """Keeps both sides' state, and brings it back."""

    async def snapshots(self) -> list[Snapshot]:
        """What is kept, by name."""
        ...

    async def save(self, name: str) -> Snapshot:
        """Keep the state of both sides as it is at one moment, under a name.

        Raises:
            NotAtRest: something stays in flight; it is named.
        """
        ...

    async def load(self, name: str) -> None:
        """Put both sides where they were when it was saved, the clock included.

        Raises:
            NotKept: there is none of that name, or it cannot be used here.
        """
        ...

    async def drop(self, name: str) -> None:
        """Forget one.

        Raises:
            UnknownSnapshot: there is none of that name.
        """
        ...

    def file_of(self, name: str) -> Path:
        """The file of one.

        Raises:
            UnknownSnapshot: there is none of that name.
        """
        ...

    async def reset(self) -> None:
        """Put both sides where they were when they were started first: at the seed."""
        ...
