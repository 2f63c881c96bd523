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
    """One for all streams of a process. While nobody looks it costs a commit nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._beat = asyncio.Event()
        self._watching = 0
        self._closing = asyncio.Event()

    @property
    def is_closing(self) -> bool:
        """Whether streams have to end."""
        return self._closing.is_set()

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

    def mark(self) -> asyncio.Event:
        """What the next beat sets; taken before a look, so that what is committed during it counts."""
        return self._beat

    async def next(self, beat: asyncio.Event, *, rest_s: float = REST_S, at_least_s: float = AT_LEAST_S) -> None:
        """Return when something may have changed since the mark: not before `rest_s`, not after `at_least_s`."""
        await _in_time(self._closing, rest_s)
        if not self.is_closing:
            await _in_time(beat, max(0, at_least_s - rest_s))

    def close(self) -> None:
        """Have every stream end."""
        self._closing.set()
        self.beat()


async def _in_time(event: asyncio.Event, within_s: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await event.wait()
