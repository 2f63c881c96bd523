"""What the service and the operator have stored, read beside them: nothing of a run changes by a look.

The store of the service is a SQLite file, or a PostgreSQL server; that of the operator is always a file.
"""

import contextlib
import sqlite3
from collections.abc import Awaitable, Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

_JOBS: Final = (
    "SELECT position, queue, ordering_key, due_ms, attempt, state, note, ref FROM queue_jobs ORDER BY position"
)
_CALLBACKS: Final = (
    "SELECT position, subscription_id, subject, due_ms, attempt, state, note, id FROM callbacks "
    "WHERE ended_on_ms IS NULL ORDER BY subscription_id, subject, sequence"
)


class OpenWork(NamedTuple):
    """A job of a queue, or a callback of a subscription, that has not ended."""

    position: int
    source: int  # the queue or the subscription
    ordering_key: str
    due_ms: int
    attempts: int
    state: int
    note: str | None
    id: str


class StoreQueries:
    """Reads the stores of both sides.

    Args:
        folder: of their files.
        read: returns what a query finds in the service's store, if it is not in the folder.
    """

    def __init__(self, folder: Path, read: Callable[[str], Awaitable[list[Any]]] | None) -> None:
        self._folder, self._read = folder, read

    @property
    def is_on_disk(self) -> bool:
        """True if the store of the service is a file, on the simulated disk."""
        return self._read is None

    async def read_service(self, *queries: str) -> list[list[Any]]:
        """Return what each query finds in the service's store."""
        if self._read is None:
            return self.read_file(*queries)
        return [[tuple(row) for row in await self._read(query)] for query in queries]

    def read_file(self, *queries: str) -> list[list[Any]]:
        """Return what each query finds in the file of the service, on a connection of its own."""
        with contextlib.closing(sqlite3.connect(self._folder / "waypost.db")) as connection:
            connection.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, True)  # a reader changes nothing
            return [connection.execute(query).fetchall() for query in queries]

    async def read_open_work(self) -> tuple[list[OpenWork], list[OpenWork]]:
        """Return the jobs and the callbacks that have not ended, each in the order in which they are worked."""
        jobs, callbacks = await self.read_service(_JOBS, _CALLBACKS)
        return [OpenWork(*row) for row in jobs], [OpenWork(*row) for row in callbacks]

    def read_operator(self, *queries: str) -> list[list[Any]]:
        """Return what each query finds in the operator's store."""
        return [self._operator.execute(query).fetchall() for query in queries]

    @cached_property
    def _operator(self) -> sqlite3.Connection:
        return sqlite3.connect(self._folder / "simulator.db")  # its process is never killed
