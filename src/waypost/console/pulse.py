"""Tells whoever shows something live that the store may have changed: after a commit, or because time has passed."""

import asyncio
import contextlib
from collections.abc import Generator
from typing import Final

from waypost.store.database import Database

REST_S: Final = 0.2
"""Between two looks at least: people see no more, and a busy store is not read for every commit."""

AT_LEAST_S: Final = 1.0
"""Between two looks at most: other processes commit too, and the simulator's phones live by the clock."""


class Pulse:
    """One for all streams of a process. While nobody looks it costs a commit nothing.

    Attributes:
        is_closing: streams have to end.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._beat = asyncio.Event()
        self._watching = 0
        self.is_closing = False

    @property
    def watching(self) -> int:
        """How many streams are open."""
        return self._watching

    @contextlib.contextmanager
    def watch(self) -> Generator[None]:
        """For as long as a stream is open."""
        if not self._watching:
            self._database.on_commit(self.beat)
        self._watching += 1
        try:
            yield
        finally:
            self._watching -= 1
            if not self._watching:
                self._database.off_commit(self.beat)

    def beat(self) -> None:
        """Something may have changed."""
        beat, self._beat = self._beat, asyncio.Event()
        beat.set()

    async def next(self, *, rest_s: float = REST_S, at_least_s: float = AT_LEAST_S) -> None:
        """Return when something may have changed: not before `rest_s`, not after `at_least_s`."""
        beat = self._beat  # taken first, so that what is committed during the rest counts
        await asyncio.sleep(0 if self.is_closing else rest_s)
        if self.is_closing or beat.is_set():
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0, at_least_s - rest_s)):
                await beat.wait()

    def close(self) -> None:
        """Have every stream end."""
        self.is_closing = True
        self.beat()
