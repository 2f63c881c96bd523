"""Transactions, group commit and readers; opened and closed."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from sqlalchemy import Connection

from waypost.base.batching import GroupCommit
from waypost.store.contract import Engine

Item = TypeVar("Item")
Result = TypeVar("Result")

APPENDED = "appended"
"""Where a transaction notes the (lane, group) pairs it appended to: `connection.info[APPENDED]`."""

Wake = Callable[[set[tuple[int, str]]], None]


class Database:
    """The store as the stages use it.

    A write is a plain function of a connection and of all items that wait for it; everything that
    waits at one moment is one transaction. A read is a plain function of a connection.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store-writer")
        self._readers = ThreadPoolExecutor(engine.readers, thread_name_prefix="store-reader")
        self._group = GroupCommit(self._transaction, self._writer)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wakes: list[Wake] = []

    @property
    def sole(self) -> bool:
        """Whether no other process can have this store open."""
        return self._engine.sole

    @property
    def busy(self) -> bool:
        """Whether a write is under way."""
        return self._group.busy

    @property
    def moves(self) -> int:
        """How many writes have been begun since it was opened."""
        return self._group.joined

    async def open(self) -> None:
        """Open or make the store.

        Raises:
            StoreInUse: another process has it.
            WrongStore: it has another revision.
        """
        self._loop = asyncio.get_running_loop()
        await self._loop.run_in_executor(self._writer, self._engine.open)

    async def close(self) -> None:
        """Commit what waits, then close."""
        await self._group.close()
        await asyncio.get_running_loop().run_in_executor(self._writer, self._engine.close)
        self._writer.shutdown()
        self._readers.shutdown()

    def on_append(self, wake: Wake) -> None:
        """Call this, on the loop, after each commit that appended entries."""
        self._wakes.append(wake)

    async def join(
        self, work: Callable[[Connection, Sequence[Item]], Sequence[Result]], item: Item
    ) -> Result:
        """Hand one item to a write; return its result once the transaction is on disk."""
        return await self._group.join(work, item)

    async def join_all(
        self, work: Callable[[Connection, Sequence[Item]], Sequence[Result]], items: Sequence[Item]
    ) -> list[Result | BaseException]:
        """Hand many items to a write at once; return each one's result, or its own error."""
        joined = [self._group.join(work, item) for item in items]
        return await asyncio.gather(*joined, return_exceptions=True)

    async def write(self, work: Callable[..., Result], *args: Any) -> Result:
        """Run one write that joins with nothing; for what happens seldom."""
        return await self._group.join(_each, (work, args))

    async def read(self, look: Callable[..., Result], *args: Any) -> Result:
        """Run a read on a reader's thread."""
        return await asyncio.get_running_loop().run_in_executor(
            self._readers, self._look, look, args
        )

    def _look(self, look: Callable[..., Result], args: tuple[Any, ...]) -> Result:
        with self._engine.read() as connection:
            return look(connection, *args)

    def _transaction(self, work: Callable[[Connection], None]) -> None:
        with self._engine.write() as connection:
            connection.info[APPENDED] = set()
            work(connection)
            appended: set[tuple[int, str]] = connection.info[APPENDED]
        if appended and self._loop is not None:
            for wake in self._wakes:
                self._loop.call_soon_threadsafe(wake, appended)


def _each(
    connection: Connection, pieces: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]]
) -> list[Any]:
    return [work(connection, *args) for work, args in pieces]
