"""Signal to live streams that the store may have changed: after a commit, or after some time."""

import asyncio
import contextlib
from collections.abc import Generator
from typing import Final

from waypost.store.database import Database

REST_S: Final = 0.2
"""Minimum time between two renderings, so that a busy store is not read for every commit."""

AT_LEAST_S: Final = 1.0
"""Maximum time between two renderings: other processes commit too, and the simulator changes with its clock."""


class Pulse:
    """One signal for all streams of a process. Without an open stream, commits have no extra cost."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._beat = asyncio.Event()
        self._watching = 0
        self._closing = asyncio.Event()

    @property
    def is_closing(self) -> bool:
        """True if streams must end."""
        return self._closing.is_set()

    @property
    def watching(self) -> int:
        """Number of open streams."""
        return self._watching

    @contextlib.contextmanager
    def watch(self) -> Generator[None]:
        """Listen for commits while a stream is open."""
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
        """Signal that something may have changed."""
        event, self._beat = self._beat, asyncio.Event()
        event.set()

    def mark(self) -> asyncio.Event:
        """Return the event of the next signal. Get it before rendering, so that later commits count."""
        return self._beat

    async def next(self, beat: asyncio.Event, *, rest_s: float = REST_S, at_least_s: float = AT_LEAST_S) -> None:
        """Return after a signal, but not before `rest_s` and not after `at_least_s`."""
        await _in_time(self._closing, rest_s)
        if not self.is_closing:
            await _in_time(beat, max(0, at_least_s - rest_s))

    def close(self) -> None:
        """End every stream."""
        self._closing.set()
        self.beat()


async def _in_time(event: asyncio.Event, within_s: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await event.wait()
