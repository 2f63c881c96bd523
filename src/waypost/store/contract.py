"""What a store's engine gives, and the errors the rest may meet."""

from contextlib import AbstractContextManager
from typing import Protocol

from sqlalchemy import Connection


class StoreInUse(Exception):
    """Another process has this store open, and its engine allows one only."""


class WrongStore(Exception):
    """The store is of another revision or kind than this command works on; the text says the remedy."""


class Engine(Protocol):
    """One database engine.

    Attributes:
        sole: whether this process is the only one that may have the store open.
        readers: how many threads may read at once.
    """

    sole: bool
    readers: int

    def open(self) -> None:
        """Make the store when it is not there, and take whatever lock it needs.

        Raises:
            StoreInUse: another process has it.
            WrongStore: it has another revision.
        """
        ...

    def write(self) -> AbstractContextManager[Connection]:
        """A transaction on the writer's connection; called on the writer's thread only."""
        ...

    def read(self) -> AbstractContextManager[Connection]:
        """A consistent view on a reader's connection, ended without a trace."""
        ...

    def close(self) -> None:
        """Close every connection and give the lock back."""
        ...
