"""What a store's engine gives, and the errors the rest may meet."""

from __future__ import annotations  # so that commands which only want the errors load no SQLAlchemy

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sqlalchemy import Connection

Hear = Callable[[str], None]
"""Called on a thread of the engine with what another process has told."""


class StoreInUse(Exception):
    """Another process has this store open, and its engine allows one only."""


class WrongStore(Exception):
    """The store is of another revision or kind than this command works on; the text says the remedy."""


class StoreAway(Exception):
    """The store cannot be reached, or its answer did not come: nobody's defect, and worth trying again.

    Whether what was being written is on disk is unknown when the answer to a commit did not come.
    """


class Engine(Protocol):
    """One database engine.

    Attributes:
        name: `sqlite` or `postgresql`.
        sole: whether this process is the only one that may have the store open.
        in_order: whether a row with a higher number is never seen before one with a lower.
        readers: how many threads may read at once.
        writers: how many connections write, each on a thread of its own.
    """

    name: str
    sole: bool
    in_order: bool
    readers: int
    writers: int

    def open(self) -> None:
        """Make the store when it is not there, and take whatever lock it needs.

        Raises:
            StoreInUse: another process has it.
            WrongStore: it has another revision.
            StoreAway: it cannot be reached.
        """
        ...

    def write(self, nth: int = 0) -> AbstractContextManager[Connection]:
        """A transaction on a writing connection; called on its writer's thread only."""
        ...

    def read(self) -> AbstractContextManager[Connection]:
        """A connection that only reads, ended without a trace.

        On SQLite what is read is one consistent view. On PostgreSQL each statement is.
        """
        ...

    @property
    def beside(self) -> Callable[[], AbstractContextManager[Connection]] | None:
        """Begins a transaction on a connection of its own, for work that nobody waits for; None: there is one writer."""
        ...

    def is_away(self, error: BaseException) -> bool:
        """Whether an error says that the store could not be reached."""
        ...

    def is_clash(self, error: BaseException) -> bool:
        """Whether a transaction failed only because of another at the same moment: it is worth running again."""
        ...

    def listen(self, hear: Hear) -> None:
        """Call this with whatever another process tells from now on, and with an empty text after a gap."""
        ...

    def notify(self, words: Sequence[str]) -> None:
        """Tell every other process; never waits, and a process that is away hears nothing of it.

        Args:
            words: each at most 7,000 bytes.
        """
        ...

    def close(self) -> None:
        """Close every connection and give the lock back."""
        ...
