"""The protocol of a database engine, and the errors that callers of the store may see."""

from __future__ import annotations  # so that commands that only need the errors load no SQLAlchemy

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from sqlalchemy import Connection

EXIT_STORE_UNAVAILABLE: Final = 75
"""Exit code of a process whose store cannot be reached: EX_TEMPFAIL of sysexits.h."""

PayloadListener = Callable[[str], None]
"""Called on a thread of the engine with the payload of a notification from another process."""


class StoreInUse(Exception):
    """Another process has this store open, and its engine allows only one."""


class WrongStore(Exception):
    """The store is of another revision or kind than this command works on; the text gives the fix."""


class StoreUnavailable(Exception):
    """The store cannot be reached, or did not respond: not a defect, and worth a retry.

    Whether a write is on disk is unknown when the response to its commit did not arrive.
    """


class StoreDamaged(StoreUnavailable):
    """The store on disk is damaged: no retry helps, and the text says where a backup is restored.

    Stages wait, as for a store that cannot be reached: no job fails by it.
    """


class MediaUnavailable(StoreUnavailable):
    """The place of the media cannot be reached, or has no space; the database may be available."""


@dataclass(frozen=True, slots=True)
class DamageSearch:
    """The result of a search for damage."""

    damage: Sequence[str]  # what was found, a sentence for each; empty if nothing was
    scope: str  # what was searched, for the reader of a report


class StoreEngine(Protocol):
    """One database engine."""

    name: str  # `sqlite` or `postgresql`
    is_exclusive: bool  # only this process may have the store open
    commits_in_order: bool  # a row with a higher number is never visible before one with a lower
    readers: int  # how many threads may read at once
    writers: int  # how many connections write, each on a thread of its own
    damage: str  # what the store returned when it was found damaged; empty until then

    def open(self) -> None:
        """Create the store if it does not exist, and take the lock that it needs; raise as `Database.open` does."""
        ...

    def write(self, nth: int = 0) -> AbstractContextManager[Connection]:
        """Return a transaction on a writing connection; called on its writer's thread only."""
        ...

    def read(self) -> AbstractContextManager[Connection]:
        """Return a read-only connection, whose transaction leaves nothing behind.

        On SQLite it reads one consistent view. On PostgreSQL each statement does.
        """
        ...

    @property
    def background_transaction(self) -> Callable[[], AbstractContextManager[Connection]] | None:
        """Return what begins a background transaction on its own connection; None if there is one writer."""
        ...

    def is_unavailable(self, error: BaseException) -> bool:
        """Return True if an error means that the store could not be reached."""
        ...

    def is_damage(self, error: BaseException) -> bool:
        """Return True if an error means that what is on disk cannot be read."""
        ...

    def find_damage(self, within_s: float) -> DamageSearch:
        """Look for damage, as far as the time allows, on a connection of its own; called on any thread."""
        ...

    def is_conflict(self, error: BaseException) -> bool:
        """Return True if a transaction failed only because of a concurrent one, so that it can be run again."""
        ...

    def listen(self, listener: PayloadListener) -> None:
        """Call the listener with each payload from another process from now on, and with an empty text after a gap."""
        ...

    def notify(self, payloads: Sequence[str]) -> None:
        """Send payloads, each at most 7,000 bytes, to every other process. Never waits; see `Database.notify`."""
        ...

    def compact(self, tables: Sequence[str]) -> None:
        """Rewrite tables, so that free space holds nothing of rows that were deleted or changed.

        SQLite rewrites the whole file, and the caller must be the writer's thread. PostgreSQL locks one table at a
        time. Either way work that needs them waits.
        """
        ...

    def close(self) -> None:
        """Close every connection and release the lock."""
        ...
